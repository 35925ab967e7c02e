"""Every route, asked what its description allows and what it does not: no answer is a failure nobody expected, none is undocumented."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import APIOperation, Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.acceptance.gateway import ANN, Gateway
from tests.conftest import PrivateHome
from tests.integration.api_served import ServedApi, serving
from tests.perdure_cli import Perdure
from tests.tmux_server import TmuxServer

#: Whatever is answered has to stand in the description.
DOCUMENTED = [
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    response_headers_conformance,
]
#: How many requests are made of a route: of what it allows, of what it does not, and about what there is.
ALLOWED, WRONG, THERE = 5, 4, 4

Ids: TypeAlias = Mapping[str, str]
ACase: TypeAlias = Case[Any]
AnOperation: TypeAlias = APIOperation[Any, Any, Any, Any]


@pytest.fixture
def served(perdure: Perdure, private_home: PrivateHome, tmux: TmuxServer) -> Iterator[ServedApi]:
    tmux.run("new-session", "-d", "-s", "work", "-n", "one", "cat")
    tmux.run("new-session", "-d", "-s", "more", "-n", "two", "cat")
    perdure.ok("save")
    with serving(perdure, private_home.state) as api:
        yield api


def what_there_is(api: ServedApi, private_home: PrivateHome) -> Ids:
    """Return an id of each kind, of something that is there, by how its routes begin."""
    chat = Gateway(private_home).open(ANN, "hello", "again", title="My Project")
    with api.client() as client:
        return {
            "/api/runs": client.get("/api/runs").json()["items"][0]["id"],
            "/api/snapshots": client.get("/api/snapshots").json()["items"][0]["id"],
            "/api/chats": chat,
            "/api/jobs": client.post("/api/jobs", json={"argv": ["cat"]}).json()["job"]["job"],
            "/api/restores": client.post("/api/restores", json={}).json()["id"],
        }


def tame(case: ACase) -> None:
    """Leave nothing in a request that starts what nobody knows, or waits for long."""
    path, query = case.operation.path, case.query or {}
    if path.endswith("/wait") and isinstance(query.get("timeout", 1.0), int | float | None):
        case.query = {**query, "timeout": 0.01}
    if isinstance(query.get("wait"), int | float):
        case.query = {**query, "wait": 0.01}
    body = case.body
    if not isinstance(body, dict):
        return
    if path.startswith("/api/runs") and isinstance(body.get("timeout", 1.0), int | float):
        body["timeout"] = 0.01
    harmless: dict[str, Any] = {"shell": "true", "socket": None, "agent": None, "env": {}}
    body |= {name: value for name, value in harmless.items() if name in body}
    if isinstance(body.get("argv"), list) and body["argv"]:
        body["argv"] = ["true"]


def about(case: ACase, ids: Ids, client: httpx.Client) -> None:
    """Let a request be about something that is there."""
    path, body = case.operation.path, case.body
    for beginning, id in ids.items():
        if path.startswith(f"{beginning}/{{id}}"):
            case.path_parameters = dict.fromkeys(case.path_parameters or {}, id)
    if not isinstance(body, dict):
        return
    if "version" in body:
        body["version"] = client.get("/api/settings").json()["version"]
    if path.startswith("/api/restores"):
        body["snapshot"] = ids["/api/snapshots"]
    if path == "/api/jobs":
        body |= {"argv": ["true"], "shell": None, "backend": "local", "cwd": "/"}


def problems(
    operation: AnOperation, mode: GenerationMode, count: int, client: httpx.Client, change: Callable[[ACase], None]
) -> list[str]:
    """Return what is wrong with the answers to some requests."""
    found: dict[str, None] = {}

    @settings(
        max_examples=count,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def ask(case: ACase) -> None:
        change(case)
        tame(case)
        bearer = {"authorization": client.headers["authorization"]}
        answer = case.call(base_url=str(client.base_url), headers=bearer, timeout=60)
        checks = [*DOCUMENTED, not_a_server_error]
        try:
            case.validate_response(answer, checks=checks, additional_checks=[])
        except AssertionError as error:
            found[f"{case.as_curl_command()}\n{error}"[:3000]] = None
        except BaseExceptionGroup as errors:
            found[f"{case.as_curl_command()}\n{errors.exceptions}"[:3000]] = None

    ask()
    return list(found)


def operations_of(description: Any) -> list[AnOperation]:
    """Return every route of a description, those that end something last."""
    schema = schemathesis.openapi.from_dict(description)
    found = [result.ok() for result in schema.get_all_operations() if isinstance(result, Ok)]
    return sorted(found, key=lambda each: (each.method == "delete", "kill" in each.path))


def _is_tagged(client: httpx.Client, path: str) -> bool:
    """Return whether whoever asks again may be told that nothing has changed."""
    return "etag" in client.get(path).headers


def test_every_answer_is_one_that_is_described(served: ServedApi, private_home: PrivateHome) -> None:
    ids = what_there_is(served, private_home)
    found: list[str] = []
    with served.client() as client:
        operations = operations_of(client.get("/schema/openapi.json").json())
        assert len(operations) > 40
        for operation in operations:
            found += problems(operation, GenerationMode.POSITIVE, ALLOWED, client, lambda case: None)
            if operation.query or operation.body:
                found += problems(operation, GenerationMode.NEGATIVE, WRONG, client, lambda case: None)
            found += problems(operation, GenerationMode.POSITIVE, THERE, client, lambda case: about(case, ids, client))
        found += [
            operation.label
            for operation in operations
            if operation.method == "get" and not operation.path_parameters and _is_tagged(client, operation.path)
            if "304" not in operation.definition.raw["responses"]
        ]
        assert not found, "\n\n".join(found[:20])
        # And an answer that is not described would have been found.
        description = client.get("/schema/openapi.json").json()
        del description["paths"]["/api/jobs/{id}"]["get"]["responses"]["404"]
        lacking = next(each for each in operations_of(description) if each.label == "GET /api/jobs/{id}")
        assert problems(
            lacking, GenerationMode.POSITIVE, 1, client, lambda case: about(case, {"/api/jobs": "nothing"}, client)
        )
