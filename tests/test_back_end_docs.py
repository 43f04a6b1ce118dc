"""The page for back ends: every block runs, one after the other."""

import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[1] / "docs/how-to/your-own-back-end.md"


def test_every_block_of_the_page_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL):
        exec(compile(block, str(PAGE), "exec"), names)
    assert len(names["page"]["recommended"]) == 5
    assert "sku-7" not in names["page"]["recommended"]
    assert names["settled"].answers == 1
    assert names["settled"].items == names["tomorrow"]
    assert names["again"].history == names["search"].history
    assert "sku-" in capsys.readouterr().out
