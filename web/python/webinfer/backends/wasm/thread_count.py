"""Whether a plan's threads are worth waiting for: where other work takes a core from them, one thread is faster."""

from __future__ import annotations

from collections import deque

# Runs before a trial; their number doubles with each trial that changes nothing. With 48 after a lost trial BlazeFace
# on two cores took 0.75 to 0.8 ms from the start on, with 384 1.4 at first (2026-11-23).
FIRST, LONGEST = 24, 384
LOST = 0.03  # share of one thread's time that trials of the team may cost: what takes its core may end at any time
ABORT_RATIO = 2  # times the usual time: a run that ends a trial
TRIALS = {False: 2, True: 6}  # runs of a trial alone, and of one with the team, whose runs differ more
RECENT = 8  # runs that the usual time is the mean of: not the first ones, whose machine code is not the final one
WORSE = 1.25  # the usual time, over that at the last trial, from which the next trial comes soon
MARGIN = 0.95  # of the usual time: what a trial must stay below


class ThreadCountController:
    """Tries now and then how long a run takes the other way, and keeps to the faster one.

    Units: milliseconds
    """

    def __init__(self) -> None:
        self._team, self._recent, self._tried = True, deque[float](maxlen=RECENT), 0.0
        self._pause = self._left = FIRST
        self._trial: list[float] | None = None  # times of the trial that is under way

    @property
    def team(self) -> bool:
        """Whether all threads do the next run; else one does it alone."""
        return self._team is (self._trial is None)

    @property
    def _usual(self) -> float:
        return sum(self._recent) / len(self._recent)

    def took(self, ms: float) -> None:
        """Notes the time of a run that went as `team` said."""
        if self._trial is not None:
            self._trial.append(ms)
            if len(self._trial) == TRIALS[not self._team] or ms > ABORT_RATIO * self._usual:
                self._judge(self._trial)
            return
        self._recent.append(ms)
        self._left -= 1
        if self._tried and self._usual > self._tried * WORSE:
            self._left, self._pause, self._tried = min(self._left, RECENT), FIRST, self._usual
        if self._left <= 0:
            self._trial = []

    def _judge(self, trial: list[float]) -> None:
        """Ends a trial with runs of these times."""
        ms, usual = sum(trial) / len(trial), self._usual
        if ms < usual * MARGIN:
            self._team, self._pause = not self._team, FIRST
            self._recent = deque([ms], RECENT)
        else:
            worth = LONGEST if self._team else max(FIRST, int(len(trial) * (ms / usual - 1) / LOST))
            self._pause = min(2 * self._pause, worth, LONGEST)
        self._tried, self._left, self._trial = self._usual, self._pause, None
