"""Which modules a site's engine leaves out, and where they are: the site's build writes this file anew.

Here and in wheels, which leave nothing out, the table is empty.
"""

# module -> name of its part among the site's files, SHA-256 of the part
PARTS: dict[str, tuple[str, str]] = {}
