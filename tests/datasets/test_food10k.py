"""Food-10k: local copies, downloads from a loopback server, clear errors, and the published facts."""

from __future__ import annotations

import hashlib
import http.server
import json
import subprocess
import sys
import threading
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

import pairseek as ps
from helpers.refusals import missing_extra, refused
from pairseek.errors import InvalidItems, InvalidParameter

module = import_module("pairseek.datasets.food10k")  # the package's attribute of that name is the function
FEW = np.random.default_rng(0).normal(size=(30, 4))


@pytest.fixture
def small(monkeypatch, tmp_path):
    """A published embedding of 30 items in place of d = 4, as the authors' file, and an empty cache."""
    path = tmp_path / "server" / "few.mat"
    path.parent.mkdir()
    savemat(path, {"X": FEW})
    content = path.read_bytes()
    facts = replace(
        module.food10k_facts(4),
        n=30,
        source="few.mat",
        size=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
    )
    monkeypatch.setattr(module, "_published", lambda: {4: facts})
    monkeypatch.delenv("PAIRSEEK_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return path


@pytest.fixture
def server(small):
    """A loopback server of the folder with the file; gives its address and counts its requests."""
    asked = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments):
            super().__init__(*arguments, directory=str(small.parent))

        def log_message(self, *arguments):
            asked.append(self.path)

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}/", asked
        running.shutdown()
        thread.join()


class TestFinding:
    @pytest.mark.parametrize("place", ["data/food10k", "food10k", "."])
    @pytest.mark.parametrize("name", ["items-d04.npy", "few.mat"])
    def test_looks_under_the_folder_that_the_environment_names(self, small, monkeypatch, tmp_path, place, name):
        folder = tmp_path / "mine" / place
        folder.mkdir(parents=True, exist_ok=True)
        if name.endswith("npy"):
            np.save(folder / name, FEW)
        else:
            (folder / name).write_bytes(small.read_bytes())
        monkeypatch.setenv("PAIRSEEK_DATA", str(tmp_path / "mine"))
        assert np.array_equal(ps.datasets.food10k(4).coordinates, FEW)

    def test_another_file_under_that_name_is_refused(self, small, monkeypatch, tmp_path):
        np.save(tmp_path / "items-d04.npy", FEW[:20])
        monkeypatch.setenv("PAIRSEEK_DATA", str(tmp_path))
        with pytest.raises(InvalidItems, match="contains 20 items in 4 dimensions, but Food-10k has 30 in 4"):
            ps.datasets.food10k(4)

    @pytest.mark.parametrize("d", [1, 8, 13, True, "4"])
    def test_a_dimension_without_data_is_named_with_those_that_have(self, d):
        with refused("d"):
            ps.datasets.food10k(d)


class TestFetching:
    def test_fetches_once_checks_and_keeps(self, server):
        address, asked = server
        first = ps.datasets.food10k(4, base_url=address)
        assert np.array_equal(first.coordinates, FEW)
        assert ps.datasets.food10k(4, base_url=address) == first
        assert asked == ["/few.mat"]

    def test_takes_the_address_from_the_environment(self, server, monkeypatch):
        address, asked = server
        monkeypatch.setenv("PAIRSEEK_FOOD10K_URL", address.rstrip("/"))
        assert ps.datasets.food10k(4).n == 30
        assert asked == ["/few.mat"]

    def test_a_changed_file_is_refused(self, server, small):
        small.write_bytes(small.read_bytes() + b"x")
        with pytest.raises(InvalidItems, match=r"few.mat is not the published file: .*put few.mat"):
            ps.datasets.food10k(4, base_url=server[0])

    def test_a_server_without_the_file_is_distinguished_from_no_server(self, server, small):
        small.unlink()
        with pytest.raises(InvalidItems, match=r"could not be downloaded from .*few.mat \(404"):
            ps.datasets.food10k(4, base_url=server[0])

    def test_offline_the_error_says_where_to_put_the_file(self, small):
        # nothing listens on the discard port
        with pytest.raises(InvalidItems):
            ps.datasets.food10k(4, base_url="http://127.0.0.1:9/")

    def test_offline_with_a_folder_the_error_names_that_folder(self, small, monkeypatch, tmp_path):
        monkeypatch.setenv("PAIRSEEK_DATA", str(tmp_path))
        with pytest.raises(InvalidItems, match=f"into {tmp_path}.data.food10k, or set PAIRSEEK_FOOD10K_URL"):
            ps.datasets.food10k(4, base_url="http://127.0.0.1:9/")

    def test_without_pooch_the_error_names_the_extra(self, small, monkeypatch):
        monkeypatch.setitem(sys.modules, "pooch", None)
        with missing_extra("data"):
            ps.datasets.food10k(4)


class TestFacts:
    def test_the_address_is_that_of_the_fixed_commit(self):
        assert module.BASE_URL.startswith("https://raw.githubusercontent.com/siplab-gt/pairsearch/9e621462af6b7ca502b3")

    def test_every_dimension_has_plausible_facts(self):
        for d in ps.datasets.food10k_dimensions():
            facts = ps.datasets.food10k_facts(d)
            assert facts.n == 12_624
            assert 0.1 < facts.triplet_error < 0.2
            assert facts.source.endswith(".mat")
            assert len(facts.sha256) == 64
            for name in ("logistic", "probit"):
                for noise in ("constant", "normalized", "decaying"):
                    response = facts.response(name, noise)
                    assert (response.name, response.noise) == (name, noise)
                    assert response.constant > 0
        # The supplement's captions: constant noise is the likeliest in 3 dimensions, normalized from 4 on.
        likeliest = {d: ps.datasets.food10k_facts(d).best["probit"] for d in (3, 5, 7, 9, 12)}
        assert likeliest == {3: "constant", 5: "normalized", 7: "normalized", 9: "normalized", 12: "normalized"}

    def test_an_unknown_response_is_named(self):
        with pytest.raises(InvalidParameter, match="no constant was published for 'gauss'"):
            ps.datasets.food10k_facts(4).response("gauss", "normalized")

    def test_scale_and_numbers_are_those_of_the_data(self, shared, monkeypatch):
        if shared is None:
            assert module.food10k_facts(4).scale == pytest.approx(1.6194359495)
            return
        monkeypatch.setenv("PAIRSEEK_DATA", str(shared))
        published = json.loads((shared / "data" / "food10k" / "noise.json").read_text())
        assert json.loads((Path(module.__file__).with_name("food10k.json")).read_text()) == published
        for d in ps.datasets.food10k_dimensions():
            raw = ps.datasets.food10k(d)
            centred = raw.coordinates - raw.coordinates.mean(axis=0)
            expected = centred * ps.datasets.food10k_facts(d).scale
            # the published scale has 16 digits and ours 14 of them
            assert np.abs(raw.scaled().coordinates - expected).max() < 1e-9


class TestSynthetic:
    def test_is_the_same_in_every_call_and_has_the_shape(self):
        assert ps.datasets.synthetic(3) == ps.datasets.synthetic(3)
        assert (ps.datasets.synthetic(5).n, ps.datasets.synthetic(5).d) == (12_624, 5)
        assert ps.datasets.synthetic(3, n=40).n == 40

    @pytest.mark.parametrize(("arguments", "message"), [((0,), "d of synthetic"), ((2.5,), "d of synthetic")])
    def test_says_what_is_wrong(self, arguments, message):
        with pytest.raises(InvalidParameter, match=message):
            ps.datasets.synthetic(*arguments)


def test_importing_pairseek_loads_neither_figures_nor_clusters_nor_the_network():
    code = (
        "import sys, pairseek\n"
        "heavy = {'matplotlib', 'distributed', 'dask', 'pooch', 'pyarrow', 'typer', 'rich', 'requests'}\n"
        "assert 'pairseek.experiments' not in sys.modules\n"
        "assert pairseek.experiments.run is not None\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
