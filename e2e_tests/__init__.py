"""Promises of the demo page, kept in a real Chromium against the real server; never looks into webinfer."""
