"""The page about containers: its code, its manifest, and kernels compiled by root for other users."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

import pairseek as ps
from helpers.unprivileged import as_nobody, installed

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/how-to/containers.md").read_text()
SHOP = re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)[1]
# Prints what numba compiles, which is nothing if it finds all kernels on the disk.
LISTENER = """
from numba.core import event

class Listener(event.Listener):
    def on_start(self, e): print("compiled", e.data["dispatcher"].py_func.__qualname__)
    def on_end(self, e): pass

event.register("numba:compile", Listener())
"""


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Write the files that `shop.py` of the page reads."""
    monkeypatch.chdir(tmp_path)
    vectors = np.random.default_rng(0).standard_normal((400, 40)) / np.sqrt(np.arange(1, 41))
    np.save("vectors.npy", vectors)
    ids = [f"sku-{row}" for row in range(400)]
    Path("ids.txt").write_text("\n".join(ids))
    ps.Items.from_vectors(vectors, ids=ids, answers=10).vector_map.save("map.json")
    return tmp_path


def test_the_code_of_the_page_runs(files):
    names = {}
    exec(compile(SHOP, "shop.py", "exec"), names)
    assert names["items"].n == 400
    assert names["items"].ids[7] == "sku-7"


def test_the_manifest_names_settings_and_routes_of_the_service():
    pod = yaml.safe_load(re.search(r"```yaml\n(.*?)```", PAGE, re.DOTALL)[1])["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    service = (ROOT / "docs/how-to/service.md").read_text()
    for variable in container["env"]:
        assert f"`{variable['name']}`" in service
    for kind in ("startup", "readiness", "liveness"):
        probe = container[f"{kind}Probe"]["httpGet"]
        assert f"`{probe['path']}`" in service
        assert probe["port"] == container["ports"][0]["containerPort"] == 8421
    # The server gets the time that it needs to drain, to finish its requests and to exit.
    drain = next(int(v["value"]) for v in container["env"] if v["name"] == "PAIRSEEK_DRAIN_SECONDS")
    assert pod["terminationGracePeriodSeconds"] > drain + 15
    assert container["securityContext"]["readOnlyRootFilesystem"]


@pytest.mark.long
def test_another_user_compiles_nothing_after_pairseek_warm(files):
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    with installed() as folder:
        kernels = folder / "kernels"
        kernels.mkdir()
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(folder / "site"), "NUMBA_CACHE_DIR": str(kernels)}
        warm = [sys.executable, "-m", "pairseek", "warm"]
        warmed = subprocess.run(warm, env=environment, cwd=folder, capture_output=True, text=True, check=True)
        assert f"in {kernels}" in warmed.stdout
        (folder / "shop.py").write_text(LISTENER + SHOP)
        for name in ("vectors.npy", "ids.txt", "map.json"):
            (folder / name).write_bytes((files / name).read_bytes())
        command = [*as_nobody(), sys.executable, "shop.py"]
        environment["PYTHONDONTWRITEBYTECODE"] = "1"
        ran = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=True)
        assert ran.stdout == ""
        # Without these kernels, and in folders that are not writable, the listener sees what is compiled.
        (folder / "empty").mkdir()
        environment |= {"NUMBA_CACHE_DIR": str(folder / "empty"), "TMPDIR": str(folder / "empty")}
        ran = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=True)
        assert ran.stdout.count("compiled") > 5
