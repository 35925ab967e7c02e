"""What hatchling runs before it makes a wheel or an sdist: the dashboard is built first, where Node.js is there."""

from __future__ import annotations

import os
import subprocess
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class DashboardHook(BuildHookInterface[Any]):
    """Builds the dashboard into the package. An editable install is left alone: `scripts/setup` sees to that."""

    PLUGIN_NAME = "dashboard"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build it; a machine that cannot is told so, and gets everything else."""
        if version != "editable":
            subprocess.run([os.path.join(self.root, "scripts", "web"), "try"], check=True)
