"""Pictures come in by the file dialogue, by dropping and by pasting; other files are refused with a clear message."""

from __future__ import annotations

import base64
import io
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from build_scripts.paths import WEB
from e2e_tests.pages import DemoPage

Demo = Callable[..., DemoPage]
ORIENTATION = 0x0112  # EXIF tag
TURNED_RIGHT = 6  # "the top is on the right-hand side of the stored rows"
FILM = """async () => {
  const canvas = Object.assign(document.createElement("canvas"), { width: 160, height: 120 });
  const context = canvas.getContext("2d");
  const recorder = new MediaRecorder(canvas.captureStream(20));
  const parts = [];
  recorder.ondataavailable = ({ data }) => parts.push(data);
  const ended = new Promise((resolve) => (recorder.onstop = resolve));
  recorder.start();
  for (const colour of ["red", "blue", "red", "blue", "red", "blue"]) {
    context.fillStyle = colour;
    context.fillRect(0, 0, 160, 120);
    await new Promise((resolve) => setTimeout(resolve, 60));
  }
  recorder.stop();
  await ended;
  return btoa(String.fromCharCode(...new Uint8Array(await new Blob(parts).arrayBuffer())));
}"""  # as WebM, in base64


def _base64(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


def _centre(face: dict) -> tuple[float, float]:
    box = face["box"]
    return box["left"] + box["width"] / 2, box["top"] + box["height"] / 2


@pytest.fixture
def moved_photo(photo: Path, tmp_path: Path) -> Path:
    """The upper left of the sample photo on a wider, grey ground, 100 pixels to the right and 30 down."""
    ground = Image.new("RGB", (520, 440), (128, 128, 128))
    ground.paste(Image.open(photo).convert("RGB").crop((0, 0, 400, 400)), (100, 30))
    path = tmp_path / "moved.jpg"
    ground.save(path, quality=95)
    return path


def test_a_chosen_file_is_shown_and_searched(face_page: DemoPage, moved_photo: Path) -> None:
    page, first = face_page, face_page.wait_for_result()
    page.choose(moved_photo)
    result = page.wait_for_result(after=first["count"])
    assert result["source"] == "picture"
    assert result["image"] == {"width": 520, "height": 440}
    x, y = _centre(first["faces"][0])
    assert _centre(result["faces"][0]) == pytest.approx((x + 100, y + 30), abs=8)
    assert page.page.locator("#picture").is_visible()
    assert page.page.locator("#sample").is_hidden()


def test_the_same_file_can_be_chosen_twice(face_page: DemoPage, moved_photo: Path) -> None:
    page, count = face_page, face_page.count
    for _ in range(2):
        page.choose(moved_photo)
        count = page.wait_for_result(after=count)["count"]


def test_a_file_chosen_before_the_engine_is_ready_is_searched_then(demo: Demo, moved_photo: Path) -> None:
    page = demo("?backend=wasm")
    page.choose(moved_photo)
    result = page.wait_for(
        "result of the file", lambda: page.result if (page.result or {}).get("source") == "picture" else None
    )
    assert result["image"]["width"] == 520
    assert len(result["faces"]) == 1


def test_a_picture_can_be_dropped(face_page: DemoPage, moved_photo: Path) -> None:
    page, count = face_page, face_page.count
    page.drop("moved.jpg", "image/jpeg", _base64(moved_photo))
    assert len(page.wait_for_result(after=count)["faces"]) == 1
    assert page.page.evaluate("document.getElementById('stage').className") == "stage"


def test_a_picture_can_be_pasted_and_may_be_a_vector_drawing(face_page: DemoPage, moved_photo: Path) -> None:
    page, count = face_page, face_page.count
    page.paste("image.png", "image/jpeg", _base64(moved_photo))
    pasted = page.wait_for_result(after=count)
    assert pasted["image"]["width"] == 520
    held = f'<image href="data:image/jpeg;base64,{_base64(moved_photo)}" width="52" height="44"/>'
    drawing = f'<svg xmlns="http://www.w3.org/2000/svg" width="52" height="44">{held}</svg>'
    page.paste("drawing.svg", "image/svg+xml", base64.b64encode(drawing.encode()).decode())
    drawn = page.wait_for_result(after=pasted["count"])
    assert drawn["image"] == {"width": 1024, "height": 866}  # of vectors: as large as the page shows it
    assert len(drawn["faces"]) == 1


def test_a_picture_that_says_it_lies_on_its_side_is_turned_upright(
    face_page: DemoPage, photo: Path, tmp_path: Path
) -> None:
    page, first = face_page, face_page.wait_for_result()
    turned = Image.open(photo).convert("RGB").resize((512, 512)).rotate(90)
    exif = Image.Exif()
    exif[ORIENTATION] = TURNED_RIGHT
    turned.save(tmp_path / "turned.jpg", quality=95, exif=exif)
    page.choose(tmp_path / "turned.jpg")
    result = page.wait_for_result(after=first["count"])
    assert _centre(result["faces"][0]) == pytest.approx(_centre(first["faces"][0]), abs=6)


def test_boxes_are_in_pixels_of_the_file_of_enormous_photos_and_of_drawings(
    face_page: DemoPage, photo: Path, tmp_path: Path
) -> None:
    Image.open(photo).convert("RGB").resize((6144, 6144)).save(tmp_path / "enormous.jpg")
    picture = f'<image href="data:image/png;base64,{_base64(photo)}" width="1024" height="1024"/>'
    drawing = f'<svg xmlns="http://www.w3.org/2000/svg" width="1024" height="1024">{picture}</svg>'
    (tmp_path / "drawing.svg").write_text(drawing)
    page, first = face_page, face_page.wait_for_result()
    for name, side, near in (("enormous.jpg", 6144, 30), ("drawing.svg", 1024, 10)):
        count = page.count  # before the choice: its result may be there before anybody asks
        page.choose(tmp_path / name)
        result = page.wait_for_result(after=count)
        assert result["image"] == {"width": side, "height": side}
        times = side / first["image"]["width"]
        wanted = [times * place for place in _centre(first["faces"][0])]
        assert _centre(result["faces"][0]) == pytest.approx(wanted, abs=near)


def test_a_picture_without_a_face_says_zero(face_page: DemoPage, tmp_path: Path) -> None:
    Image.new("RGB", (64, 48), (20, 120, 220)).save(tmp_path / "blue.png")
    page, count = face_page, face_page.count
    page.choose(tmp_path / "blue.png")
    assert page.wait_for_result(after=count)["faces"] == []
    assert page.text("#found") == "Faces found: 0"


def test_a_film_plays_and_every_frame_is_searched(face_page: DemoPage) -> None:
    page, count = face_page, face_page.count
    film = page.page.evaluate(FILM)
    for name, type in (("film.webm", "video/webm"), ("film.webm", "")):  # systems do not know every type
        page.drop(name, type, film)
        page.wait_for("frames", lambda before=count: page.count > before + 8 and page.result["source"] == "video")
        count = page.count
    assert page.page.evaluate("document.getElementById('video').paused") is False
    assert page.error is None


def test_what_is_no_picture_is_refused_and_the_next_picture_works(
    face_page: DemoPage, photo: Path, moved_photo: Path, tmp_path: Path
) -> None:
    page, count = face_page, face_page.count
    for name, content, said in (
        ("notes.txt", b"These are words.", "not a picture"),
        ("page.png", b"<!doctype html><title>404</title>", "not a picture"),
        ("empty.png", b"", "is empty (0 bytes)"),
        ("half.png", photo.read_bytes()[:40], "not a picture"),
        ("phone.heic", b"\0\0\0\x18ftypheic", "send it as JPEG"),
    ):
        (tmp_path / name).write_bytes(content)
        page.choose(tmp_path / name)
        error = page.wait_for_error("bad-image", name)
        assert said in error["message"]
    page.choose(moved_photo)
    assert page.wait_for_result(after=count)["image"]["width"] == 520
    assert page.error is None
    assert page.page.locator("#message").is_hidden()


def test_a_message_can_be_closed(face_page: DemoPage, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("words")
    page = face_page
    page.choose(tmp_path / "notes.txt")
    page.wait_for_error("bad-image")
    page.page.get_by_role("button", name="Close").click()
    assert page.page.locator("#message").is_hidden()
    assert page.error is None


def _head(kind: str, width: int, height: int) -> bytes:
    """A file of the smallest size that claims to be so large."""
    Image.new("RGB", (8, 8)).save(stream := io.BytesIO(), kind, **({"lossless": True} if kind == "WEBP" else {}))
    data = bytearray(stream.getvalue())
    if kind == "PNG":
        data[16:24] = struct.pack(">II", width, height)
        data[29:33] = struct.pack(">I", zlib.crc32(data[12:29]))
    elif kind == "BMP":
        data[18:26] = struct.pack("<ii", width, -height)
    elif kind == "GIF":
        data[6:10] = struct.pack("<HH", width, height)
    elif kind == "WEBP":  # one bit of them is the version's
        data[21:25] = struct.pack("<I", (width - 1) | (height - 1) << 14)
    elif kind == "AVIF":
        at = data.index(b"ispe")
        data[at + 8 : at + 16] = struct.pack(">II", width, height)
    else:
        at = data.index(b"\xff\xc0")
        data[at + 5 : at + 9] = struct.pack(">HH", height, width)
        exif = b"\xff\xe1" + struct.pack(">H", 65535) + bytes(65533)
        data[2:2] = 3 * exif  # the size lies behind the first 64 kB
    return bytes(data)


SIZES = """async ([url, files]) => {
  const { declaredSize } = await import(url);
  const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  return Promise.all(files.map(async (text) => declaredSize(new Blob([bytes(text)]))));
}"""


def test_a_picture_s_size_is_read_before_it_is_decoded(demo: Demo, tmp_path: Path) -> None:
    page = demo("?backend=wasm", broken=("**/engine_worker.js", lambda route: None))  # needs no engine
    kinds = [kind for kind in ("PNG", "JPEG", "GIF", "BMP", "WEBP", "AVIF") if kind in Image.SAVE]
    heads = [_head(kind, 16000, 15000) for kind in kinds]
    cut = [head[:20] for head in heads]
    texts = [base64.b64encode(data).decode() for data in (*heads, *cut, b"words", b"")]
    page.page.route("**/picture_head.js", lambda route: route.fulfill(path=WEB / "static/media/picture_head.js"))
    found = page.page.evaluate(SIZES, ["/picture_head.js", texts])
    assert found[: len(kinds)] == len(kinds) * [{"width": 16000, "height": 15000}]
    assert found[-2:] == [None, None]
    (tmp_path / "huge.png").write_bytes(_head("PNG", 20000, 20000))
    page.page.evaluate("() => { self.createImageBitmap = () => Promise.reject(new Error('it was decoded')); }")
    page.choose(tmp_path / "huge.png")
    assert "20,000 × 20,000 pixels" in page.wait_for_error("limit")["message"]
