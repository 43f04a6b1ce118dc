"""Copies of pictures: their edges, colours and transparency, and what is removed."""

import io
import struct

import numpy as np
import pytest
from PIL import Image, ImageCms, ImageDraw

from pairseek.web.studies import media


def saved(image, **options):
    file = io.BytesIO()
    image.save(file, **options)
    return file.getvalue()


def shown(content):
    """The copies, as browsers decode them, by width."""
    return {made.width: Image.open(io.BytesIO(made.content)) for made in media.copies(1, "x", content)}


def star(size=1600):
    image = Image.new("RGB", (size, size), "#1b6fd0")
    angles = np.arange(10) * np.pi / 5
    radii = np.where(np.arange(10) % 2, 0.18, 0.45) * size
    points = np.column_stack([size / 2 + radii * np.sin(angles), size / 2 - radii * np.cos(angles)])
    ImageDraw.Draw(image).polygon([tuple(point) for point in points], fill="#d01b1b")
    return image


@pytest.mark.parametrize("width", media.WIDTHS)
def test_a_drawing_has_no_halos(width):
    """Every pixel is a mixture of the two colours of the drawing, whose red and blue go up and down together."""
    pixels = np.asarray(shown(saved(star(), format="PNG"))[width].convert("RGB")).astype(float)
    low, high = np.array([0x1B, 0x6F, 0xD0]), np.array([0xD0, 0x1B, 0x1B])
    share = (pixels - low) @ (high - low) / ((high - low) @ (high - low))
    away = np.abs(pixels - (low + share[..., None] * (high - low))).max()
    # Rounding moves each channel by at most a half, and the share with it.
    assert away <= 2
    assert share.min() >= -0.01
    assert share.max() <= 1.01


def test_a_photograph_is_not_stored_without_loss():
    rng = np.random.default_rng(1)
    noise = Image.fromarray(rng.integers(0, 255, (60, 80, 3), dtype=np.uint8)).resize((800, 600))
    copies = list(media.copies(1, "x", saved(noise, format="JPEG", quality=95)))
    assert [copy.width for copy in copies] == [320, 640, 800]
    assert all(b"VP8L" not in copy.content[:32] for copy in copies)
    drawn = list(media.copies(1, "x", saved(star(), format="PNG")))
    assert all(b"VP8L" in copy.content[:32] for copy in drawn)


GPS = {1: "N", 2: (52.0, 31.0, 12.0), 3: "E", 4: (13.0, 24.0, 18.0)}


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
def test_place_camera_and_comments_are_removed(kind):
    exif = Image.Exif()
    exif[271], exif[315] = "camera of ann", "Ann Example"
    exif[0x8825] = GPS
    xmp = b"<x:xmpmeta xmlns:x='adobe:ns:meta/'>Ann Example</x:xmpmeta>"
    content = saved(star(700), format=kind, exif=exif, **({} if kind == "PNG" else {"xmp": xmp}))
    assert b"Ann Example" in content
    assert Image.open(io.BytesIO(content)).getexif().get_ifd(0x8825)[1] == "N"
    for copy in media.copies(1, "x", content):
        opened = Image.open(io.BytesIO(copy.content))
        assert dict(opened.getexif()) == {}
        assert set(opened.info) & {"exif", "xmp", "icc_profile", "comment"} == set()
        assert b"Ann" not in copy.content
        assert b"EXIF" not in copy.content


@pytest.mark.parametrize("orientation", range(1, 9))
def test_every_orientation_is_turned_upright(orientation):
    upright = Image.new("RGB", (60, 40), "white")
    ImageDraw.Draw(upright).rectangle((0, 0, 29, 19), fill="red")
    turn = {
        2: Image.Transpose.FLIP_LEFT_RIGHT,
        3: Image.Transpose.ROTATE_180,
        4: Image.Transpose.FLIP_TOP_BOTTOM,
        5: Image.Transpose.TRANSPOSE,
        6: Image.Transpose.ROTATE_90,
        7: Image.Transpose.TRANSVERSE,
        8: Image.Transpose.ROTATE_270,
    }
    held = upright.transpose(turn[orientation]) if orientation in turn else upright
    exif = Image.Exif()
    exif[274] = orientation
    (copy,) = shown(saved(held, format="PNG", exif=exif)).values()
    assert np.array_equal(np.asarray(copy.convert("RGB")), np.asarray(upright))


def test_transparency_is_kept():
    image = Image.new("RGBA", (400, 400), (0, 0, 0, 0))
    ImageDraw.Draw(image).ellipse((50, 50, 350, 350), fill=(200, 30, 30, 255))
    copies = shown(saved(image, format="PNG"))
    for copy in copies.values():
        pixels = np.asarray(copy.convert("RGBA"))
        assert pixels[0, 0, 3] == 0
        assert pixels[pixels.shape[0] // 2, pixels.shape[1] // 2].tolist() == [200, 30, 30, 255]


def test_the_first_picture_of_an_animation_is_kept():
    frames = [Image.new("RGB", (50, 50), colour) for colour in ("red", "lime", "blue")]
    content = saved(frames[0], format="GIF", save_all=True, append_images=frames[1:], duration=100)
    (copy,) = shown(content).values()
    assert getattr(copy, "n_frames", 1) == 1
    assert copy.convert("RGB").getpixel((9, 9)) == (255, 0, 0)


def wide_profile():
    """An ICC profile with the primaries of Display P3 and a plain gamma of 2.2."""

    def fixed(value):
        return struct.pack(">i", round(value * 65536))

    def xyz(*values):
        return b"XYZ " + bytes(4) + b"".join(map(fixed, values))

    curve = b"curv" + bytes(4) + struct.pack(">IH", 1, round(2.2 * 256)) + bytes(2)
    text = b"desc" + bytes(4) + struct.pack(">I", 5) + b"wide\0" + bytes(79)
    tags = {
        b"desc": text,
        b"cprt": b"text" + bytes(4) + b"none\0\0\0\0",
        b"wtpt": xyz(0.9642, 1.0, 0.8249),
        b"rXYZ": xyz(0.5151, 0.2412, -0.0011),
        b"gXYZ": xyz(0.2919, 0.6922, 0.0419),
        b"bXYZ": xyz(0.1572, 0.0666, 0.7841),
        b"rTRC": curve,
        b"gTRC": curve,
        b"bTRC": curve,
    }
    table, body, at = struct.pack(">I", len(tags)), b"", 128 + 4 + 12 * len(tags)
    for name, content in tags.items():
        content += bytes(-len(content) % 4)
        table += name + struct.pack(">II", at + len(body), len(content))
        body += content
    head = bytes(4) + b"none" + b"\x02\x20\0\0" + b"mntrRGB XYZ " + bytes(12) + b"acsp" + bytes(28)
    head += fixed(0.9642) + fixed(1.0) + fixed(0.8249)
    profile = head + bytes(128 - len(head)) + table + body
    return struct.pack(">I", len(profile)) + profile[4:]


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "P"])
def test_colours_of_another_profile_are_converted_to_srgb(mode):
    profile = wide_profile()
    image = Image.new("RGB", (80, 60), (200, 100, 50)).convert(mode)
    colour = image.convert("RGB").getpixel((0, 0))
    (copy,) = shown(saved(image, format="PNG", icc_profile=profile)).values()
    expected = ImageCms.profileToProfile(
        Image.new("RGB", (1, 1), colour), ImageCms.ImageCmsProfile(io.BytesIO(profile)), ImageCms.createProfile("sRGB")
    ).getpixel((0, 0))
    assert np.abs(np.subtract(expected, colour)).max() > 10
    assert np.abs(np.subtract(copy.convert("RGB").getpixel((40, 30)), expected)).max() <= 1
    assert "icc_profile" not in copy.info


@pytest.mark.parametrize("profile", [b"no profile", wide_profile()[:200]])
def test_a_broken_profile_changes_nothing(profile):
    (copy,) = shown(saved(Image.new("RGB", (80, 60), (200, 100, 50)), format="PNG", icc_profile=profile)).values()
    assert copy.convert("RGB").getpixel((40, 30)) == (200, 100, 50)


def test_a_grey_picture_with_a_profile_for_colours_keeps_its_greys():
    (copy,) = shown(saved(Image.new("L", (80, 60), 120), format="PNG", icc_profile=wide_profile())).values()
    assert len(set(copy.convert("RGB").getpixel((40, 30)))) == 1
