"""Claude Code's options as of 2.1.325: those its `--help` lists, and those it knows without listing them."""

from __future__ import annotations

#: Shows a background conversation in this terminal: an agent, though a subcommand.
ATTACH = "attach"
#: Subcommands: a `claude mcp` or `claude doctor` is a program, not an agent.
SUBCOMMANDS = frozenset(
    """
    agents auth auto-mode config daemon doctor gateway import install kill logs mcp migrate-installer plugin plugins
    project purge rc remote-control respawn rm setup-token stop ultrareview update upgrade
    """.split()
)
#: Options of runs that answer and go, or that leave the terminal.
NOT_INTERACTIVE = frozenset(
    {"--print", "--version", "--help", "--background", "--init-only", "--desktop", "--bg-pty-host", "--bg-spare"}
)

#: Options that choose a conversation, put words into it or act once: none of them may run a second time.
ONCE = """
-r, --resume [value]
-c, --continue
--session-id <uuid>
--fork-session
--from-pr [value]
--teleport [session]
--cloud [description]
--remote [description]
--environment <environment_id>
--pool <pool_id>
--correlation-id <id>
--on-branch <branch>
--ref <ref>
--resume-session-at <message>
--resume-drops-turn <message>
--rewind-files <message>
--reply-on-resume
--session-began-as-copy <value>
--parent-session-id <id>
--attach-serve <session_id>
-w, --worktree [name]
--tmux
--prefill <text>
--prefill-b64 <b64>
--deep-link-origin
--deep-link-repo <slug>
--deep-link-last-fetch <ms>
--deep-link-cwd-b64 <b64>
--file <specs...>
--init
--init-only
--maintenance
--messaging-socket-path <path>
--agents-view-if-allowed
--await-claim
--await-initialize
--session-mirror
--runner-declares <names>
--bg-pty-host <socket>
--bg-spare <socket>
-p, --print
-v, --version
-h, --help
--bg, --background
--desktop
"""
#: Options that make the agent what it is: every one comes back as it was.
KEPT = """
--add-dir <directories...>
--advisor <model>
--agent <agent>
--agent-color <color>
--agent-id <id>
--agent-name <name>
--agent-type <type>
--agents <json>
--allow-dangerously-skip-permissions
--allow-other-models
--allowedTools, --allowed-tools <tools...>
--append-subagent-system-prompt <prompt>
--append-subagent-system-prompt-file <file>
--append-system-prompt <prompt>
--append-system-prompt-file <file>
--autocompact <tokens>
--ax-screen-reader
--bare
--betas <betas...>
--brief
--channels <servers...>
--chrome
--client-data-url <url>
--dangerously-load-development-channels <servers...>
--dangerously-skip-permissions
-d, --debug [filter]
-d2e, --debug-to-stderr
--debug-file <path>
--disable-slash-commands
--disallowedTools, --disallowed-tools <tools...>
--effort <level>
--enable-auth-status
--enable-auto-mode
--exclude-dynamic-system-prompt-sections
--fallback-model <model>
--fast-mode <mode>
--forward-home-settings <bool>
--forward-subagent-text
--host-auth-is-org-sign-in
--ide
--include-hook-events
--include-partial-messages
--include-unsupported-models
--inherit-permission-mode <mode>
--input-format <format>
--json-schema <schema>
--lead-verify-key <key>
--managed-settings <json>
--managed-settings-in-initialize
--max-budget-usd <amount>
--max-thinking-tokens <tokens>
--max-turns <turns>
--mcp-config <configs...>
--mcp-debug
--model <model>
-n, --name <name>
--no-chrome
--no-session-persistence
--output-format <format>
--permission-mode <mode>
--permission-prompt-tool <tool>
--permission-prompts <target>
--plan-mode-instructions <instructions>
--plan-mode-required
--plugin-dir <path>
--plugin-dir-no-mcp <path>
--plugin-url <url>
--proactivity <level>
--project-config-root <dir>
--prompt-suggestions [value]
--remote-control [name]
--rc [name]
--remote-control-session-name-prefix <prefix>
--replay-user-messages
--restricted
--safe-mode
--sdk-url <url>
--setting-sources <sources>
--settings <file>
--strict-mcp-config
--system-prompt <prompt>
--system-prompt-file <file>
--system-prompt-snapshot <mode>
--task-budget <tokens>
--team-name <name>
--teammate-mode <mode>
--thinking <mode>
--thinking-display <display>
--tools <tools...>
--verbose
--watch-artifact <artifact>
--watch-artifact-no-autoreact <artifact>
--workload <tag>
"""
