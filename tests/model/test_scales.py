"""Tests of columns of different scale: warnings and standardization."""

from __future__ import annotations

import copy
import io
import json
import pickle
import re
import warnings

import numpy as np
import pytest
from PIL import Image

import pairseek as ps
from helpers.serving import csrf_of, served
from pairseek import cli
from pairseek.cli.embed import _fit_pca
from pairseek.cli.items import read_item_names, with_text_ids
from pairseek.cli.serve import _create_study
from pairseek.embed import CKL, PCA, check, read_provenance, save_items
from pairseek.experiments.evaluation.replay import plain_items
from pairseek.experiments.simulation import SimulationWork
from pairseek.experiments.trial import _subsample
from pairseek.model.scales import scale_contrast, scale_note
from pairseek.people.population import Choices
from pairseek.store import studies
from pairseek.web.access.auth import make_token, set_password
from pairseek.web.settings import Settings
from pairseek.web.studies.configuration import configured
from pairseek.web.studies.creation import create_study, from_file
from pairseek.web.studies.items import read_items, study_items, unpack_items
from pairseek.web.studies.media import with_pictures

WINES = "id,price,acid,year\na,150,0.0,1\nb,550,0.4,2\nc,250,1.0,1\nd,350,0.7,2\n"
SAID = "the columns of the items differ in scale"


def table(n=60, seed=0):
    """A column from 150 to 550 beside one from 0 to 1."""
    points = np.random.default_rng(seed).uniform(size=(n, 2)) * [400.0, 1.0] + [150.0, 0.0]
    points[:2] = [[150.0, 0.0], [550.0, 1.0]]
    return points


def uneven(**parts):
    with pytest.warns(ps.ScaleWarning):
        return ps.Items(table(), **parts)


@pytest.fixture
def wines(tmp_path):
    (tmp_path / "wines.csv").write_text(WINES)
    return tmp_path / "wines.csv"


@pytest.fixture
def issued():
    """All warnings of a block, each with where it points."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        yield found


class TestStandardized:
    def test_is_the_naive_loop(self):
        items = uneven()
        coordinates = items.standardized().coordinates
        for column in range(2):
            values = [float(x) for x in items.coordinates[:, column]]
            mean = sum(values) / 60
            deviation = (sum((x - mean) ** 2 for x in values) / 59) ** 0.5
            assert coordinates[:, column] == pytest.approx([(x - mean) / deviation for x in values], abs=1e-12)

    def test_keeps_everything_else(self):
        ids, labels = [f"w{i}" for i in range(60)], [f"Wine {i}" for i in range(60)]
        appeal, data = np.linspace(-1, 1, 60), {"colour": ["red"] * 60}
        items = uneven(ids=ids, labels=labels, appeal=appeal, data=data)
        found = items.standardized()
        assert (found.ids, found.labels, dict(found.data)) == (items.ids, items.labels, dict(items.data))
        assert np.array_equal(found.appeal, appeal)
        assert not np.array_equal(found.coordinates, items.coordinates)

    def test_does_nothing_the_second_time(self):
        once = uneven().standardized()
        assert once.standardized().coordinates == pytest.approx(once.coordinates, abs=1e-12)

    @pytest.mark.parametrize("value", [0.0, 0.1, -7e9])
    def test_a_constant_column_becomes_exactly_zero(self, value):
        points = np.column_stack([np.full(7, value), np.arange(7.0)])
        coordinates = ps.Items(points).standardized().coordinates
        assert coordinates[:, 0].tolist() == [0.0] * 7
        assert np.std(coordinates[:, 1], ddof=1) == pytest.approx(1.0)

    def test_a_column_that_is_constant_up_to_rounding_is_not_blown_up(self):
        points = np.column_stack([np.where(np.arange(9) % 2, 0.1 + 0.2, 0.3), np.arange(9.0)])
        assert len(set(points[:, 0])) == 2
        assert not ps.Items(points).standardized().coordinates[:, 0].any()

    @pytest.mark.parametrize("unit", [1e-300, 1e300])
    def test_neither_overflows_nor_underflows(self, unit):
        points = np.random.default_rng(3).normal(size=(20, 2))
        coordinates = ps.Items(points * unit).standardized().coordinates
        assert coordinates == pytest.approx(ps.Items(points).standardized().coordinates, rel=1e-9)


class TestNote:
    def test_names_columns_ranges_deviations_and_what_to_do(self):
        said = scale_note(table(), ["price", "acid"])
        wide, narrow = table().std(axis=0, ddof=1)
        assert said.startswith(f"{SAID} by a factor of {wide / narrow:.0f}: ")
        assert f"column 'price' runs from 150 to 550 (standard deviation {wide:.3g})" in said
        assert f"column 'acid' runs from 0 to 1 (standard deviation {narrow:.3g})" in said
        assert "distances, and so preferences, depend only on the widest columns" in said
        assert "use items.standardized(), or standardize: true in a study, or scale the columns yourself" in said

    def test_columns_without_names_are_called_by_their_index(self):
        said = scale_note(table()[:, ::-1])
        assert "column 1 runs from 150 to 550" in said
        assert "column 0 runs from 0 to 1" in said

    @pytest.mark.parametrize(("factor", "said"), [(19.9, False), (20.1, True)])
    def test_begins_above_a_factor_of_twenty(self, factor, said):
        column = np.arange(30.0)
        points = np.column_stack([column, column[::-1] / factor])
        assert (scale_note(points) is not None) == said
        assert scale_contrast(points).ratio == pytest.approx(factor)

    def test_is_about_the_widest_and_the_narrowest_that_vary(self):
        column = np.arange(30.0)
        found = scale_contrast(np.column_stack([column, np.full(30, 5.0), 100 * column, 0.1 * column]))
        assert (found.widest.index, found.narrowest.index) == (2, 3)
        assert found.ratio == pytest.approx(1000.0)

    def test_one_column_or_one_that_varies_is_fine(self):
        column = np.arange(30.0)[:, None]
        assert scale_note(column * 1e6) is None
        assert scale_note(np.hstack([column * 1e6, np.zeros((30, 1))])) is None

    def test_the_smallest_and_largest_numbers(self, issued):
        tiny = np.column_stack([np.r_[0.0, 5e-324, np.zeros(40)], np.r_[1e308, -1e308, np.zeros(40)]])
        assert "column 1 runs from -1e+308 to 1e+308" in scale_note(tiny)
        assert issued == []


class TestEntrances:
    """Each public way in says it once, and points at who called."""

    def check(self, issued, *names):
        assert [(one.category, one.filename) for one in issued] == [(ps.ScaleWarning, __file__)]
        for name in names:
            assert f"column {name} runs from" in str(issued[0].message)

    def test_coordinates(self, issued):
        ps.Items(table())
        self.check(issued, 0, 1)

    def test_a_csv_file(self, issued, wines):
        ps.Items.from_csv(wines)
        self.check(issued, "'price'", "'acid'")

    def test_a_csv_file_whose_narrow_column_is_kept_as_data(self, issued, wines):
        ps.Items.from_csv(wines, keep=["acid", "year"])
        assert issued == []

    def test_a_file_of_any_kind(self, issued, wines, tmp_path):
        np.save(tmp_path / "wines.npy", table())
        np.savez(tmp_path / "wines.npz", X=table())
        for path, names in ((wines, ["'price'"]), (tmp_path / "wines.npy", [0]), (tmp_path / "wines.npz", [1])):
            issued.clear()
            ps.Items.from_file(path)
            self.check(issued, *names)

    def test_coordinates_given_to_a_search(self, issued):
        ps.Search(table(), posterior=ps.Particles(50), rng=0)
        self.check(issued, 0, 1)

    def test_items_of_one_scale_say_nothing(self, issued):
        ps.Items(np.random.default_rng(0).normal(size=(50, 3)))
        assert issued == []

    def test_it_is_silenced_the_usual_way(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.filterwarnings("ignore", category=ps.ScaleWarning)
            assert ps.Items(table()).scale_note.startswith(SAID)


class TestInside:
    """What the library makes of items that somebody has is not reported again: a warning is an error here."""

    def test_copies_keep_the_note_with_its_names(self, wines):
        with pytest.warns(ps.ScaleWarning, match="'price'"):
            items = ps.Items.from_csv(wines)
        for twin in (copy.copy(items), copy.deepcopy(items), pickle.loads(pickle.dumps(items))):
            assert twin == items
            assert twin.scale_note == items.scale_note

    def test_scaled_and_standardized(self):
        items = uneven()
        assert items.scaled().scale_note.startswith(SAID)
        assert items.standardized().scale_note is None

    def test_a_search_saved_and_loaded(self, tmp_path):
        search = ps.Search(uneven(), posterior=ps.Particles(50), rng=0)
        search.observe(0, 1, winner=0)
        search.save(tmp_path / "me.json")
        assert ps.Search.load(tmp_path / "me.json").items.scale_note.startswith(SAID)

    def test_a_population_and_its_search(self):
        items = uneven()
        rng = np.random.default_rng(0)
        # Everybody prefers the item that comes first, so that there is an appeal to learn.
        rows = [(f"p{k % 12}", *sorted(rng.choice(60, 2, replace=False).tolist())) for k in range(600)]
        settings = {"appeal": True, "rescale": False, "curvature": False}
        people = ps.Population.fit(Choices.from_pairs(rows, ids=items.ids), items, rng=0, **settings)
        assert people.items.appeal.any()
        search = ps.Search(items, population=people, posterior=ps.Particles(50), rng=0)
        assert search.items.appeal.any()
        assert search.items.scale_note.startswith(SAID)
        assert plain_items(people, None).scale_note.startswith(SAID)

    def test_principal_components_and_their_files(self, tmp_path):
        found = PCA(n_components=2).fit(table())
        items = found.to_items()
        assert items.scale_note.startswith(SAID)
        save_items(items, tmp_path / "wines.csv", {"method": "pca"})
        assert read_provenance(tmp_path / "wines.csv")["method"] == "pca"

    def test_an_embedding(self):
        ckl = CKL(n_components=2)
        ckl.embedding_, ckl.ids_ = table(), tuple(range(60))
        assert ckl.to_items().scale_note.startswith(SAID)

    def test_files_of_which_only_the_ids_or_directions_are_wanted(self, tmp_path):
        np.save(tmp_path / "wines.npy", table())
        assert read_item_names(tmp_path / "wines.npy").ids == tuple(range(60))
        assert _fit_pca(tmp_path / "wines.npy", "2", standardize=True, drop=False).embedding_.shape == (60, 2)
        assert with_text_ids(uneven()).ids[:2] == ("0", "1")

    def test_pictures(self):
        picture = io.BytesIO()
        Image.new("RGB", (8, 8)).save(picture, "PNG")
        items = uneven(data={"image": ["a.png"] * 60})
        assert with_pictures(items, {"a.png": picture.getvalue})[0].scale_note.startswith(SAID)

    def test_a_simulation(self):
        items = uneven()
        assert SimulationWork(None, (items,), (0,)).items() == (items,)
        assert _subsample(items, 30, (1, 2)).n == 30


class TestStudies:
    def test_the_setting_standardizes_before_the_papers_rule(self, wines):
        plain = read_items(wines)
        items = read_items(wines, standardize=True)
        assert items.coordinates == pytest.approx(plain.standardized().coordinates)
        both = read_items(wines, standardize=True, scaled=True)
        assert both.coordinates == pytest.approx(plain.standardized().scaled().coordinates)
        assert not np.allclose(both.coordinates, items.coordinates)
        assert study_items(plain, scaled=False) is plain
        assert configured({"title": "t"}).standardize is False

    def test_reading_a_file_says_nothing_and_keeps_the_names(self, wines):
        assert "column 'price' runs from 150 to 550" in read_items(wines).scale_note
        assert read_items(wines, standardize=True).scale_note is None

    @pytest.mark.parametrize("standardize", [False, True])
    def test_a_study_of_a_file(self, wines, standardize):
        path = wines.with_name("wine.yaml")
        path.write_text(f"title: Wine\nitems: wines.csv\nstandardize: {str(standardize).lower()}\n")
        configuration, items, *_ = from_file(path)
        assert configuration.standardize is standardize
        assert (items.scale_note is None) == standardize


def command(capsys, *arguments):
    with pytest.raises(SystemExit) as left:
        cli.main([str(argument) for argument in arguments])
    said = capsys.readouterr()
    return left.value.code, said.out, said.err


class TestCommands:
    @pytest.fixture(autouse=True)
    def _folder(self, wines, monkeypatch):
        monkeypatch.chdir(wines.parent)
        for name, more in (("wine", ""), ("even", "standardize: true\n")):
            settings = "items: wines.csv\nanswers: 3\nposterior: {name: particles, n: 50}\n"
            wines.with_name(f"{name}.yaml").write_text(f"title: {name}\n{settings}{more}")

    def test_a_study_is_made_with_a_note(self, capsys):
        code, out, err = command(capsys, "study", "create", "wine.yaml", "--database", "w.db")
        assert (code, "Created the study wine with 4 items" in out) == (0, True)
        assert f"Note: {SAID}" in err
        assert "Columns: coordinates: price, acid, year; choose with the setting coordinates." in out
        assert "column 'price' runs from 150 to 550" in err
        code, out, err = command(capsys, "study", "create", "even.yaml", "--database", "w.db")
        assert (code, "Created the study even with 4 items" in out, err) == (0, True, "")

    def test_a_server_that_makes_a_study_says_it_the_first_time(self, capsys, tmp_path):
        settings = Settings(database="w.db")
        assert _create_study(settings, tmp_path / "wine.yaml") == "wine"
        columns, note = capsys.readouterr().err.splitlines()
        assert columns == "Columns: coordinates: price, acid, year; choose with the setting coordinates."
        assert note.startswith(f"Note: {SAID}")
        assert _create_study(settings, tmp_path / "wine.yaml") == "wine"
        assert capsys.readouterr().err.startswith("The study wine already exists")
        assert _create_study(settings, tmp_path / "even.yaml") == "even"
        assert capsys.readouterr().err == columns + "\n"

    def test_a_check_has_a_finding_and_an_option(self, capsys):
        settings = ("--people", "1", "--json")
        code, out, err = command(capsys, "check", "wines.csv", *settings)
        found = next(finding for finding in json.loads(out)["findings"] if finding["name"] == "scales")
        assert (code, found["level"]) == (0, "act")
        assert err == "Columns of wines.csv: coordinates: price, acid, year; choose with --coordinates.\n"
        assert "column 'price' runs from 150 to 550" in found["found"]
        assert "--standardize" in found["advice"]
        record = json.loads(command(capsys, "check", "wines.csv", "--standardize", *settings)[1])
        assert record["scale_ratio"] == pytest.approx(1.0)
        assert next(finding for finding in record["findings"] if finding["name"] == "scales")["level"] == "good"


def test_a_health_check_mentions_the_scales():
    health = check(uneven(), people=1)
    found = next(finding for finding in health.findings if finding.name == "scales")
    wide, narrow = table().std(axis=0, ddof=1)
    assert (found.level, health.good) == ("act", False)
    assert health.numbers["scale_ratio"] == pytest.approx(wide / narrow)
    assert "column 0 runs from 150 to 550" in found.found
    fine = check(uneven().standardized(), people=1)
    assert next(finding for finding in fine.findings if finding.name == "scales").level == "good"


@pytest.fixture(scope="module")
def visitors(tmp_path_factory):
    with served(tmp_path_factory.mktemp("scales") / "s.db") as visitors:
        set_password(visitors.service.database, "ann", "a long password")
        yield visitors


@pytest.fixture(scope="module")
def ann(visitors):
    browser = visitors.browser(headers={"accept": "text/html"})
    form = {"csrf": csrf_of(browser.get("/login")), "name": "ann", "password": "a long password"}
    assert browser.post("/login", data=form).status_code == 303
    return browser


class TestPages:
    def made(self, ann, title, **fields):
        form = {"csrf": csrf_of(ann.get("/studies/new")), "title": title, "answers": "3", **fields}
        reply = ann.post("/studies/new", data=form, files=[("items", ("wines.csv", WINES, "text/csv"))])
        assert (reply.status_code, reply.headers.get("location")) == (303, f"/studies/{title}"), reply.text
        return ann.get(f"/studies/{title}")

    @pytest.mark.parametrize(
        ("language", "words"),
        [
            ("en", ("coordinate 1 runs from 150 to 550", "coordinate 2 from 0 to 1", "0.427", "Standardize the coord")),
            ("de", ("Koordinate 1 reicht von 150 bis 550", "Koordinate 2 von 0 bis 1", "0,427", "Koordinaten standar")),
        ],
    )
    def test_the_page_of_a_new_study_shows_the_note(self, ann, language, words):
        if ann.get("/studies/plain").status_code == 404:
            self.made(ann, "plain")
        page = ann.get("/studies/plain", headers={"accept-language": language}).text
        note = re.search(r'role="note">(.*?)</p>', page)[1]
        for word in words:
            assert word in note

    def test_the_option_of_the_form_standardizes(self, visitors, ann):
        form = ann.get("/studies/new").text
        assert re.search(r'<input type="checkbox" name="standardize" value="true">', form)
        assert 'role="note"' not in self.made(ann, "ticked", standardize="true").text
        study = visitors.service.catalogue.by_slug("ticked")
        assert study.configuration.standardize is True
        assert np.std(study.items.coordinates, axis=0, ddof=1) == pytest.approx(np.ones(3))

    def test_a_program_can_standardize_too(self, visitors):
        token = make_token(visitors.service.database, "notebook", ["read", "write"], "ann")
        program = visitors.browser(headers={"authorization": f"Bearer {token}"})
        rows = [{"id": f"i{k}", "coordinates": point} for k, point in enumerate(table(10).tolist())]
        for slug, standardize in (("program", True), ("unchanged", False)):
            body = {"configuration": {"title": slug, "standardize": standardize}, "items": rows}
            reply = program.post("/api/v1/studies", json=body)
            assert reply.status_code == 201, reply.text
            items = visitors.service.catalogue.by_slug(slug).items
            assert (items.scale_note is None) == standardize


def test_a_stored_study_is_read_without_a_warning(tmp_path):
    with served(tmp_path / "s.db") as visitors:
        database = visitors.service.database
        create_study(
            database, configured({"title": "Wine"}), uneven(ids=[f"w{k}" for k in range(60)]), is_open=True, who="x"
        )
        row = database.read(lambda connection: studies.by_slug(connection, "wine"))
        _, content = database.read(lambda connection: studies.with_items(connection, row.id))
        assert unpack_items(content).scale_note.startswith(SAID)
