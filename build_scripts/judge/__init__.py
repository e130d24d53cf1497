"""Is it right: formats, lint, types, sizes, tests, models, conformance cases, damaged files."""
