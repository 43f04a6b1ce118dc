"""A study's own colour: every shade can be read, and a readable colour stays as it is."""

import itertools

import pytest

from pairseek.web.studies.face import contrast, shades, style_sheet


def test_contrast_is_that_of_wcag():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.01)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


def test_every_colour_becomes_readable_on_light_and_dark_pages():
    for parts in itertools.product((0, 51, 128, 204, 255), repeat=3):
        light, dark = shades("#{:02x}{:02x}{:02x}".format(*parts))
        for shade, grounds in ((light, ("#f7f7f7", "#ffffff")), (dark, ("#131313", "#1d1d1d"))):
            for other in (*grounds, shade.wash, shade.on_accent):
                assert contrast(shade.accent, other) >= 4.5, (parts, shade)


def test_a_readable_colour_stays_and_a_pale_one_becomes_darker():
    assert shades("#0b6b4f")[0].accent == "#0b6b4f"
    light, dark = shades("#ffcc00")
    assert dark.accent == "#ffcc00"
    red, green, blue = bytes.fromhex(light.accent[1:])
    assert 0 < green < red < 255
    assert blue == 0


def test_the_style_sheet_has_both_schemes():
    sheet = style_sheet("#ffcc00")
    assert sheet.count("--accent: ") == 2
    assert "prefers-color-scheme: dark) { :root { --accent: #ffcc00;" in sheet
