"""The guide for back ends, whose code blocks run one after the other."""

import re
from pathlib import Path

from helpers.serving import served
from pairseek.web.access.auth import make_token

PAGE = Path(__file__).resolve().parents[2] / "docs/how-to/your-own-back-end.md"


def test_every_block_of_the_page_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    with served(tmp_path / "shop.db") as visitors:
        token = make_token(visitors.service.database, "shop", ["read", "write", "answer"], "test")
        Path("token.txt").write_text(f"{token}\n")
        for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL):
            code = block.replace("http://127.0.0.1:8421", visitors.address)
            exec(compile(code, str(PAGE), "exec"), names)
        assert [catalogue.sessions for catalogue in names["client"].catalogues("shop")] == [0, 1]
    assert len(names["recommended"]) == 5
    assert {item.id for item in names["recommended"]} <= set(names["tomorrow"].ids) - {"sku-107"}
    assert len(names["page"]["recommended"]) == 5
    assert "sku-7" not in names["page"]["recommended"]
    assert names["moved"].answers == 1
    assert names["moved"].items == names["tomorrow"]
    assert names["again"].history == names["search"].history
    assert "sku-" in capsys.readouterr().out
