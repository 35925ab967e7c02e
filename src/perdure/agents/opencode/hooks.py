"""How OpenCode records its conversation."""

from __future__ import annotations

from perdure.agents.hooking import Format, HookFacts, HookFile
from perdure.agents.opencode.plugin import plugin


def _files(directory: str) -> tuple[HookFile, ...]:
    return (HookFile(path="plugin/perdure.js", format=Format.OWN, text=plugin(directory)),)


HOOKS = HookFacts(
    variables=(("OPENCODE_CONFIG_DIR", ""), ("XDG_CONFIG_HOME", "opencode")),
    usual_home=".config/opencode",
    files=_files,
)
