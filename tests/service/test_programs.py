"""The service for programs: tokens by command, other origins, filters, and the examples of docs/reference/http.md."""

import re
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.responses import HTMLResponse
from starlette.routing import Route

from helpers.refusals import refused_with
from helpers.serving import configuration, running, served, some_items
from pairseek import cli
from pairseek.client import Client, ServiceError
from pairseek.errors import InvalidParameter
from pairseek.web.access.auth import make_token
from pairseek.web.sessions.schedule import scheduled_pair
from pairseek.web.settings import Settings
from pairseek.web.studies.configuration import configured

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "http.md").read_text()
HOME = "http://shop.example"


@pytest.fixture(scope="module")
def visitors(tmp_path_factory):
    folder = tmp_path_factory.mktemp("programs")
    studies = [(configuration(askable=[f"i{k}" for k in range(8)], random=0.3), some_items())]
    # The page of the test has an origin on a port that is not known yet.
    with served(folder / "p.db", studies=studies, cors_origins=f"{HOME}, *") as visitors:
        visitors.database = str(folder / "p.db")
        yield visitors


@pytest.fixture(scope="module")
def client(visitors):
    token = make_token(visitors.service.database, "test", ["read", "write", "answer"], "test")
    return Client(visitors.address, token)


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as left:
        cli.main([str(argument) for argument in arguments])
    said = capsys.readouterr()
    return left.value.code, said.out, said.err


def test_a_token_is_made_listed_and_revoked_by_command(visitors, capsys):
    where = ("--database", visitors.database)
    code, out, _ = run(capsys, "token", "create", "shop", "--scope", "read", "--user", "test", "--days", 7, *where)
    assert (code, out.startswith("psk_"), out.count("\n")) == (0, True, 1)
    shop = Client(visitors.address, out.strip())
    assert [study["slug"] for study in shop.studies()][:1] == ["which"]
    listed = run(capsys, "token", "list", *where)[1]
    number, name, user, scopes, until = next(row.split("\t") for row in listed.splitlines() if "\tshop\t" in row)
    assert (name, user, scopes) == ("shop", "test", "read")
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", until)
    assert out.strip() not in listed
    assert run(capsys, "token", "revoke", number, *where)[:2] == (0, f"Token {number} was revoked.\n")
    with refused_with("token_revoked", ServiceError):
        shop.studies()
    assert f"{number}\tshop\ttest\tread\trevoked\n" in run(capsys, "token", "list", *where)[1]
    code, _, said = run(capsys, "token", "revoke", number, *where)
    assert code != 0
    assert "active token" in said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--scope", "read", "--user", "nobody"), "there is no user 'nobody'"),
        (("--scope", "all", "--user", "test"), "give one or more of read, write, answer, delete"),
        (("--scope", "read", "--user", "test", "--days", "400"), "give 1 to 366"),
        (("--scope", "read", "--user", "test", "--study", "none"), "there is no study 'none'"),
    ],
)
def test_a_token_that_cannot_be_made_says_why(visitors, capsys, arguments, words):
    code, out, said = run(capsys, "token", "create", "x", *arguments, "--database", visitors.database)
    assert (code != 0, out) == (True, "")
    assert words in " ".join(said.split())


def test_pages_of_named_origins_may_call_the_api_and_nothing_else(tmp_path):
    with served(tmp_path / "c.db", studies=[(configuration(), some_items())], cors_origins=HOME) as visitors:
        browser = visitors.browser()
        asked = {"Origin": HOME, "Access-Control-Request-Method": "POST"}
        asked |= {"Access-Control-Request-Headers": "authorization,content-type"}
        allowed = browser.options("/api/v1/studies", headers=asked)
        assert allowed.headers["access-control-allow-origin"] == HOME
        assert "access-control-allow-credentials" not in allowed.headers
        assert browser.options("/api/v1/studies", headers=asked | {"Origin": "http://other.example"}).status_code == 400
        # The page can read why it was refused.
        refused = browser.get("/api/v1/studies", headers={"Origin": HOME})
        assert (refused.status_code, refused.headers["access-control-allow-origin"]) == (401, HOME)
        assert "access-control-allow-origin" not in browser.get("/s/which", headers={"Origin": HOME}).headers
    with served(tmp_path / "c.db") as visitors:
        reply = visitors.browser().get("/api/v1/studies", headers={"Origin": HOME})
        assert "access-control-allow-origin" not in reply.headers


@pytest.mark.parametrize("origins", ["shop.example", "https://shop.example/page", "https://a b"])
def test_an_origin_must_be_one(origins):
    with pytest.raises(InvalidParameter, match="CORS_ORIGINS"):
        _ = Settings(cors_origins=origins).origins


def test_some_items_are_asked_about_and_all_are_recommended(client):
    session = client.open_session("which", seed=3)
    state, asked = session.state(), set()
    while state.pair is not None:
        asked |= {state.pair.left, state.pair.right}
        state = session.answer(state.pair, "left")
    assert asked <= {f"i{k}" for k in range(8)}
    everything = session.recommend(40)
    assert len(everything) == 40
    some = session.recommend(3, only=["i20", "i21", "i22", "i23"], exclude=["i21"])
    assert {one.id for one in some} == {"i20", "i22", "i23"}
    assert sum(one.probability for one in some) == pytest.approx(1.0, abs=0.01)
    version = client.study("which").catalogue
    assert session.recommend(2, catalogue=version) == session.recommend(2)
    for arguments, code in (
        ({"catalogue": "0" * 64}, (409, "other_catalogue")),
        ({"only": ["nothing"]}, (404, "unknown_item")),
        ({"only": ["i1"], "exclude": ["i1"]}, (422, "invalid_parameter")),
        ({"count": 0}, (422, "invalid_request")),
    ):
        with pytest.raises(ServiceError) as caught:
            session.recommend(**arguments)
        assert (caught.value.status, caught.value.code) == code, arguments


def test_filters_in_the_address_are_those_of_the_body(visitors, client):
    session = client.open_session("which", seed=4)
    reply = visitors.browser().get(
        f"/api/v1/sessions/{session.id}/recommendations",
        params={"count": 2, "only": ["i3", "i4", "i5"], "exclude": "i4"},
        headers={"Authorization": f"Bearer {session.token}"},
    )
    assert [one["id"] for one in reply.json()] == [item.id for item in session.recommend(2, only=["i3", "i5"])]


def test_random_pairs_are_of_askable_items_and_bad_sets_are_refused():
    chosen = configured({"title": "T", "askable": ["i1", "i2", "i3"], "random": 0.5})
    pairs = [scheduled_pair(chosen, some_items(), seed, []) for seed in range(40)]
    assert {name for pair in pairs if pair for name in (pair.left, pair.right)} == {"i1", "i2", "i3"}
    for wrong, words in ((1, "askable"), (["i1"], "askable"), ([], "askable")):
        with pytest.raises(InvalidParameter, match=words):
            configured({"title": "T", "askable": wrong})
    with pytest.raises(Exception, match="unheard"):
        configured({"title": "T", "askable": ["i1", "unheard"]}).resolved(some_items())


def test_the_example_of_the_page_runs_as_it_is_written(visitors, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    command = re.search(r"pairseek (token create .*) > token.txt", PAGE)[1]
    out = run(capsys, *command.split(), "--user", "test", "--database", visitors.database)[1]
    Path("token.txt").write_text(out)
    names = {}
    for code in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(code.replace("http://127.0.0.1:8421", visitors.address), names)
    said = capsys.readouterr().out
    assert said.count("RecommendedItem") == 4
    assert "merlot" not in said
    assert said.count("CatalogueVersion") == 2


def test_the_page_of_the_example_asks_and_recommends(visitors, client, browser):
    session = client.open_session("which", seed=6)
    html = re.search(r"```html\n(.*?)```", PAGE, re.DOTALL)[1].replace("http://127.0.0.1:8421", visitors.address)
    html = html.replace("SESSION", session.id).replace("TOKEN", session.token)
    home = Starlette(routes=[Route("/", lambda _: HTMLResponse(html))])
    with running(home) as address:
        page = browser.new_page()
        page.goto(address)
        for _ in range(6):
            button = page.locator("button").first
            button.wait_for()
            before = page.locator("#asking").inner_html()
            button.click()
            page.wait_for_function("before => document.querySelector('#asking').innerHTML != before", arg=before)
        page.get_by_text("You may like").wait_for()
        page.close()
    assert session.state().status == "finished"
