from __future__ import annotations

import os
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.live.theme import CONTRAST, contrast, made_up, read_theme, theme_of
from tests.unit.agents.hosts import DirectoryHost

PALETTE = '{"palette":{"body":"#aa3366","outline":"#112233","accent":"#FFCC00","shirt":"#00ff88"},"sprite":"jelly"}'


@pytest.fixture
def host(tmp_path: object) -> DirectoryHost:
    return DirectoryHost(str(tmp_path))


def test_the_first_directory_upwards_with_colours_of_its_own_decides(host: DirectoryHost) -> None:
    host.write("/home/dev/repo/.swimmers/colors.json", PALETTE)
    host.write("/home/dev/repo/sub/.git/HEAD", "")
    theme = theme_of("/home/dev/repo/sub/deep", host)
    assert theme is not None
    assert (theme.root, theme.body, theme.sprite, theme.generated) == ("/home/dev/repo", "#AA3366", "jelly", False)
    host.write("/home/dev/repo/sub/.throngterm/colors.json", PALETTE)
    below = theme_of("/home/dev/repo/sub/deep", host)
    assert below is not None
    assert below.root == "/home/dev/repo/sub"


def test_without_such_a_file_the_repository_has_colours_that_are_made_up_and_nothing_is_written(
    host: DirectoryHost,
) -> None:
    host.write("/home/dev/repo/.git/HEAD", "")
    before = [*os.walk(host.root)]
    theme = theme_of("/home/dev/repo/a/b", host)
    assert theme == made_up("/home/dev/repo") == theme_of("/home/dev/repo", host)
    assert [*os.walk(host.root)] == before
    assert theme_of("/home/dev/other", host) is None
    assert theme_of("", host) is None


@pytest.mark.parametrize(
    "raw",
    [
        "",
        "[]",
        "{}",
        '{"palette":[]}',
        PALETTE.replace("#112233", "#12233"),
        PALETTE.replace("#112233", "red"),
        PALETTE.replace('"accent"', '"accents"'),
        "[" * 5000,
    ],
)
def test_a_file_that_is_not_what_it_should_be_is_no_theme_but_keeps_the_place(host: DirectoryHost, raw: str) -> None:
    assert read_theme(raw.encode(), "/r") is None
    host.write("/home/dev/repo/sub/.swimmers/colors.json", raw)
    host.write("/home/dev/repo/.git/HEAD", "")
    assert theme_of("/home/dev/repo/sub", host) == made_up("/home/dev/repo/sub")


@given(st.text(max_size=60))
def test_made_up_colours_can_be_read_and_are_always_the_same(root: str) -> None:
    root = root.encode(errors="ignore").decode()
    theme = made_up(root)
    assert theme == made_up(root)
    for colour in (theme.body, theme.accent, theme.shirt):
        assert re.fullmatch(r"#[0-9A-F]{6}", colour)
        assert contrast(colour, theme.outline) >= CONTRAST


def test_contrast_is_what_it_is_everywhere() -> None:
    assert contrast("#000000", "#FFFFFF") == pytest.approx(21)
    assert contrast("#777777", "#777777") == pytest.approx(1)
