"""Set-up: the virtual environment, downloads, models, browsers, and the order of all steps."""
