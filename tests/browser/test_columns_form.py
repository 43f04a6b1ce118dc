"""The form for a new study in a real browser: the columns of a chosen list, on a phone and on a desk."""

from __future__ import annotations

import pytest

from helpers.browsers import DESKTOP, PHONE
from helpers.serving import served
from pairseek.web.access.auth import set_password

PASSWORD = "a long password"
LIST = "id;label;sweet;dry;price;country\r\n" + "".join(
    f"w{n};Weißwein {n};{n % 5},5;{n % 3},25;{9 + n};Österreich\r\n" for n in range(12)
)


@pytest.mark.parametrize("screen", [PHONE, DESKTOP], ids=["phone", "desk"])
def test_a_researcher_sees_and_chooses_the_columns(tmp_path, visit, screen):
    (tmp_path / "weine.csv").write_bytes(LIST.encode("cp1252"))
    (tmp_path / "wrong.csv").write_text("id,text\na,A\nb,\n")
    with served(tmp_path / "c.db") as visitors:
        set_password(visitors.service.database, "ann", PASSWORD)
        page = visit(f"{visitors.address}/login?next=/studies/new", **screen)
        page.fill("input[name=name]", "ann")
        page.fill("input[name=password]", PASSWORD)
        page.click("main button.primary")
        page.wait_for_url("**/studies/new")
        page.set_input_files("#f-items", str(tmp_path / "wrong.csv"))
        page.wait_for_selector("#columns .wrong")
        assert "line 3, column 'text': the text is blank" in page.inner_text("#columns")
        page.set_input_files("#f-items", str(tmp_path / "weine.csv"))
        page.wait_for_selector("#columns input[value=price]")
        assert "Kept as data: country." in page.inner_text("#columns")
        page.uncheck("#columns input[value=price]")
        # An error comes back into the page: the file and the choice stay.
        page.click("form.form >> nth=0 >> button.primary")
        page.wait_for_selector("[role=alert]")
        assert page.is_checked("#columns input[value=sweet]")
        assert not page.is_checked("#columns input[value=price]")
        page.fill("#f-title", "Weine")
        page.click("form.form >> nth=0 >> button.primary")
        page.wait_for_url("**/studies/weine")
        assert "Coordinates of the items: sweet, dry. Kept as data: price, country." in page.inner_text("main")
        items = visitors.service.catalogue.by_slug("weine").items
        assert (items.columns, items.coordinates[1].tolist(), items.labels[0]) == (
            ("sweet", "dry"),
            [1.5, 1.25],
            "Weißwein 0",
        )
