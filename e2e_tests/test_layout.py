"""The page on narrow and wide screens, light and dark, by keyboard and for screen readers."""

from __future__ import annotations

from collections.abc import Callable

from e2e_tests.pages import DemoPage

Demo = Callable[..., DemoPage]
TEXTS = ("h1", ".top p", "#pick", "#camera", "#found", "#backend", ".number dt", ".number output", ".hint")
FOCUS = "document.activeElement.id || document.activeElement.value || document.activeElement.tagName"
RATIO = """(selector) => {
  const node = document.querySelector(selector);
  const rgb = (text) => text.match(/[\\d.]+/g).map(Number);
  let ground = [0, 0, 0, 0];
  for (let at = node; at && !ground[3]; at = at.parentElement) {
    const [r, g, b, a = 1] = rgb(getComputedStyle(at).backgroundColor);
    ground = [r, g, b, a];
  }
  const light = ([r, g, b]) => [r, g, b].map((c) => c / 255)
    .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const [a, b] = [light(rgb(getComputedStyle(node).color)), light(ground)].sort((x, y) => y - x);
  return (a + 0.05) / (b + 0.05);
}"""


def wait_for_examples(page: DemoPage) -> int:
    """How many examples there are, once they are there: they come behind the first result."""
    buttons = page.page.locator("[data-example]")
    found: int = page.wait_for("examples", buttons.count)
    return found


def test_nothing_moves_when_examples_come(demo: Demo) -> None:
    """Else a click on what lies below them hits something else."""
    page = demo("?backend=wasm", viewport={"width": 360, "height": 780})
    page.page.locator(".examples").wait_for(state="attached")
    place = """() => {
      const { bottom } = document.querySelector(".examples").getBoundingClientRect();
      return [bottom - document.querySelector("#controls").getBoundingClientRect().bottom,
              document.querySelectorAll("[data-example]").length];
    }"""
    before, none = page.page.evaluate(place)
    assert wait_for_examples(page) > none == 0
    assert page.page.evaluate(place)[0] == before


def test_nothing_is_wider_than_the_screen(demo: Demo) -> None:
    page = demo("?backend=wasm", viewport={"width": 360, "height": 780})
    page.wait_for_result()
    wait_for_examples(page)
    page.open_tools()
    for box in ("capabilities-box", "plan-box"):
        page.page.locator(f"#{box} summary").click()
    page.wait_for("plan", lambda: page.page.locator("#plan table").count())
    for width in (360, 768, 1600):
        page.page.set_viewport_size({"width": width, "height": 780})
        assert page.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, width


def test_texts_stand_out_from_their_ground(face_page: DemoPage) -> None:
    page = face_page
    for scheme in ("light", "dark"):
        page.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # colours change at once
        for selector in TEXTS:
            assert page.page.evaluate(RATIO, selector) >= 4.5, (scheme, selector)
        ground = page.page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
        assert (sum(map(int, ground[4:-1].split(","))) < 200) == (scheme == "dark")


def test_everything_can_be_reached_and_used_by_keyboard(demo: Demo) -> None:
    page = demo("?backend=wasm")
    count = page.wait_for_result()["count"]
    examples = wait_for_examples(page)
    keyboard, order = page.page.keyboard, []
    for _ in range(20 + examples):
        keyboard.press("Tab")
        order.append(page.page.evaluate(FOCUS))
    first = order.index("pick")
    # Links to the controls, home, and those of the navigation; then its menu for developers and the language.
    assert order[:first] == [*(first - 2) * ["A"], "BUTTON", "language"], order
    assert order[first : first + 3 + examples] == ["pick", "camera", "use-sample", *(examples * ["BUTTON"])], order
    following = order[first + 3 + examples :]
    assert following[:4] == ["download-picture", "download-json", "download-csv", "copy-link"], order
    assert following[4:7] == ["0.5", "model", "wasm"], order
    page.page.locator("#use-sample").focus()
    keyboard.press("Enter")
    count = page.wait_for_result(after=count)["count"]
    page.page.locator("#backends input[value=wasm]").focus()
    keyboard.press("ArrowLeft")  # to WebGPU
    assert page.wait_for_result(after=count)["backend"] == "webgpu"
    page.page.locator("#tools > summary").focus()
    keyboard.press("Space")
    page.page.locator("#plan-box summary").focus()
    keyboard.press("Space")
    page.wait_for("plan", lambda: page.page.locator("#plan table").count())


def test_focus_is_visible(face_page: DemoPage) -> None:
    page = face_page
    for selector in ("#pick", "#camera", "#tools > summary"):
        page.page.locator(selector).focus()
        page.page.keyboard.press("Shift+Tab")
        page.page.keyboard.press("Tab")
        width = page.page.evaluate("getComputedStyle(document.activeElement).outlineWidth")
        assert float(width.removesuffix("px")) >= 2, selector


def test_controls_and_pictures_have_names(face_page: DemoPage) -> None:
    page = face_page
    assert page.page.get_by_role("group", name="Run on").get_by_role("radio").count() == 3
    for name in ("Choose a picture", "Start the camera", "Sample photo"):
        assert page.page.get_by_role("button", name=name).count() == 1
    assert page.page.get_by_role("img", name="sample photo").count() == 1
    rows = page.page.get_by_role("table", name="Faces found").get_by_role("row")
    assert rows.count() == 2  # its head, and one face


def test_the_plan_is_a_table_with_every_step(face_page: DemoPage) -> None:
    page = face_page
    page.open_tools()
    page.page.locator("#plan-box summary").click()
    page.wait_for("plan", lambda: page.page.locator("#plan table").count())
    heads = page.page.locator("#plan th").all_inner_texts()
    assert {"op", "backend", "kernel", "why"} <= set(heads)
    rows = page.page.locator("#plan tbody tr").count()
    assert rows > 10
    assert f"{rows} steps" in page.text("#plan-summary")


def test_the_page_answers_while_the_engine_starts(demo: Demo) -> None:
    page = demo("?backend=wasm")
    page.page.evaluate(
        """() => {
          self.longest = 0;
          let last = performance.now();
          const tick = () => {
            const now = performance.now();
            self.longest = Math.max(self.longest, now - last);
            last = now;
            setTimeout(tick, 10);
          };
          tick();
        }"""
    )
    begin = page.page.evaluate("performance.now()")
    page.wait_for_result()
    whole = page.page.evaluate("performance.now()") - begin
    # Milliseconds without an answer: an engine on the page's own thread would take nearly all of them.
    assert page.page.evaluate("self.longest") < max(1000, whole / 2)


def test_the_menu_for_developers_closes_on_escape_and_on_a_click_beside_it(face_page: DemoPage) -> None:
    page = face_page
    button, menu = page.page.get_by_role("button", name="Developers"), page.page.locator("#developers")
    for size in ({"width": 1280, "height": 800}, {"width": 360, "height": 780}):
        page.page.set_viewport_size(size)  # type: ignore[arg-type]
        assert not menu.is_visible()
        button.click()
        assert menu.get_by_role("link", name="Browser support").is_visible()
        box = menu.bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= size["width"]
        page.page.keyboard.press("Escape")
        assert not menu.is_visible()
        button.click()
        page.page.mouse.click(10, 300)
        assert not menu.is_visible()
