"""Aider's options as of 0.86.2, taken from its own parser."""

from __future__ import annotations

#: Options of runs that answer and go, or that are talked to elsewhere.
NOT_INTERACTIVE = tuple(
    """
    --message --message-file --help --version --list-models --shell-completions --just-check-update --upgrade
    --install-main-branch --commit --lint --test --apply --apply-clipboard-edits --exit --show-repo-map --show-prompts
    --gui --browser
    """.split()
)

#: Options that act once, or that resuming gives itself. A file of commands is not loaded again: it may hold prompts.
ONCE = """
-h, --help
--models, --list-models <value>
--chat-history-file <value>
--restore-chat-history, --no-restore-chat-history
--commit
--lint
--test
--just-check-update
--install-main-branch
--update, --upgrade
--version
--msg, -m, --message <value>
-f, --message-file <value>
--gui
--browser
--no-gui
--no-browser
--apply <value>
--apply-clipboard-edits
--exit
--show-repo-map
--show-prompts
--load <value>
--shell-completions <value>
"""

KEPT = """
--model <value>
--openai-api-key <value>
--anthropic-api-key <value>
--openai-api-base <value>
--openai-api-type <value>
--openai-api-version <value>
--openai-api-deployment-id <value>
--openai-organization-id <value>
--set-env <value>
--api-key <value>
--model-settings-file <value>
--model-metadata-file <value>
--alias <value>
--reasoning-effort <value>
--thinking-tokens <value>
--verify-ssl, --no-verify-ssl
--timeout <value>
--chat-mode, --edit-format <value>
--architect
--auto-accept-architect, --no-auto-accept-architect
--weak-model <value>
--editor-model <value>
--editor-edit-format <value>
--show-model-warnings, --no-show-model-warnings
--check-model-accepts-settings, --no-check-model-accepts-settings
--max-chat-history-tokens <value>
--cache-prompts, --no-cache-prompts
--cache-keepalive-pings <value>
--map-tokens <value>
--map-refresh <value>
--map-multiplier-no-files <value>
--input-history-file <value>
--llm-history-file <value>
--dark-mode
--light-mode
--pretty, --no-pretty
--stream, --no-stream
--user-input-color <value>
--tool-output-color <value>
--tool-error-color <value>
--tool-warning-color <value>
--assistant-output-color <value>
--completion-menu-color <value>
--completion-menu-bg-color <value>
--completion-menu-current-color <value>
--completion-menu-current-bg-color <value>
--code-theme <value>
--show-diffs
--git, --no-git
--gitignore, --no-gitignore
--add-gitignore-files, --no-add-gitignore-files
--aiderignore <value>
--subtree-only
--auto-commits, --no-auto-commits
--dirty-commits, --no-dirty-commits
--attribute-author, --no-attribute-author
--attribute-committer, --no-attribute-committer
--attribute-commit-message-author, --no-attribute-commit-message-author
--attribute-commit-message-committer, --no-attribute-commit-message-committer
--attribute-co-authored-by, --no-attribute-co-authored-by
--git-commit-verify, --no-git-commit-verify
--commit-prompt <value>
--dry-run, --no-dry-run
--skip-sanity-check-repo
--watch-files, --no-watch-files
--lint-cmd <value>
--auto-lint, --no-auto-lint
--test-cmd <value>
--auto-test, --no-auto-test
--analytics, --no-analytics
--analytics-log <value>
--analytics-disable
--analytics-posthog-host <value>
--analytics-posthog-project-api-key <value>
--check-update, --no-check-update
--show-release-notes, --no-show-release-notes
--copy-paste, --no-copy-paste
--voice-format <value>
--voice-language <value>
--voice-input-device <value>
--disable-playwright
--file <value>
--read <value>
--vim
--chat-language <value>
--commit-language <value>
--yes-always
-v, --verbose
--encoding <value>
--line-endings <value>
-c, --config <value>
--env-file <value>
--suggest-shell-commands, --no-suggest-shell-commands
--fancy-input, --no-fancy-input
--multiline, --no-multiline
--notifications, --no-notifications
--notifications-command <value>
--detect-urls, --no-detect-urls
--editor <value>
--opus
--sonnet
--haiku
-4, --4
--4o
--mini
--4-turbo
--35-turbo, --3, -3, --35turbo
--deepseek
--o1-mini
--o1-preview
"""
