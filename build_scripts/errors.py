"""The one error of the build: a sentence for a person, no traceback."""


class BuildError(Exception):
    """Something outside of the code stands in the way; the message says what, and what to do."""
