"""The colours that ship: the file against its source, and Oklab against published values."""

from __future__ import annotations

import csv
import re
import subprocess
import sys
from importlib import import_module, resources

import matplotlib.colors
import numpy as np
import pytest

from pairseek import datasets
from pairseek.errors import InvalidParameter
from pairseek.model.items import Items

colours_module = import_module("pairseek.datasets.colours")  # the package's attribute of that name is the function
DATA = resources.files("pairseek.datasets")


def rgb_from_hex(text):
    return np.array([int(text[i : i + 2], 16) for i in (1, 3, 5)]) / 255


def naive_oklab(rgb):
    """Ottosson's own example code, scalar by scalar."""
    r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb)
    cone_1 = (0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b) ** (1 / 3)
    cone_2 = (0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b) ** (1 / 3)
    cone_3 = (0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b) ** (1 / 3)
    return (
        0.2104542553 * cone_1 + 0.7936177850 * cone_2 - 0.0040720468 * cone_3,
        1.9779984951 * cone_1 - 2.4285922050 * cone_2 + 0.4505937099 * cone_3,
        0.0259040371 * cone_1 + 0.7827717662 * cone_2 - 0.8086757660 * cone_3,
    )


class TestTheColours:
    def test_are_items_with_names_labels_and_hex(self):
        items = datasets.colours()
        assert isinstance(items, Items)
        assert (items.n, items.d) == (949, 3)
        row = items.index("cloudy blue")
        assert items.labels[row] == "Cloudy blue"
        assert len(set(items.labels)) == items.n
        # What people wrote is kept as an id; what is shown to others is fit to be.
        assert not [label for label in items.labels if re.search("shit|poo|piss|puke|vomit|snot|barf", label.lower())]
        assert items.labels[items.index("poo")] == "Walnut shell"
        assert items.data["hex"][row] == "#acc2d9"
        assert list(items.data) == ["hex"]
        assert np.all(items.appeal == 0)

    def test_are_read_once(self):
        assert datasets.colours() is datasets.colours()

    def test_are_matplotlibs_list_in_its_order(self):
        items = datasets.colours()
        ours = [(f"xkcd:{name}", code) for name, code in zip(items.ids, items.data["hex"], strict=True)]
        assert ours == [(name, code.lower()) for name, code in matplotlib.colors.XKCD_COLORS.items()]

    def test_are_where_their_hex_says_to_the_sixth_decimal(self):
        items = datasets.colours()
        expected = np.array([naive_oklab(rgb_from_hex(code)) for code in items.data["hex"]])
        assert np.abs(items.coordinates - expected).max() <= 0.5e-6 + 1e-12

    def test_come_back_as_the_same_hex_after_rounding(self):
        items = datasets.colours()
        assert [datasets.hex_from_oklab(point) for point in items.coordinates] == list(items.data["hex"])

    def test_can_be_scaled_for_a_search(self):
        scaled = datasets.colours().scaled()
        narrowest = np.linalg.eigvalsh(np.cov(scaled.coordinates, rowvar=False))[0]
        assert narrowest == pytest.approx(3 / 9, rel=1e-9)
        assert scaled.data["hex"] == datasets.colours().data["hex"]

    def test_file_has_the_columns_that_its_source_note_names(self):
        with (DATA / "xkcd_colours.csv").open(encoding="utf-8", newline="") as file:
            rows = list(csv.reader(file))
        assert rows[0] == ["id", "label", "hex", "l", "a", "b"]
        assert all(re.fullmatch(r"-?\d\.\d{6}", cell) for row in rows[1:] for cell in row[3:])
        # Apart from the coarse names, of which the note says how many there are.
        assert sum(row[1].lower() != row[0] for row in rows[1:]) == 28
        note = (DATA / "xkcd_colours.SOURCE.txt").read_text(encoding="utf-8")
        for fact in (
            "https://xkcd.com/color/rgb.txt",
            "CC0 1.0",
            "matplotlib.colors.XKCD_COLORS",
            "949",
            "28",
            *rows[0],
        ):
            assert fact in note

    def test_cost_nothing_until_they_are_asked_for(self):
        program = (
            "import sys, pairseek.datasets as d\n"
            "assert 'matplotlib' not in sys.modules\n"
            "assert d.colours.cache_info().currsize == 0\n"
            "assert d.colours().n == 949\n"
            "assert 'matplotlib' not in sys.modules\n"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


class TestOklab:
    def test_puts_white_and_black_on_the_axis_of_lightness(self):
        assert datasets.oklab_from_srgb([1.0, 1.0, 1.0]) == pytest.approx([1.0, 0.0, 0.0], abs=1e-6)
        assert datasets.oklab_from_srgb([0.0, 0.0, 0.0]) == pytest.approx([0.0, 0.0, 0.0], abs=1e-12)

    @pytest.mark.parametrize(
        ("code", "published"),
        [
            ("#ff0000", (0.62796, 0.22486, 0.12585)),
            ("#00ff00", (0.86644, -0.23389, 0.17950)),
            ("#0000ff", (0.45201, -0.03246, -0.31153)),
            ("#008000", (0.51975, -0.14030, 0.10768)),
        ],
    )
    def test_has_the_values_published_for_css_colours(self, code, published):
        # CSS Color 4 refits the matrices in double precision: four decimals agree
        assert datasets.oklab_from_srgb(rgb_from_hex(code)) == pytest.approx(published, abs=5e-5)

    @pytest.mark.parametrize(
        ("xyz", "published"),
        [
            ((0.950, 1.000, 1.089), (1.000, 0.000, 0.000)),
            ((1.000, 0.000, 0.000), (0.450, 1.236, -0.019)),
            ((0.000, 1.000, 0.000), (0.922, -0.671, 0.263)),
            ((0.000, 0.000, 1.000), (0.153, -1.415, -0.449)),
        ],
    )
    def test_has_ottossons_own_table_of_xyz_colours(self, xyz, published):
        # out of the screen's gamut, so by the matrices themselves; XYZ of the sRGB primaries from IEC 61966-2-1
        to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
        linear = np.linalg.solve(to_xyz, xyz)
        lab = np.cbrt(colours_module._CONES_FROM_LINEAR @ linear) @ colours_module._LAB_FROM_CONE_ROOTS.T
        assert lab == pytest.approx(published, abs=2e-3)

    def test_has_the_published_inverses(self):
        lms = [[1, 0.3963377774, 0.2158037573], [1, -0.1055613458, -0.0638541728], [1, -0.0894841775, -1.2914855480]]
        rgb = [
            [4.0767416621, -3.3077115913, 0.2309699292],
            [-1.2684380046, 2.6097574011, -0.3413193965],
            [-0.0041960863, -0.7034186147, 1.7076147010],
        ]
        assert np.abs(colours_module._CONE_ROOTS_FROM_LAB - lms).max() < 1e-7
        assert np.abs(colours_module._LINEAR_FROM_CONES - rgb).max() < 1e-7

    def test_goes_there_and_back_for_all_the_colours(self):
        rgb = np.array([rgb_from_hex(code) for code in datasets.colours().data["hex"]])
        assert np.abs(datasets.srgb_from_oklab(datasets.oklab_from_srgb(rgb)) - rgb).max() < 1e-12

    def test_keeps_the_shape_it_is_given(self):
        rgb = np.random.default_rng(0).random((4, 5, 3))
        lab = datasets.oklab_from_srgb(rgb)
        assert lab.shape == (4, 5, 3)
        assert lab[2, 3] == pytest.approx(naive_oklab(rgb[2, 3]), abs=1e-12)
        assert datasets.srgb_from_oklab(lab) == pytest.approx(rgb, abs=1e-12)

    def test_clips_what_no_screen_can_show(self):
        for lab in ([0.5, 0.6, 0.0], [1.4, 0.0, 0.0], [-0.3, 0.0, 0.0], [0.7, -0.5, 0.5]):
            rgb = datasets.srgb_from_oklab(lab)
            assert np.all((rgb >= 0) & (rgb <= 1))
            assert re.fullmatch("#[0-9a-f]{6}", datasets.hex_from_oklab(lab))
        assert datasets.hex_from_oklab([1.4, 0.0, 0.0]) == "#ffffff"
        assert datasets.hex_from_oklab([-0.3, 0.0, 0.0]) == "#000000"

    @pytest.mark.parametrize(
        ("function", "value", "message"),
        [
            (datasets.oklab_from_srgb, [1.0, 0.0], r"rgb has shape \(2,\): give three numbers per colour"),
            (datasets.oklab_from_srgb, [255, 0, 10], r"rgb runs from 0 to 255: .*divided by 255"),
            (datasets.oklab_from_srgb, [-0.1, 0.0, 0.0], "rgb runs from -0.1 to 0"),
            (datasets.srgb_from_oklab, 0.5, r"lab has shape \(\)"),
            (datasets.srgb_from_oklab, [0.5, np.nan, 0.0], "lab contains numbers that are not finite"),
            (datasets.hex_from_oklab, [[0.5, 0.0, 0.0]], r"lab has shape \(1, 3\): give one colour"),
        ],
    )
    def test_says_what_is_wrong(self, function, value, message):
        with pytest.raises(InvalidParameter, match=message):
            function(value)
