"""`perdure jobs submit ID TEXT`: write a line to a job's standard input."""

from __future__ import annotations

import argparse

from perdure.cli._setup import Setup, with_setup
from perdure.cli.jobs_write import REST, configure, write

__all__ = ["REST", "configure", "run"]


def _run(setup: Setup, args: argparse.Namespace) -> int:
    return write(setup, args, submits=True)


run = with_setup(_run)
