"""The dashboard's own files: served as they were built, and nothing else of the machine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from litestar import Litestar
from litestar.testing import TestClient

from perdure.api import pages


@pytest.fixture
def client() -> Iterator[TestClient[Litestar]]:
    with TestClient(Litestar(list(pages.ROUTES))) as client:
        yield client


@pytest.fixture
def dist(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    """A build, with something beside it that is nobody's to read."""
    built = os.path.join(tmp_path, "web_dist")
    os.makedirs(os.path.join(built, "assets", "folder.js"))
    for name, text in {
        "index.html": "<!doctype html><div id=app>",
        "assets/index-abc.js": "1",
        "assets/index-abc.css": "a{}",
        "assets/notes.txt": "of no kind that is served",
        "icon.svg": "<svg/>",
        "look.js": "2",
        "../secret.js": "secret",
    }.items():
        with open(os.path.join(built, name), "w") as file:
            file.write(text)
    monkeypatch.setattr(pages, "DIST", built)
    return built


@pytest.mark.parametrize(
    "path", ["/", "/runs/r7", "/time-machine", "/time-machine/ab12", "/chats", "/jobs/j1", "/events", "/settings"]
)
def test_every_screen_is_the_same_page_and_is_not_kept(client: TestClient[Litestar], dist: str, path: str) -> None:
    answer = client.get(path)
    assert (answer.status_code, answer.text) == (200, "<!doctype html><div id=app>")
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["cache-control"] == "no-store"


def test_an_unknown_address_leads_a_person_to_the_first_screen_and_a_program_nowhere(
    client: TestClient[Litestar], dist: str
) -> None:
    for path in ("/nowhere", "/run/r7/x", "/runs/r7/x"):
        led = client.get(path, headers={"accept": "text/html,*/*;q=0.8"}, follow_redirects=False)
        assert (led.status_code, led.headers["location"]) == (303, "/")
        assert client.get(path, headers={"accept": "*/*"}).status_code == 404


def test_a_part_is_kept_for_good_since_another_build_has_another_name(client: TestClient[Litestar], dist: str) -> None:
    script, rules = client.get("/assets/index-abc.js"), client.get("/assets/index-abc.css")
    assert (script.text, rules.text) == ("1", "a{}")
    assert script.headers["content-type"] == "text/javascript; charset=utf-8"
    assert rules.headers["content-type"] == "text/css; charset=utf-8"
    assert "immutable" in script.headers["cache-control"]
    assert client.get("/icon.svg").headers["content-type"] == "image/svg+xml"
    assert client.get("/look.js").headers["cache-control"] == "no-cache"


@pytest.mark.parametrize(
    "path",
    [
        "/assets/none.js",
        "/assets/notes.txt",
        "/assets/folder.js",
        "/assets/..%2f..%2fsecret.js",
        "/assets/%2e%2e/secret.js",
        "/assets/%00.js",
        "/secret.js",
        "/elsewhere",
        "/runs/r7/more",
    ],
)
def test_nothing_else_is_served(client: TestClient[Litestar], dist: str, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 404
    assert "secret" not in answer.text.replace(path, "")


def test_without_a_build_it_is_said_how_to_have_one(
    client: TestClient[Litestar], dist: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "DIST", os.path.join(dist, "nowhere"))
    answer = client.get("/")
    assert answer.status_code == 503
    assert "make web" in answer.text
    # The policy of the page allows neither.
    assert "<script" not in answer.text
    assert "style" not in answer.text
    assert client.get("/assets/index-abc.js").status_code == 404
