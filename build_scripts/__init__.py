"""Builds, checks and starts the project: `python3 -m build_scripts <verb>`.

Standard library only until .venv stands. A verb is one line in `verbs.py` and a module with
`run(argv) -> int`. What stays out: anything that the page or the engine needs at run time.
"""
