"""Whose a chat is where one id stands for two places, and where several ids stand for one person."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from itertools import count

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from perdure import errors
from perdure.chats.service import Chats
from perdure.chats.source import has_personal_ids, platform_from, register_platform
from perdure.chats.whatsapp import NO_ALIASES, Aliases
from perdure.model.chat import KeyRules, Source
from perdure.model.config import ChatKeysConfig, ChatsConfig, Config
from perdure.store.store import Store
from tests.contract.store.chats import Clock, a_turn

Make = Callable[..., Chats]

NUMBER, LID = "15551234567", "998877665544332@lid"
MATCHED = Aliases({LID: NUMBER})
#: So that no example of a property finds the chats of another.
EXAMPLES = count()


@pytest.fixture
def make(threaded: Store) -> Make:
    """Makes the service of a gateway."""

    def made(aliases: Aliases = NO_ALIASES, *, keys: ChatKeysConfig | None = None) -> Chats:
        config = Config(chats=ChatsConfig(keys=keys or ChatKeysConfig()))
        return Chats(threaded.chats, config, Clock(), aliases=aliases)

    return made


def channel(scope: str | None, *, platform: str = "slack", user: str = "U1", chat_type: str = "group") -> Source:
    return Source(platform=platform, chat_id="C0", chat_type=chat_type, scope_id=scope, user_id=user)


@pytest.mark.parametrize("platform", ["slack", "discord"])
@pytest.mark.parametrize("chat_type", ["group", "dm"])
@pytest.mark.parametrize("keys", [ChatKeysConfig(), ChatKeysConfig(group_sessions_per_user=False)])
def test_one_id_in_two_workspaces_is_two_places(
    make: Make, platform: str, chat_type: str, keys: ChatKeysConfig
) -> None:
    chats = make(keys=keys)
    here = channel("T1", platform=platform, chat_type=chat_type)
    there = replace(here, scope_id="T2")
    mine = chats.open(here)
    chats.append(mine.id, a_turn("tiles"))
    chats.set_title(here, mine.id, "Plan")
    other = chats.open(there)
    assert other.id != mine.id
    assert other.follows is None
    assert (chats.open(here).id, chats.open(there).id) == (mine.id, other.id)
    assert [chat.id for chat in chats.list(there)] == [other.id]
    assert chats.search(there, "tiles") == ()
    with pytest.raises(errors.Refused):
        chats.get(there, mine.id)
    with pytest.raises(errors.PerdureError):
        chats.resume(there, "Plan")
    # Whichever of them begins anew, the other's stays where it is.
    assert chats.reset(here).follows == mine.id
    assert chats.peek(there) == chats.store.get_chat(other.id)
    newer = chats.reset(there)
    assert (newer.follows, newer.notice) == (other.id, None)
    assert chats.resume(there, other.id).id == other.id
    assert chats.resume(here, "Plan").id == mine.id
    assert len(chats.list(here)) == len(chats.list(there)) == 2


@pytest.mark.parametrize("first", ["T1", None])
def test_a_scope_that_is_told_only_sometimes_locks_nobody_out(make: Make, first: str | None) -> None:
    chats = make()
    told, untold = channel("T1"), channel(None)
    begun = chats.open(replace(told, scope_id=first))
    chats.append(begun.id, a_turn("tiles"))
    for source in (untold, told, untold):
        assert chats.open(source).id == begun.id
        assert chats.get(source, begun.id).id == begun.id
        assert [chat.id for chat in chats.list(source)] == [begun.id]
        assert [found.chat for found in chats.search(source, "tiles")] == [begun.id]
    second = chats.reset(untold)
    for source in (told, untold):
        assert chats.resume(source, begun.id).id == begun.id
        assert chats.resume(source, second.id).id == second.id
    # It is known by now where it is.
    assert chats.open(channel("T2")).id not in {begun.id, second.id}
    with pytest.raises(errors.Refused):
        chats.get(channel("T2"), begun.id)
    with pytest.raises(errors.Refused):
        chats.get(channel(None, user="U2"), begun.id)


def whatsapp(who: str, *, chat: str | None = None, **changes: object) -> Source:
    return replace(Source(platform="whatsapp", chat_id=chat or who, user_id=who), **changes)


FORMS = [NUMBER, f"+{NUMBER}", f"{NUMBER}@s.whatsapp.net", f"{NUMBER}:3@s.whatsapp.net", LID, "998877665544332:7@lid"]


@pytest.mark.parametrize("first", FORMS)
def test_a_person_owns_their_chats_by_every_id(make: Make, first: str) -> None:
    chats = make(MATCHED)
    begun = chats.open(whatsapp(first))
    chats.append(begun.id, a_turn("tiles"))
    chats.set_title(whatsapp(first), begun.id, "Plan")
    for form in FORMS:
        source = whatsapp(form)
        assert chats.open(source).id == begun.id
        assert chats.get(source, begun.id).id == begun.id
        assert [chat.id for chat in chats.list(source)] == [begun.id]
        assert [found.chat for found in chats.search(source, "tiles")] == [begun.id]
        assert chats.find(source, "Plan").id == begun.id
    # Where to answer stays as it was told.
    assert chats.store.get_chat(begun.id).source.chat_id == first
    titled = chats.reset(whatsapp(LID))
    with pytest.raises(errors.TitleTaken):
        chats.set_title(whatsapp(NUMBER), titled.id, "Plan")


def test_a_person_in_a_group_is_one_by_every_id_and_has_been_before_it_was_known(make: Make) -> None:
    group = {"chat": "9@g.us", "chat_type": "group"}
    begun = make().open(whatsapp(LID, **group))
    late = make(MATCHED)
    assert late.get(whatsapp(NUMBER, **group), begun.id).id == begun.id
    assert late.resume(whatsapp(f"{NUMBER}@c.us", **group), begun.id).id == begun.id
    assert late.open(whatsapp(NUMBER, **group)).id == begun.id


def test_a_lid_nobody_has_matched_is_not_the_number_with_its_digits(make: Make) -> None:
    number, lid = whatsapp("998877665544332"), whatsapp(LID)
    for chats in (make(), make(Aliases({"112233445566778@lid": NUMBER}))):
        begun = chats.open(number)
        assert chats.open(lid).id != begun.id
        for stranger in (lid, whatsapp(LID, chat="998877665544332"), whatsapp("998877665544332", chat=LID)):
            with pytest.raises(errors.Refused):
                chats.get(stranger, begun.id)
            assert begun.id not in {chat.id for chat in chats.list(stranger)}


def test_what_was_granted_to_a_person_is_granted_by_every_id(make: Make) -> None:
    chats = make(MATCHED)
    begun = chats.open(whatsapp("4915112345"))
    chats.grant(whatsapp("4915112345"), begun.id, whatsapp(LID))
    for form in FORMS:
        assert chats.get(whatsapp(form), begun.id).id == begun.id
    chats.revoke(whatsapp("4915112345@c.us"), begun.id, whatsapp(NUMBER))
    for form in FORMS:
        with pytest.raises(errors.Refused):
            chats.get(whatsapp(form), begun.id)


def test_platforms_that_are_set_are_platforms_wherever_chats_are_opened(threaded: Store) -> None:
    name = f"gopher-{threaded.driver.dialect}"
    with pytest.raises(errors.UsageError):
        platform_from(name)
    register_platform("usenet", personal_ids=True)
    Chats(threaded.chats, Config(chats=ChatsConfig(platforms=(name, "usenet"))), Clock())
    assert platform_from(name.title()) == name
    # What a gateway has said of one stays.
    assert has_personal_ids("usenet")


# --- grants go on with a conversation, and are taken back with it


@pytest.mark.parametrize(("granted", "revoked"), [(0, 0), (0, 1), (0, 2), (1, 2), (2, 0)])
def test_what_was_granted_is_taken_back_wherever_the_conversation_goes_on(
    make: Make, granted: int, revoked: int
) -> None:
    chats = make()
    alice, bob, carol = (Source(platform="telegram", chat_id=name, user_id=name) for name in ("a", "b", "c"))
    line = [chats.open(alice)]
    for step in range(3):
        if step == granted:
            chats.grant(alice, line[-1].id, bob)
            chats.grant(alice, line[-1].id, carol)
        if step < 2:
            line.append(chats.compress(line[-1].id, [a_turn(f"shorter {step}")]))
    chats.append(line[2].id, a_turn("tiles"))
    assert [found.chat for found in chats.search(bob, "tiles")] == [line[2].id]
    chats.revoke(alice, line[revoked].id, bob)
    later = chats.compress(line[2].id, [a_turn("tiles again")])
    for chat in (*line, later):
        with pytest.raises(errors.Refused):
            chats.get(bob, chat.id)
    assert (chats.list(bob), chats.search(bob, "tiles")) == ((), ())
    # Nobody else loses anything.
    assert {found.chat for found in chats.search(carol, "tiles")} == {line[2].id, later.id}


def test_of_a_conversation_nobody_finds_more_than_was_granted(make: Make) -> None:
    chats = make()
    alice, bob = (Source(platform="telegram", chat_id=name, user_id=name) for name in ("a", "b"))
    first = chats.open(alice)
    chats.append(first.id, a_turn("before"))
    chats.compress(first.id, [a_turn("afterwards")])
    chats.grant(alice, first.id, bob)
    assert chats.find(bob, first.id).id == first.id
    assert [turn.content for turn in chats.load(chats.resume(bob, first.id).id).turns] == ["before"]


# --- a direct message is between two


@pytest.mark.parametrize(("platform", "thread"), [("slack", None), ("api_server", "7")])
@pytest.mark.parametrize("scopes", [(None, None), ("T1", "T1"), ("T1", None), (None, "T1"), ("T1", "T2")])
def test_nobody_is_handed_anothers_direct_messages(
    make: Make, platform: str, thread: str | None, scopes: tuple[str | None, str | None]
) -> None:
    chats = make()
    # A channel whose type a gateway has not told is a direct message, too.
    first, second = (
        Source(platform=platform, chat_id="C9", user_id=user, thread_id=thread, scope_id=scope)
        for user, scope in zip(("U1", "U2"), scopes, strict=True)
    )
    mine = chats.open(first)
    chats.append(mine.id, a_turn("tiles"))
    assert chats.peek(second) is None
    theirs = chats.open(second)
    assert (theirs.id != mine.id, theirs.follows, chats.load(theirs.id).turns) == (True, None, ())
    assert chats.reset(second).follows == theirs.id
    assert chats.open(first).id == mine.id
    assert chats.reset(first).follows == mine.id
    # Closed or forgotten, it is not another's either; and what is somebody's stays where it is.
    own = chats.open(second)
    assert chats.open(replace(second, scope_id=None)).id == own.id
    assert chats.get(second, own.id).id == own.id
    assert chats.key(Source(platform=platform, chat_id="C9", user_id="U3", thread_id=thread)) not in {
        mine.key,
        theirs.key,
    }


def test_a_direct_message_goes_on_for_whoever_is_known_by_one_of_their_ids(make: Make) -> None:
    chats = make()
    begun = chats.open(Source(platform="signal", chat_id="99", user_id="+1555", user_id_alt="uuid"))
    for user, alt in (("+1555", None), ("uuid", None), ("+1666", "uuid")):
        assert chats.open(Source(platform="signal", chat_id="99", user_id=user, user_id_alt=alt)).id == begun.id
    assert chats.open(Source(platform="signal", chat_id="99", user_id="+1777")).id != begun.id


@pytest.mark.parametrize("platform", ["slack", "api_server"])
@pytest.mark.parametrize("is_told_first", [True, False])
def test_a_direct_message_of_nobody_knows_whom_is_not_shared_with_anybody_known(
    make: Make, platform: str, is_told_first: bool
) -> None:
    chats = make()
    untold = Source(platform=platform, chat_id="C9")
    ann, bob = (replace(untold, user_id=user) for user in ("U1", "U2"))
    order = [ann, untold, bob] if is_told_first else [untold, ann, bob]
    begun = {source: chats.open(source).id for source in order}
    chats.append(begun[untold], a_turn("tiles"))
    assert len(set(begun.values())) == 3
    for source, id in begun.items():
        assert chats.open(source).id == id
        assert chats.reset(source).follows == id
    assert chats.search(ann, "tiles") == chats.search(bob, "tiles") == ()


@pytest.mark.parametrize(
    ("chat", "user", "aliases"),
    [("99", "99", NO_ALIASES), (NUMBER, f"{NUMBER}:7@s.whatsapp.net", NO_ALIASES), (LID, NUMBER, MATCHED)],
)
def test_where_a_chat_has_the_id_of_its_person_that_says_who_writes(
    make: Make, chat: str, user: str, aliases: Aliases
) -> None:
    chats = make(aliases)
    untold = Source(platform="whatsapp" if aliases is MATCHED or chat == NUMBER else "telegram", chat_id=chat)
    told = replace(untold, user_id=user)
    begun = chats.open(untold)
    chats.append(begun.id, a_turn("tiles"))
    assert chats.open(told).id == begun.id
    # From then on it is known whose it is.
    assert [chat.id for chat in chats.list(told)] == [begun.id]
    assert chats.resume(told, begun.id).id == begun.id
    assert chats.open(untold).id == begun.id


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example([("C1", "U1", None, None, False), ("C1", None, None, None, False), ("C1", "C1", None, None, False)])
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["C1", "C2", ""]),
            st.sampled_from([None, "C1", "U1", "U2"]),
            st.sampled_from([None, "5"]),
            st.sampled_from([None, "T1"]),
            st.booleans(),
        ),
        max_size=12,
    )
)
def test_a_chat_of_direct_messages_never_has_two_people_whoever_is_told(
    make: Make, messages: list[tuple[str, str | None, str | None, str | None, bool]]
) -> None:
    chats = make()
    people: dict[str, set[str]] = {}
    opened: dict[tuple[str, str | None, str], str] = {}
    run = str(next(EXAMPLES))
    for chat, user, thread, scope, is_reset in messages:
        if not chat and user is None:
            continue
        source = Source(
            platform="slack",
            profile=run,
            chat_id=chat,
            user_id=user,
            thread_id=thread,
            scope_id=scope,
        )
        person = user or chat
        here = (chat or person, thread, person)
        got = chats.reset(source) if is_reset else chats.open(source)
        # Nobody's conversation is cut in two either.
        assert is_reset or opened.get(here, got.id) == got.id
        opened[here] = got.id
        people.setdefault(got.id, set()).add(person)
    assert all(len(each) == 1 for each in people.values())


def test_all_who_write_first_at_once_get_their_own(make: Make) -> None:
    chats = make()
    people = [Source(platform="slack", chat_id="C9", user_id=f"U{each}") for each in range(6)]
    with ThreadPoolExecutor(len(people)) as pool:
        opened = list(pool.map(chats.open, people * 3))
    assert len({chat.id for chat in opened}) == len(people)
    assert {chat.source.user_id for chat in opened} == {each.user_id for each in people}


def test_by_the_earlier_rules_direct_messages_are_one_conversation_as_ever(make: Make) -> None:
    chats = make(keys=ChatKeysConfig(rules=KeyRules.PER_PLATFORM))
    first, second = (Source(platform="telegram", chat_id=name, user_id=name) for name in ("a", "b"))
    assert chats.open(first).id == chats.open(second).id


# --- another id of the same person


def _everything_of(chats: Chats, source: Source, title: str) -> set[str]:
    """By which verbs whoever asks gets to a chat with that title, in which "tiles" was said."""
    found = {
        "list": [chat.id for chat in chats.list(source) if chat.title == title],
        "search": [each.chat for each in chats.search(source, "tiles")],
    }
    with suppress(errors.ChatNotFound, errors.Refused):
        found["find"] = [chats.find(source, title).id]
    return {name for name, ids in found.items() if ids}


ALL = {"list", "search", "find"}


@pytest.mark.parametrize("chat_type", ["dm", "group"])
def test_whoever_tells_another_id_later_keeps_what_they_said_before(make: Make, chat_type: str) -> None:
    chats = make()
    before = Source(platform="signal", chat_id="+49", chat_type=chat_type, user_id="+49")
    after = replace(before, user_id_alt="uuid")
    begun = chats.open(before)
    chats.append(begun.id, a_turn("tiles"))
    chats.set_title(before, begun.id, "Roof")
    if chat_type == "dm":
        assert chats.open(after).id == begun.id
    chats.reset(after)
    assert _everything_of(chats, after, "Roof") == ALL
    chats.set_title(after, begun.id, "Roof again")
    assert chats.get(after, begun.id).title == "Roof again"
    # The same number with another lasting id is only known to be told the same number; another number is nobody.
    assert _everything_of(chats, replace(before, user_id="+50", user_id_alt="other"), "Roof again") == set()
    assert chats.resume(after, "Roof again").id == begun.id


def test_one_who_tells_less_than_before_is_known_by_the_conversation(make: Make) -> None:
    chats = make()
    before = Source(platform="signal", chat_id="+49", user_id="+49", user_id_alt="uuid")
    less = replace(before, user_id_alt=None)
    begun = chats.open(before)
    chats.append(begun.id, a_turn("tiles"))
    chats.set_title(before, begun.id, "Roof")
    chats.reset(before)
    assert _everything_of(chats, less, "Roof") == ALL
    assert chats.get(less, begun.id).id == begun.id


def test_a_number_that_somebody_else_has_now_opens_nothing_of_whoever_had_it(make: Make) -> None:
    chats = make()
    first = Source(platform="signal", chat_id="+49", user_id="+49", user_id_alt="uuid-1")
    second = replace(first, user_id_alt="uuid-2")
    begun = chats.open(first)
    chats.append(begun.id, a_turn("tiles"))
    chats.set_title(first, begun.id, "Roof")
    got = chats.open(second)
    assert got.id != begun.id
    assert got.follows is None
    assert _everything_of(chats, second, "Roof") == set()
    with pytest.raises(errors.Refused):
        chats.get(second, begun.id)
    assert chats.open(first).id == begun.id
    assert chats.open(second).id == got.id


def test_direct_messages_by_their_sender_alone_are_the_senders(make: Make) -> None:
    chats = make()
    sender = Source(platform="sms", chat_id="", user_id="555")
    begun = chats.open(sender)
    chats.append(begun.id, a_turn("tiles"))
    chats.auto_title(begun.id, "Roof")
    chats.reset(sender)
    for same in (sender, replace(sender, chat_id="555")):
        assert _everything_of(chats, same, "Roof") == ALL
        assert chats.resume(same, "Roof").id == begun.id
        chats.reset(sender)
    for other in (
        replace(sender, user_id="556"),
        replace(sender, user_id="556", chat_id="555"),
        replace(sender, user_id="556", chat_type="group", chat_id="555"),
        replace(sender, user_id=None, chat_id="555"),
        replace(sender, platform="signal"),
    ):
        assert _everything_of(chats, other, "Roof") == set()


class Interrupting(Clock):
    """A clock by which something happens, once, just when somebody asks what time it is."""

    def __init__(self) -> None:
        super().__init__()
        self.happens: list[Callable[[], object]] = []
        self.asked = 0

    def __call__(self) -> datetime:
        self.asked += 1
        assert self.asked < 50, "the same is tried again and again"
        while self.happens:
            self.happens.pop()()
        return super().__call__()


def test_a_title_is_counted_on_among_those_of_whoever_is_told_in_between(threaded: Store) -> None:
    clock = Interrupting()
    chats = Chats(threaded.chats, Config(), clock)
    untold = Source(platform="telegram", chat_id="777")
    told = replace(untold, user_id="777")
    chats.set_title(told, chats.open(told).id, "Roof")
    chat = chats.open(untold, force_new=True)
    clock.happens.append(lambda: chats.open(told))
    titled = chats.auto_title(chat.id, "Roof")
    assert (titled.title, titled.source.user_id) == ("Roof #2", "777")


def test_a_shorter_form_is_counted_on_among_those_of_whoever_is_told_in_between(threaded: Store) -> None:
    clock = Interrupting()
    chats = Chats(threaded.chats, Config(), clock)
    untold = Source(platform="telegram", chat_id="777")
    told = replace(untold, user_id="777")
    chats.set_title(told, chats.open(told).id, "Roof #2")
    chat = chats.open(untold, force_new=True)
    chats.auto_title(chat.id, "Roof")
    clock.happens.append(lambda: chats.open(told))
    shorter = chats.compress(chat.id, [a_turn("in short")])
    assert (shorter.title, shorter.source.user_id, shorter.follows) == ("Roof #3", "777", chat.id)


@pytest.mark.parametrize("platform", ["telegram", "slack"])
def test_what_was_said_before_it_was_told_who_writes_is_theirs_whose_id_the_chat_has(make: Make, platform: str) -> None:
    chats = make()
    untold = Source(platform=platform, chat_id="777")
    begun = chats.open(untold)
    chats.append(begun.id, a_turn("tiles"))
    chats.auto_title(begun.id, "Roof")
    chats.reset(untold)
    assert _everything_of(chats, untold, "Roof") == set()
    assert _everything_of(chats, replace(untold, user_id="778"), "Roof") == set()
    assert _everything_of(chats, replace(untold, chat_id="778", user_id="777"), "Roof") == set()
    told = replace(untold, user_id="777")
    assert _everything_of(chats, told, "Roof") == ALL
    assert chats.resume(told, "Roof").id == begun.id


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.builds(
            Source,
            platform=st.sampled_from(["signal", "irc"]),
            chat_id=st.sampled_from(["", "C", "A"]),
            chat_type=st.sampled_from(["dm", "group"]),
            user_id=st.sampled_from(["A", "B"]),
            user_id_alt=st.sampled_from([None, "X", "Y", "A"]),
            thread_id=st.sampled_from([None, "5"]),
        ),
        max_size=8,
    )
)
def test_whatever_is_opened_is_theirs_who_opened_it_and_nobodys_who_shares_no_id(
    make: Make, messages: list[Source]
) -> None:
    register_platform("irc")
    chats = make()
    run = str(next(EXAMPLES))
    for source in messages:
        source = replace(source, profile=run)
        try:
            chat = chats.open(source)
        except errors.UsageError:
            continue
        assert chats.get(source, chat.id).id == chat.id
        assert chat.id in {each.id for each in chats.list(source)}
        # Whoever does not tell their lasting id is who their conversation is with.
        lasting = source.user_id_alt or chat.source.user_id_alt
        for seen in chats.list(source):
            theirs, ours = ({each.user_id, each.user_id_alt} - {None} for each in (seen.source, source))
            assert seen.shared or theirs & (ours | {lasting})
            assert seen.shared or not source.user_id_alt or seen.source.user_id_alt in (None, source.user_id_alt)
