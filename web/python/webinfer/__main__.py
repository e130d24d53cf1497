"""`python3 -m webinfer`: the command line."""

import sys

from webinfer.cli import main

sys.exit(main())
