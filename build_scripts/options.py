"""Options of verbs that know only switches: anything else is refused before work begins."""

import argparse


def switches(verb: str, what: str, argv: list[str], **known: str) -> argparse.Namespace:
    """The switches that argv sets; `known` has each one's name and what it does.

    Raises: SystemExit with status 2 at an unknown argument, with status 0 at --help.
    """
    parser = argparse.ArgumentParser(prog=f"python3 -m build_scripts {verb}", description=what)
    for name, help_text in known.items():
        parser.add_argument(f"--{name}", action="store_true", help=help_text)
    return parser.parse_args(argv)
