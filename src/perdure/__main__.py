"""`python -m perdure`."""

from __future__ import annotations

import sys

from perdure.cli.main import main

sys.exit(main())
