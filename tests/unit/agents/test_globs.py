"""Files with an id in their path."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perdure.agents._globs import find_files
from tests.unit.agents.hosts import DirectoryHost


@pytest.fixture
def host(tmp_path: object) -> DirectoryHost:
    return DirectoryHost(str(tmp_path))


def found(host: DirectoryHost, *patterns: str, id: str = r"\d+", **environ: str) -> set[tuple[str, str]]:
    return {(each.id, each.path) for each in find_files(patterns, id, home="/home/dev", environ=environ, host=host)[0]}


def test_stars_ids_homes_and_variables(host: DirectoryHost) -> None:
    for path in ("/home/dev/.ren/a/1.log", "/home/dev/.ren/b/2.log", "/home/dev/.ren/b/x.log", "/srv/r/3/chat"):
        host.write(path, "x")
    assert found(host, "~/.ren/*/{id}.log") == {("1", "/home/dev/.ren/a/1.log"), ("2", "/home/dev/.ren/b/2.log")}
    assert found(host, "~/.ren/a*/{id}.log") == {("1", "/home/dev/.ren/a/1.log")}
    assert found(host, "$R/{id}/chat", R="/srv/r") == {("3", "/srv/r/3/chat")}
    assert found(host, "/srv/r/{id}/chat") == {("3", "/srv/r/3/chat")}


def test_what_cannot_be_looked_for_finds_nothing(host: DirectoryHost) -> None:
    host.write("/srv/r/3/chat", "x")
    assert found(host, "$R/{id}/chat") == set()
    assert found(host, "$R/{id}/chat", R="r") == set()
    assert found(host, "srv/r/{id}/chat") == set()
    assert found(host, "/nowhere/*/{id}") == set()
    assert found(host, "/srv/r/3/chat") == set()


def test_a_file_two_patterns_fit_comes_once(host: DirectoryHost) -> None:
    host.write("/srv/1.log", "x")
    assert len(find_files(["/srv/{id}.log", "/srv/{id}.*"], r"\d+", home="/", environ={}, host=host)[0]) == 1


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(alphabet="ab*.{}[]+?()\\$^|/~", max_size=20))
def test_any_pattern_is_only_text(host: DirectoryHost, pattern: str) -> None:
    host.write("/srv/1.log", "x")
    found(host, f"/srv/{pattern}", f"/{pattern}/{{id}}.log")
