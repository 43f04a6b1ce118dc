"""Names, code and links in the docs."""

import dataclasses
import importlib.util
import inspect
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import pairseek as ps
from pairseek import errors
from pairseek.search import serialization

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
# Pages by name; those that share a name, such as index.md, by their path.
FOUND = [*ROOT.glob("*.md"), *DOCS.rglob("*.md")]
PLACES = {
    str(path.relative_to(DOCS)) if path.parts[-2] == "api" or path.name == "index.md" else path.name: path
    for path in FOUND
}
PAGES = {name: path.read_text() for name, path in PLACES.items()}
EVERYTHING = "\n".join(PAGES.values())


def code_of(page, containing=""):
    blocks = re.findall(r"```python\n(.*?)```", PAGES[page], re.DOTALL)
    return next(block for block in blocks if containing in block)


def test_the_public_surface_is_sorted_and_complete():
    assert sorted(ps.__all__) == sorted(set(ps.__all__))
    public = {name for name, value in vars(ps).items() if not name.startswith("_") and not inspect.ismodule(value)}
    public |= ps._MEMBERS.keys()  # Loaded on first use.
    assert public | {"__version__", "errors"} == set(ps.__all__)
    for name in ps.__all__:
        assert hasattr(ps, name)


@pytest.mark.parametrize("kind", serialization.PART_KINDS)
def test_every_part_and_each_of_its_settings_is_documented(kind):
    for name, part in serialization.parts_by_name(kind).items():
        assert part.__name__ in EVERYTHING, f"{part.__name__} is not in the docs"
        if kind == "strategy":
            assert f"`{name}`" in PAGES["strategies.md"]
        for field in dataclasses.fields(part):
            assert re.search(rf"\b{field.name}\b", EVERYTHING), f"{part.__name__}({field.name}=) is not in the docs"


def test_every_public_name_and_error_is_documented():
    for name in ps.__all__:
        assert re.search(rf"\b{name}\b", EVERYTHING) or name == "__version__", f"{name} is not in the docs"
    for name, value in vars(errors).items():
        # An alias, such as the earlier name of an error, is not documented.
        if inspect.isclass(value) and issubclass(value, ps.PairseekError) and name == value.__name__:
            assert name in PAGES["errors.md"] or name == "PairseekError"


def test_every_method_of_a_search_is_documented():
    for name in dir(ps.Search):
        if not name.startswith("_"):
            assert re.search(rf"\b{name}\b", EVERYTHING), f"Search.{name} is not in the docs"


def test_every_bound_is_documented():
    for name, value in vars(ps.bounds).items():
        if inspect.isfunction(value) and not name.startswith("_") and value.__module__ == "pairseek.model.bounds":
            assert name in PAGES["bounds.md"]


def test_everything_of_embed_is_documented():
    for name in ps.embed.__all__:
        assert re.search(rf"\b{name}\b", PAGES["embedding.md"]) or name in ("METHODS", "PathStep"), name
    for method in ps.embed.METHODS.values():
        assert f"`{method.name}`" in PAGES["embedding.md"]
        for field in method().get_params():
            assert re.search(rf"\b{field}\b", PAGES["embedding.md"]), f"{method.__name__}({field}=) is not in the docs"


def test_the_code_of_the_readme_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    first = code_of("README.md", "import pairseek")
    names = {}
    exec(compile(first, "README.md", "exec"), names)
    assert names["search"].finished == "12 answers were given"
    assert "Recommendation" in capsys.readouterr().out


def test_the_code_of_the_reliability_page_runs(capsys):
    exec(compile(code_of("reliability.md"), "reliability.md", "exec"), {})
    assert capsys.readouterr().out.split()[0] in ("consistent", "noisy", "random")


@pytest.mark.parametrize("page", PAGES)
def test_links_between_pages_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", PAGES[page]):
        place = PLACES[page].parent / target
        # Pages of notebooks are generated when the site is built.
        assert place.exists() or place.with_suffix(".ipynb").exists(), f"{page} links to {target}"


def test_the_pages_say_nothing_of_machines_or_registries():
    for page, text in PAGES.items():
        assert not re.search(r"/(?:work|root|home)/|index-url|issue \d", text), page


def test_every_setting_of_a_study_and_of_a_server_is_documented():
    from pairseek.core.media import MEDIA
    from pairseek.web.settings import VARIABLE_PREFIX, Settings
    from pairseek.web.studies.configuration import StudyConfiguration

    for name in StudyConfiguration.model_fields:
        assert f"`{name}`" in PAGES["study-settings.md"], name
    for name in MEDIA:
        assert f"`{name}`" in PAGES["studies.md"], name
    for field in dataclasses.fields(Settings):
        assert f"`{VARIABLE_PREFIX}{field.name.upper()}`" in PAGES["service.md"], field.name


def test_every_route_of_the_http_api_and_every_command_is_documented():
    from pairseek.cli import app as _app
    from pairseek.web.app import create_app
    from pairseek.web.settings import Settings

    for path, methods in create_app(Settings()).openapi()["paths"].items():
        for method in methods:
            assert f"`{method.upper()} {path}`" in PAGES["http.md"], path
    for command in _app.app.registered_commands:
        assert f"pairseek {command.name or 'demo'}" in EVERYTHING, command.name
    for group in _app.app.registered_groups:
        assert f"pairseek {group.name} " in EVERYTHING, group.name


def test_the_studies_of_the_docs_can_be_made():
    from pairseek.web.studies.creation import from_record
    from pairseek.web.studies.yaml_reader import read_yaml

    for page in ("studies.md",):
        for block in re.findall(r"```yaml\n(.*?)```", PAGES[page], re.DOTALL):
            configuration, is_open = from_record(read_yaml(block))
            assert is_open
            assert configuration.title.startswith("Which wine")


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/explanation/architecture.md"])
def test_the_files_that_the_pages_for_developers_name_exist(page):
    # Leave out code, and the new files that a recipe creates.
    text = re.sub(r"```.*?```|A new file\s+`[^`]+`", "", (ROOT / page).read_text(), flags=re.DOTALL)
    named = set(re.findall(r"`([\w.-]+/[\w./-]+(?:\.py|/|\.html|\.md))`", text))
    assert len(named) > 8
    places = (ROOT, ROOT / "src" / "pairseek")
    assert [name for name in sorted(named) if not any((place / name).exists() for place in places)] == []


def opening(text):
    """Return the first paragraph below the title of a page."""
    body = re.sub(r"^---.*?---\n", "", text, flags=re.DOTALL).strip()
    title, _, rest = body.partition("\n\n")
    assert title.startswith("# "), title
    return rest.strip().partition("\n\n")[0]


def test_every_page_is_in_the_navigation_and_opens_with_a_sentence_of_its_own():
    navigation = (ROOT / "mkdocs.yml").read_text()
    openings = {}
    for path in DOCS.rglob("*.md"):
        assert str(path.relative_to(DOCS)) in navigation, f"{path.name}: name the page in the navigation of mkdocs.yml"
        openings[path.relative_to(DOCS)] = opening(path.read_text())
    for path in DOCS.glob("notebooks/*.ipynb"):
        assert f"notebooks/{path.stem}.md" in navigation, path.name
        cell = json.loads(path.read_text())["cells"][0]
        openings[path.relative_to(DOCS)] = opening("".join(cell["source"]))
    for path, text in openings.items():
        # Neither a table, a picture, code nor a heading, and more than a title said again.
        assert re.match(r"[\w\"`*\[]", text), f"{path}: begin with a sentence about the page"
        assert len(text.split()) > 5, f"{path}: begin with a sentence about the page"


def test_notebooks_are_committed_without_outputs():
    for path in DOCS.glob("notebooks/*.ipynb"):
        cells = json.loads(path.read_text())["cells"]
        assert not any(cell.get("outputs") or cell.get("execution_count") for cell in cells), path.name


def test_links_to_elsewhere_are_well_formed():
    for page, text in PAGES.items():
        for target in re.findall(r"\]\((\w+:[^)\s]*)\)", text):
            assert re.fullmatch(r"https://[\w.-]+\.[a-z]{2,}(?:/[^\s]*)?", target), f"{page} links to {target}"


def test_the_paths_of_pages_that_the_program_names_exist():
    for path in (ROOT / "src").rglob("*.py"):
        for named in re.findall(r"docs/[\w./-]+\.md", path.read_text()):
            assert (ROOT / named).exists(), f"{path.name} names {named}"


AMERICAN = [
    "color",
    "colors",
    "colored",
    "favorite",
    "favorites",
    "behavior",
    "behaviors",
    "neighbor",
    "neighbors",
    "center",
    "centers",
    "centered",
    "gray",
    "labeled",
    "modeled",
    "analyze",
    "analyzes",
    "catalog",
    "catalogs",
    "license",
    "judgment",
    "judgments",
    "artifact",
]


def test_the_pages_are_in_british_english():
    for page, text in PAGES.items():
        prose = re.sub(r"```.*?```|`[^`]*`|\]\([^)]*\)|\\\[.*?\\\]", "", text, flags=re.DOTALL)
        found = {word for word in re.findall(r"[a-z']+", prose) if word in AMERICAN}
        assert not found, f"{page}: {sorted(found)}"


def test_the_options_of_documented_commands_exist():
    import typer.main

    from pairseek.cli import app as _app

    root = typer.main.get_command(_app.app)
    pages = {page: re.sub(r"\\\n", " ", text) for page, text in PAGES.items()}
    for page, text in pages.items():
        for line in re.findall(r"(?:^|`)(pairseek [a-z][^`\n#]*)", text, re.MULTILINE):
            words = line.split()[1:]
            command = root
            while words and words[0] in getattr(command, "commands", {}):
                command = command.commands[words.pop(0)]
            known = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
            for option in re.findall(r"(?<![\w-])(--[a-z][\w-]*)", " ".join(words)):
                assert option in known | {"--help", "--version"}, f"{page}: `{line}` has no option {option}"


def test_every_public_name_can_be_loaded_and_a_search_loads_only_what_it_needs():
    for name in ps.__all__:
        assert getattr(ps, name) is not None
    assert set(ps.__all__) <= set(dir(ps))
    with pytest.raises(AttributeError, match="has no attribute 'Serach'"):
        _ = ps.Serach
    program = "import sys, pairseek as ps; ps.Search([[0.0], [1.0]], rng=1).ask(); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    heavy = (
        "embed",
        "evaluate",
        "experiments",
        "indexes",
        "model.vector_tables",
        "pairs.sources.branch_and_bound.search",
        "pairs.sources.continuous",
        "pairs.strategies.baselines",
        "pairs.strategies.epmv",
        "pairs.strategies.eubo",
        "pairs.strategies.greedy",
        "pairs.strategies.mcmv",
        "pairs.strategies.shortlist",
        "people",
        "posteriors.grid",
        "posteriors.mixture",
        "posteriors.particles",
        "posteriors.tempering",
        "search.forecasts",
        "search.gains",
        "search.simulate",
        "store",
        "web",
    )
    # A name that no longer exists could not be loaded either.
    for name in heavy:
        assert importlib.util.find_spec(f"pairseek.{name}"), name
    ours = [name for name in loaded if name.split(".")[0] == "pairseek"]
    assert not [name for name in ours if name.removeprefix("pairseek.").startswith(heavy)]
    # One module more does no harm, but everybody waits for the import.
    assert len(ours) <= 82
    assert not {"matplotlib", "fastapi", "sqlalchemy", "pandas", "typer"} & set(loaded)
