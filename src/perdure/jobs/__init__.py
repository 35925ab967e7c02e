"""Commands that go on when whoever asked for them is gone."""
