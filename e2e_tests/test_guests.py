"""The wheel of users in a third-party page: stock Pyodide and micropip. `judge compat-matrix` tries more."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser

from build_scripts.paths import WHEELS
from build_scripts.places.probe import MODEL
from build_scripts.places.pyodide_places import in_browser
from build_scripts.site.wheel import wheel_name

pytestmark = pytest.mark.skipif(
    not ((WHEELS / wheel_name()).is_file() and MODEL.is_file()), reason="not built: python3 -m build_scripts setup"
)


def test_one_install_runs_a_model_with_threads_and_on_the_gpu_in_a_worker_that_configures_nothing(
    browser: Browser,
) -> None:
    answer = in_browser(browser, worker=True, isolated=True)
    assert set(answer.backends) == {"wasm", "webgpu", "without await"}
    assert answer.capabilities["threads"][0] == (int(answer.threads) > 1)
    assert answer.capabilities["isolated"][0]
