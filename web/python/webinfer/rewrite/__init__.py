"""Rewrite rules: a pattern, and what takes its place. `matcher` finds patterns in graphs; the rules lie by meaning."""
