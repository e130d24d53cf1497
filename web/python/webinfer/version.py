"""The engine's version, as pyproject.toml has it. Imports nothing of ours."""

VERSION = "0.2.0"
