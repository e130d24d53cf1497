"""Shaders written from descriptions in Chromium, which refuses texts that wgpu takes; operators' cases run on wgpu."""

from __future__ import annotations

from playwright.sync_api import Page
from tests.webgpu.devices import HARDWARE
from tests.webgpu.test_lowered_cases import ALL, schedule_of, steps_of, text_of

COMPILE = """async (texts) => {
  const device = await (await navigator.gpu.requestAdapter()).requestDevice();
  const infos = await Promise.all(texts.map((code) => device.createShaderModule({code}).getCompilationInfo()));
  const line = (text, number) => text.split("\\n")[number - 1];
  return infos.flatMap((info, i) => info.messages
    .filter((each) => each.type === "error").map((each) => `${each.message}: ${line(texts[i], each.lineNum)}`));
}"""


def test_described_kernels_are_shaders_for_chromium(page: Page) -> None:
    steps = [step for op, case in ALL for step in steps_of(schedule_of(op, case, HARDWARE))]
    texts = {text_of(step) for step in steps if step.dispatch.shader == "described"}
    assert len(texts) > 60
    page.route("**", lambda route: route.fulfill(body="", content_type="text/html"))
    page.goto("http://127.0.0.1/")  # WebGPU needs a secure context
    assert page.evaluate(COMPILE, sorted(texts)) == []
    assert page.evaluate(COMPILE, ["fn sum(a: u32) -> u32 { return a + 1u >> 1u; }"]), "what it refuses, it tells"
