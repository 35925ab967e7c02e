"""The plugin for opencode, which has no hooks that run commands."""

from __future__ import annotations

import json

from perdure.agents.hooking import MARK

# A prompt is what says which conversation somebody is in: another one of this process may still be at work and report
# its end later. The same prompt is reported again whenever something about it changes, so only newer ones count. State
# is kept by the module, not by the plugin: one process may set it up more than once.
_TEXT = """\
// @MARK@
// Lets perdure know which conversation this process is in. `perdure hooks uninstall` takes it out again.
import { existsSync, renameSync, writeFileSync } from "node:fs"

const spool = @SPOOL@
const parents = new Map()
let current = ""
let prompted = Date.now()
let status = ""

function root(id) {
  while (parents.has(id)) id = parents.get(id)
  return id
}

function keep(event, facts) {
  if (!current || !existsSync(spool)) return
  const { TMUX = "", TMUX_PANE } = process.env
  const pane = TMUX_PANE ? `.${TMUX.split(",").at(-2) ?? ""}.${TMUX_PANE.replace("%", "")}` : ""
  const name = `${process.pid}-${event}${/[^0-9A-Za-z_.-]/.test(pane) ? "" : pane}`
  const record = { session_id: current, hook_event_name: event, timestamp: Date.now(), ...facts }
  writeFileSync(`${spool}/.${name}`, JSON.stringify(record), { mode: 0o600 })
  renameSync(`${spool}/.${name}`, `${spool}/${name}`)
}

function take({ type, properties }) {
  const { info, sessionID } = properties ?? {}
  if (type.startsWith("session.") && info?.parentID) parents.set(info.id, info.parentID)
  if (type === "message.updated") {
    if (info.role !== "user" || parents.has(info.sessionID) || info.time.created <= prompted) return
    prompted = info.time.created
    current = info.sessionID
    status = ""
    keep(type, {})
  } else if (type === "session.status" && sessionID === current && properties.status.type !== status) {
    status = properties.status.type
    keep(type, { status })
  } else if (/^(permission|question)\\.(asked|replied|rejected)$/.test(type) && root(sessionID) === current) {
    keep(type, {})
  }
}

export const Perdure = async () => ({
  event: async ({ event }) => {
    try {
      take(event)
    } catch {
      // Whatever it is, it is not opencode's trouble.
    }
  },
})
"""


def plugin(directory: str) -> str:
    """Return the text of the plugin that keeps its records in `directory`, in the form `record_line` gives them."""
    return _TEXT.replace("@MARK@", MARK).replace("@SPOOL@", json.dumps(directory))
