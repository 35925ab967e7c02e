from __future__ import annotations

from perdure.tmux import formats

MARK = "0123456789abcdef"


def test_every_free_text_is_length_prefixed_and_nothing_else_is_free() -> None:
    for record in (formats.SESSION, formats.WINDOW, formats.PANE, formats.PANE_LOCATED):
        for name in record.texts:
            assert f"#{{n:{name}}}:#{{{name}}}" in record.format
        assert not {name for name in record.words if name.endswith(("_name", "_title", "_path", "_command"))}


def test_a_second_question_is_one_command_a_line() -> None:
    script = formats.revisit(MARK, unknown=["$1", "@2", "%3"], panes=["%3", "%4"], lines=50).decode().splitlines()
    assert [line.split()[0] for line in script].count("display-message") == 7
    assert "show-environment -s -t '$1'" in script
    assert [line for line in script if line.startswith("show-options")] == [
        "show-options -t '$1'",
        "show-options -w -t '@2'",
        "show-options -p -t '%3'",
    ]
    assert [line for line in script if line.startswith("capture-pane")] == [
        "capture-pane -epJ -S -50 -t '%3'",
        "capture-pane -epJ -S -50 -t '%4'",
    ]
