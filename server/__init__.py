"""Serves the page and the bytes. Knows nothing of tensors: never imports webinfer or numpy."""
