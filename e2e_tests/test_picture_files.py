"""A page and CPython see the same pixels in a picture file."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
from playwright.sync_api import Browser

import webinfer.tasks.image
from e2e_tests.picture_files import picture_files

PIXELS = """async (file) => {
  const bytes = Uint8Array.from(atob(file), (letter) => letter.charCodeAt(0));
  const bitmap = await createImageBitmap(new Blob([bytes]));
  const context = new OffscreenCanvas(bitmap.width, bitmap.height).getContext("2d", { willReadFrequently: true });
  context.drawImage(bitmap, 0, 0);
  const pixels = context.getImageData(0, 0, bitmap.width, bitmap.height).data;
  return [bitmap.width, bitmap.height, btoa(String.fromCharCode(...pixels))];
}"""  # as web/static/media/picture.js opens a file


def in_cpython(file: bytes) -> Any:
    """The picture's pixels [height, width, 3]."""
    picture = webinfer.tasks.image.read_image(file, webinfer.host.current())
    first, row, pixel, channel = picture.steps
    y, x, c = np.indices((picture.height, picture.width, 3))
    data = np.frombuffer(bytes(memoryview(picture.pixels).cast("B")), np.uint8)
    return data[first + y * row + x * pixel + c * channel]


def test_a_page_and_cpython_see_the_same_pixels(browser: Browser) -> None:
    page, files, different = browser.new_page(), picture_files(), {}
    assert len(files) >= 40
    for name, file in files.items():
        width, height, text = page.evaluate(PIXELS, base64.b64encode(file).decode())
        shown = np.frombuffer(base64.b64decode(text), np.uint8).reshape(height, width, 4).astype(int)
        here = in_cpython(file).astype(int)
        assert here.shape == (height, width, 3), name
        alpha = shown[..., 3:] / 255  # below 255, decoders round colours times alpha each in a way of its own
        if (worst := np.abs((shown[..., :3] - here) * alpha).max()) > (0 if alpha.all() and alpha.min() == 1 else 1.5):
            different[name] = worst
    page.close()
    assert not different
