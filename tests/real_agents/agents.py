"""How each real agent is set up to talk to the stub model: its files, its variables, and the words it is driven by.

Nothing here knows of Perdure. Everything is written into the private home of a test; the keys are made up.
"""

# ruff: noqa: RUF001

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from scripts.real_agents import AGENTS, cache_directory
from tests.real_agents.stub_model import TOOLLESS

#: Taken before any test has a home of its own.
CACHE = cache_directory(os.environ)

#: A key that belongs to nobody. Claude asks about keys it has not seen, by their last 20 characters.
KEY = "sk-ant-made-up-key-0000000000000000000000000000"


class Place(NamedTuple):
    """Where an agent is set up."""

    #: The stub model's address, without a path.
    url: str
    #: The directories an agent is told to trust.
    trusted: Sequence[str]


def _nothing(place: Place) -> Mapping[str, str]:
    return {}


class Program(NamedTuple):
    """One agent, as a test drives it."""

    name: str
    #: A regular expression that is on the screen once it takes a prompt.
    ready: str
    #: The words that begin a new conversation, and those that end the program.
    new: str
    quit: str
    #: Files below the home directory, by their path there.
    files: Callable[[Place], Mapping[str, str]] = _nothing
    environ: Callable[[Place], Mapping[str, str]] = _nothing
    #: What a person types after its name to start it.
    words: tuple[str, ...] = ()
    #: Options that belong to the set-up and not to a test; they come before a test's own.
    options: Callable[[Place], Sequence[str]] = lambda place: ()
    #: It leaves the loopback interface alone when told of a proxy. The others cannot be kept from the outside that way.
    spares_loopback: bool = True
    #: How many seconds a start may take on a busy machine. None is measured by it.
    patience: float = 60.0

    @property
    def version(self) -> str:
        """The version the tests are written for."""
        return AGENTS[self.name].version

    @property
    def binaries(self) -> str:
        """The directory its program is in."""
        return AGENTS[self.name].binaries(CACHE)

    @property
    def missing(self) -> str | None:
        """Why it cannot be run here; None when it can."""
        return AGENTS[self.name].missing(CACHE)


def _claude_files(place: Place) -> Mapping[str, str]:
    trust = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
    settings = {
        "hasCompletedOnboarding": True,
        "lastOnboardingVersion": AGENTS["claude"].version,
        "theme": "dark",
        "customApiKeyResponses": {"approved": [KEY[-20:]], "rejected": []},
        "projects": dict.fromkeys(place.trusted, trust),
    }
    return {".claude.json": json.dumps(settings)}


def _claude_environ(place: Place) -> Mapping[str, str]:
    quiet = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1"}
    return {"ANTHROPIC_BASE_URL": place.url, "ANTHROPIC_API_KEY": KEY, **quiet}


def _codex_files(place: Place) -> Mapping[str, str]:
    trust = "".join(f'\n[projects."{path}"]\ntrust_level = "trusted"\n' for path in place.trusted)
    settings = f"""\
model = "gpt-5-stub"
model_provider = "stub"
check_for_update_on_startup = false

[model_providers.stub]
name = "stub"
base_url = "{place.url}/v1"
wire_api = "responses"
env_key = "STUB_API_KEY"
{trust}"""
    return {".codex/config.toml": settings}


def _gemini_files(place: Place) -> Mapping[str, str]:
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
        "privacy": {"usageStatisticsEnabled": False},
        "general": {"enableAutoUpdate": False},
    }
    return {".gemini/settings.json": json.dumps(settings)}


def _gemini_environ(place: Place) -> Mapping[str, str]:
    return {"GEMINI_API_KEY": "made-up", "GOOGLE_GEMINI_BASE_URL": place.url}


def _qwen_files(place: Place) -> Mapping[str, str]:
    settings = {
        "security": {"auth": {"selectedType": "openai"}},
        "privacy": {"usageStatisticsEnabled": False},
        "general": {"enableAutoUpdate": False},
        # Otherwise every answer is followed by a sub-agent's turn, which cannot be told from a person's.
        "memory": {"enableManagedAutoMemory": False},
    }
    return {".qwen/settings.json": json.dumps(settings)}


def _qwen_environ(place: Place) -> Mapping[str, str]:
    return {"OPENAI_API_KEY": "made-up", "OPENAI_BASE_URL": f"{place.url}/v1", "OPENAI_MODEL": "qwen-stub"}


def _opencode_files(place: Place) -> Mapping[str, str]:
    model = {"name": "Stub One", "limit": {"context": 100000, "output": 8000}}
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Stub",
        "options": {"baseURL": f"{place.url}/v1", "apiKey": "made-up"},
        "models": {"stub-1": model},
    }
    settings = {
        "autoupdate": False,
        "share": "disabled",
        "provider": {"stub": provider},
        "model": "stub/stub-1",
        "small_model": "stub/stub-1",
        "permission": {"bash": "ask", "edit": "ask"},
    }
    return {".config/opencode/opencode.json": json.dumps(settings)}


def _opencode_environ(place: Place) -> Mapping[str, str]:
    return {"OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1"}


def _copilot_files(place: Place) -> Mapping[str, str]:
    return {".copilot/config.json": json.dumps({"trustedFolders": list(place.trusted)})}


def _copilot_environ(place: Place) -> Mapping[str, str]:
    provider = {"TYPE": "openai", "BASE_URL": f"{place.url}/v1", "API_KEY": "made-up"}
    quiet = {"COPILOT_MODEL": "stub-1", "COPILOT_OFFLINE": "true", "COPILOT_AUTO_UPDATE": "false"}
    return {**{f"COPILOT_PROVIDER_{name}": value for name, value in provider.items()}, **quiet}


def _cline_files(place: Place) -> Mapping[str, str]:
    provider = {"provider": "openai-compatible", "apiKey": "made-up", "model": "stub-1", "baseUrl": f"{place.url}/v1"}
    entry = {"settings": provider, "updatedAt": "2026-01-01T00:00:00.000Z", "tokenSource": "manual"}
    settings = {"version": 1, "lastUsedProvider": "openai-compatible", "modes": {}}
    known = {**settings, "providers": {"openai-compatible": entry}}
    # Advertisements that cover the prompt of whoever has not seen them.
    notices = {
        "shown": dict.fromkeys(("cline-cli-cline-pass-intro", "cline-cli-desktop-launch", "cline-cli-zen"), True)
    }
    folder = ".cline/data/settings"
    return {f"{folder}/providers.json": json.dumps(known), f"{folder}/cli-notices.json": json.dumps(notices)}


def _goose_environ(place: Place) -> Mapping[str, str]:
    provider = {"GOOSE_PROVIDER": "openai", "GOOSE_MODEL": "gpt-4o", "OPENAI_API_KEY": "made-up"}
    quiet = {"GOOSE_DISABLE_KEYRING": "1", "GOOSE_TELEMETRY_ENABLED": "false"}
    return {**provider, "OPENAI_HOST": place.url, **quiet}


def _hermes_files(place: Place) -> Mapping[str, str]:
    settings = f"""\
model:
  provider: custom
  default: stub-model
  base_url: "{place.url}/v1"
  api_key: made-up
security:
  # Otherwise every first start in a home looks for packages it could do without.
  allow_lazy_installs: false
"""
    return {".hermes/config.yaml": settings}


#: It takes what it knows of models from its own files, and asks nobody.
KNOWN_PRICES = {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}


def _aider_files(place: Place) -> Mapping[str, str]:
    # What it knows of models, from today: otherwise it asks the world outside, and says so on the screen.
    return {".aider/caches/model_prices_and_context_window.json": json.dumps({"some-model": {}})}


def _aider_options(place: Place) -> Sequence[str]:
    model = ["--model", f"openai/stub{TOOLLESS}", "--openai-api-base", f"{place.url}/v1", "--openai-api-key", "made-up"]
    quiet = ["--no-check-update", "--analytics-disable", "--no-show-model-warnings", "--no-show-release-notes"]
    return [*model, *quiet, "--no-gitignore", "--no-git"]


PROGRAMS: Mapping[str, Program] = {
    program.name: program
    for program in (
        Program("claude", r"❯", "/clear", "/exit", _claude_files, _claude_environ),
        Program("codex", r"› ", "/new", "/quit", _codex_files, lambda place: {"STUB_API_KEY": "sk-made-up"}),
        Program("gemini", r"Type your message", "/clear", "/quit", _gemini_files, _gemini_environ),
        Program("qwen", r"Type your message", "/clear", "/quit", _qwen_files, _qwen_environ, spares_loopback=False),
        Program("opencode", r"Ask anything", "/new", "/exit", _opencode_files, _opencode_environ, patience=120.0),
        Program("copilot", r"/ commands", "/clear", "/exit", _copilot_files, _copilot_environ),
        Program("cline", r"What can I do", "/clear", "/quit", _cline_files, words=("--tui", "--auto-approve", "false")),
        Program("goose", r"Enter to send", "/clear", "/exit", environ=_goose_environ, words=("session",)),
        Program("hermes", r"❯", "/new", "/exit", _hermes_files, patience=120.0),
        Program(
            "aider",
            r"(?m)^(?:diff)?> *$",
            "/clear",
            "/exit",
            _aider_files,
            lambda place: KNOWN_PRICES,
            options=_aider_options,
        ),
    )
}
