"""Commands that go on when whoever asked for them is gone."""

from __future__ import annotations
