"""Picture files of every kind that pages and CPython read, made by Pillow: the same scene, small."""

from __future__ import annotations

import io
import struct
import zlib
from typing import Any

import numpy as np
from PIL import Image, ImageCms

WIDTH, HEIGHT = 64, 48
ORIENTATION = 0x0112  # EXIF tag


def encoded(image: Any, format: str, **options: Any) -> bytes:
    """The file of an image."""
    buffer = io.BytesIO()
    image.save(buffer, format, **options)
    return buffer.getvalue()


def _turned(number: int) -> Any:
    found = Image.Exif()
    found[ORIENTATION] = number
    return found


def _png_of_16_bits(pixels: Any, colour_type: int) -> bytes:
    """A PNG of 16 bits a channel, which Pillow does not write."""
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in pixels)
    head = struct.pack(">IIBBBBB", WIDTH, HEIGHT, 16, colour_type, 0, 0, 0)
    file = b"\x89PNG\r\n\x1a\n"
    for kind, data in ((b"IHDR", head), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")):
        file += struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    return file


def picture_files() -> dict[str, bytes]:
    """Files by what is special about them; those of 16 bits and with alpha too."""
    rng = np.random.default_rng(3)
    small = Image.fromarray(rng.integers(0, 256, (12, 16, 3), np.uint8))
    rgb = small.resize((WIDTH, HEIGHT), Image.Resampling.BICUBIC)
    scene, deep = np.asarray(rgb), rng.integers(0, 65536, (HEIGHT, WIDTH, 4)).astype(np.uint16)
    steps = Image.fromarray(rng.integers(0, 256, (6, 8), np.uint8)).resize((WIDTH, HEIGHT), Image.Resampling.NEAREST)
    alpha = np.asarray(steps).copy()
    alpha[:8], alpha[40:] = 0, 255
    rgba, grey, few = Image.fromarray(np.dstack([scene, alpha])), rgb.convert("L"), rgb.quantize(32)
    key = Image.fromarray(np.where(np.arange(WIDTH)[None, :, None] < 20, np.uint8(7), scene))
    opaque = np.dstack([deep[..., :3], np.full((HEIGHT, WIDTH), 65535, np.uint16)])
    srgb = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    found = {f"JPEG, orientation {n}": encoded(rgb, "JPEG", quality=95, exif=_turned(n)) for n in range(1, 9)}
    found |= {f"PNG, orientation {n}": encoded(rgb, "PNG", exif=_turned(n)) for n in range(1, 9)}
    found |= {f"JPEG, subsampling {n}": encoded(rgb, "JPEG", quality=85, subsampling=n) for n in range(3)}
    return found | {
        "JPEG, progressive": encoded(rgb, "JPEG", quality=90, progressive=True),
        "JPEG, grey": encoded(grey, "JPEG", quality=95),
        "JPEG, CMYK": encoded(rgb.convert("CMYK"), "JPEG", quality=95),
        "JPEG, sRGB profile": encoded(rgb, "JPEG", quality=95, icc_profile=srgb),
        "PNG": encoded(rgb, "PNG"),
        "PNG, alpha": encoded(rgba, "PNG"),
        "PNG, grey": encoded(grey, "PNG"),
        "PNG, grey and alpha": encoded(rgba.convert("LA"), "PNG"),
        "PNG, palette": encoded(few, "PNG"),
        "PNG, 1 bit": encoded(rgb.convert("1"), "PNG"),
        "PNG, transparent index": encoded(few, "PNG", transparency=3),
        "PNG, transparent colour": encoded(key, "PNG", transparency=(7, 7, 7)),
        "PNG, 16 bits grey": encoded(Image.fromarray(deep[..., 0].copy()), "PNG"),
        "PNG, 16 bits": _png_of_16_bits(deep[..., :3], 2),
        "PNG, 16 bits, opaque alpha": _png_of_16_bits(opaque, 6),
        "GIF": encoded(few, "GIF"),
        "GIF, transparent index": encoded(few, "GIF", transparency=3),
        "GIF, several frames": encoded(few, "GIF", save_all=True, append_images=[few.transpose(3)]),
        "BMP": encoded(rgb, "BMP"),
        "BMP, grey": encoded(grey, "BMP"),
        "WebP, lossless": encoded(rgb, "WEBP", lossless=True),
        "WebP": encoded(rgb, "WEBP", quality=90),
        "WebP, alpha": encoded(rgba, "WEBP", lossless=True, exact=True),
        "WebP, orientation 6": encoded(rgb, "WEBP", lossless=True, exif=_turned(6)),
        "ICO": encoded(rgba.crop((0, 0, 48, 48)), "ICO", sizes=[(48, 48)]),
    }
