"""Checks that begin ahead of their turn."""

import sys

import pytest

from build_scripts.judge.check import begun


def test_a_command_that_began_ahead_says_its_words_and_status_in_its_turn(capsys: pytest.CaptureFixture[str]) -> None:
    end = begun([sys.executable, "-c", "print('words'); raise SystemExit(3)"])
    assert capsys.readouterr().out == ""
    assert end() == 3
    assert capsys.readouterr().out == "words\n"
