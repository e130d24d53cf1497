"""Calls of the judge of tasks into a page's engine: each has a deadline, and the one behind a missed one works."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from build_scripts.errors import BuildError
from build_scripts.judge.page_engine_calls import PageEngine

ENDLESS = "while True:\n    pass"
WAITING = "import asyncio\nawait asyncio.Future()"
LIMIT_S = 120.0  # of a call that is answered


@pytest.mark.parametrize("code", [ENDLESS, WAITING], ids=["computes", "waits"])
def test_a_call_that_does_not_end_costs_its_deadline_and_no_more(code: str) -> None:
    def calls() -> None:
        with PageEngine({}) as engine:
            assert engine.call("kept = 20\nkept + 1", LIMIT_S) == "21"
            assert engine.call("kept + 2", LIMIT_S) == "22"
            with pytest.raises(BuildError, match="KeyError: 'none'"):
                engine.call("{}['none']", LIMIT_S)
            with pytest.raises(BuildError, match="no answer within 1 s"):
                engine.call(code, 1.0)
            assert engine.call("3 * 7", LIMIT_S) == "21"

    with ThreadPoolExecutor(1) as apart:  # a thread has one driver, and that of this one is the other tests'
        apart.submit(calls).result()
