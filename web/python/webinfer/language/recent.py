"""Cuts a chat that outgrows the context: which of its messages the model still reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from webinfer.language.generator import TextGenerator

FULL, CLEARED = 0.75, 0.5  # shares of the context from which on the oldest messages go, and down to which
Messages = Sequence[Mapping[str, str]]


class RecentMessages:
    """The most recent messages of a chat; `left_out` is the number of oldest messages that were dropped."""

    def __init__(self, generator: TextGenerator) -> None:
        self._generator, self.left_out = generator, 0

    def of(self, messages: Messages) -> list[Mapping[str, str]]:
        """The messages; without the oldest ones if they fill most of the context. System instructions stay.

        Raises:  InputError if these are not messages
        """
        told = [message for message in messages[:1] if message.get("role") == "system"]
        said = messages[len(told) :]

        def share() -> float:
            return len(self._generator.tokenize([*told, *said[self.left_out :]])) / self._generator.model.context

        self.left_out *= self.left_out < len(said)  # else this is another chat
        if share() > FULL:
            while self.left_out + 2 < len(said) and share() > CLEARED:
                self.left_out += 2
        return [*told, *said[self.left_out :]]
