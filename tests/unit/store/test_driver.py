"""Named parameters, and the statements that use them."""

from __future__ import annotations

import re

import pytest

from perdure.store.driver import for_psycopg, with_list
from perdure.store.queries import queries, without_comments


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT :a, :b_2", "SELECT %(a)s, %(b_2)s"),
        ("SELECT :a::text", "SELECT %(a)s::text"),
        ("SELECT x::text", "SELECT x::text"),
        ("SELECT ':a', 'it''s :b', :c", "SELECT ':a', 'it''s :b', %(c)s"),
        ("SELECT 5 % :a", "SELECT 5 %% %(a)s"),
        ("SELECT '100%'", "SELECT '100%%'"),
        ("(:a,:a)", "(%(a)s,%(a)s)"),
    ],
)
def test_parameters_are_written_psycopgs_way(sql: str, expected: str) -> None:
    assert for_psycopg(sql) == expected


def test_a_list_is_as_many_parameters() -> None:
    sql, parameters = with_list("x IN (:names)", "names", ["a", "b"])
    assert sql == "x IN (:names_0, :names_1)"
    assert parameters == {"names_0": "a", "names_1": "b"}


def test_every_statement_is_one_statement_with_a_name() -> None:
    assert len(queries()) > 20
    for name, sql in queries().items():
        assert re.fullmatch(r"[a-z_]+", name)
        assert re.match(r"SELECT|INSERT|UPDATE|DELETE|CREATE|DROP|WITH", sql)
        assert ";" not in sql
        assert "--" not in sql


def test_comments_are_taken_out() -> None:
    assert without_comments("-- why\nSELECT 1\n-- more\n") == "SELECT 1"
