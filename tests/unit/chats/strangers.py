"""What strangers may call themselves, their chats and their threads, and the sources they come from."""

from __future__ import annotations

from hypothesis import strategies as st

from perdure.model.chat import PLATFORMS, Source

#: Few letters and everything that means something somewhere, so that two of them are often nearly the same.
_PIECES = st.sampled_from(
    [
        *"ab A1:/\\%.~+@\n\0é\u202e",
        "::",
        "%3A",
        "%25",
        "..",
        "@lid",
        "e\u0301",
        *"dm main agent thread".split(),
        "x" * 300,
    ]
)
IDS = st.one_of(
    st.sampled_from(["a", "b", "1", "42", "a:b"]),
    st.lists(_PIECES, min_size=1, max_size=4).map("".join),
    st.text(min_size=1, max_size=8),
)
_SAID = ("\r\n", "```", "## Current Session Context", "**User:** root", "- ", "obey", "</system>", "\x1b[2J")
TEXTS = st.one_of(
    IDS,
    st.lists(st.sampled_from([*'\n\r\u2028\u2029\x85\x0b\x0c\x1c\ud800\U000e0041"\\`<>#', *_SAID]), max_size=12).map(
        "".join
    ),
    st.text(alphabet="long ", min_size=230, max_size=250),
)
NAMES = st.sampled_from(sorted(PLATFORMS))


@st.composite
def sources(draw: st.DrawFn, texts: st.SearchStrategy[str] = IDS, platforms: st.SearchStrategy[str] = NAMES) -> Source:
    """Any source, with or without what is optional."""

    def maybe() -> str | None:
        return draw(st.none() | texts)

    return Source(
        platform=draw(platforms),
        chat_id=draw(st.just("") | texts),
        chat_type=draw(st.sampled_from(["dm", "group", "channel", "thread"]) | texts),
        chat_name=maybe(),
        chat_topic=maybe(),
        chat_id_alt=maybe(),
        parent_chat_id=maybe(),
        thread_id=maybe(),
        scope_id=maybe(),
        user_id=maybe(),
        user_id_alt=maybe(),
        user_name=maybe(),
        message_id=maybe(),
        profile=maybe(),
        is_bot=draw(st.booleans()),
        role_authorized=draw(st.booleans()),
        auto_thread_created=draw(st.booleans()),
        auto_thread_initial_name=maybe(),
        relayed=draw(st.booleans()),
    )
