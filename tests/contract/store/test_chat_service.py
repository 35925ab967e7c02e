"""The service over both databases: which chat a message belongs to, and whose it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from perdure import errors
from perdure.chats.ownership import Asker
from perdure.chats.service import Chats
from perdure.chats.targets import find_chat
from perdure.model.chat import CloseReason, Kinship, ResetMode, ResetPolicy, Source, Tokens
from perdure.model.config import ChatKeysConfig, ChatsConfig, Config
from perdure.store.store import Store
from tests.builders import at
from tests.contract.store.chats import Clock, a_source, a_turn
from tests.contract.store.conftest import Place

ALICE, BOB = a_source("alice"), a_source("bob")
IDLE = ResetPolicy(mode=ResetMode.IDLE, idle_minutes=60)
DAILY = ResetPolicy(mode=ResetMode.DAILY, at_hour=4)
Make = Callable[..., Chats]


@pytest.fixture
def clock() -> Clock:
    """It is noon."""
    return Clock()


@pytest.fixture
def make(threaded: Store, clock: Clock) -> Make:
    """Makes the service with a policy."""

    def made(policy: ResetPolicy = IDLE, *, keys: ChatKeysConfig | None = None, **more: object) -> Chats:
        config = Config(chats=ChatsConfig(reset=policy, keys=keys or ChatKeysConfig()))
        return Chats(threaded.chats, config, clock, **more)  # type: ignore[arg-type]

    return made


@pytest.fixture
def chats(make: Make) -> Iterator[Chats]:
    """Chats that go stale after an hour."""
    return make()  # type: ignore[return-value]


def group(user: str, **changes: object) -> Source:
    return a_source(user, chat_type="group", chat_id="the group", **changes)


# --- which chat a message belongs to


def test_a_message_gets_the_chat_of_its_conversation(chats: Chats, clock: Clock) -> None:
    first = chats.open(ALICE)
    clock.later(minutes=30)
    again = chats.open(ALICE)
    assert (again.id, again.touched_at) == (first.id, clock())
    assert chats.store.get_chat(first.id) == again
    assert chats.open(BOB).id != first.id
    assert first.id.startswith("20261115_120000_")


def test_equality_keeps_and_a_moment_later_resets_for_good(chats: Chats, clock: Clock) -> None:
    first = chats.open(ALICE)
    clock.later(minutes=60)
    assert chats.open(ALICE).id == first.id
    clock.later(minutes=60, microseconds=1)
    second = chats.open(ALICE)
    assert (second.follows, second.kinship) == (first.id, Kinship.SUCCESSOR)
    closed = chats.store.get_chat(first.id)
    assert (closed.close_reason, closed.closed_at) == (CloseReason.IDLE, clock())


def test_a_restart_does_not_bring_a_stale_chat_back(make: Make, place: Place, clock: Clock) -> None:
    first = make().open(ALICE)
    clock.later(hours=2)
    second = make().open(ALICE)
    assert second.id != first.id
    # Another process, with a clock that is late and a policy that never resets.
    store = place.open()
    clock.later(hours=-2)
    other = Chats(store.chats, Config(), clock)
    assert other.open(ALICE).id == second.id
    store.close()


def test_without_a_policy_nothing_is_reset_not_even_after_an_interruption(make: Make, clock: Clock) -> None:
    chats = make(ResetPolicy())
    first = chats.open(ALICE)
    chats.mark_resume_pending(first.id)
    clock.later(days=400)
    assert chats.open(ALICE).id == first.id


def test_daily_in_the_configured_zone(threaded: Store, clock: Clock) -> None:
    config = Config(chats=ChatsConfig(reset=DAILY, zone="Asia/Tokyo"))
    chats = Chats(threaded.chats, config, clock)
    # Noon in UTC is nine in the evening in Tokyo; four in the morning there is seven hours later.
    first = chats.open(ALICE)
    clock.time = clock.time.replace(hour=18, minute=59)
    assert chats.open(ALICE).id == first.id
    clock.time = clock.time.replace(hour=19, minute=0, second=0, microsecond=0)
    assert chats.open(ALICE).follows == first.id


def test_looking_resets_nothing_and_uses_nothing(chats: Chats, clock: Clock) -> None:
    assert chats.peek(ALICE) is None
    first = chats.open(ALICE)
    clock.later(hours=9)
    assert chats.peek(ALICE) == first
    chats.list(ALICE)
    chats.find(ALICE, first.id)
    assert chats.store.get_chat(first.id) == first


def test_asking_for_a_new_one_keeps_the_old_and_tells_nobody(chats: Chats) -> None:
    first = chats.open(ALICE)
    chats.append(first.id, a_turn("hello"))
    second = chats.reset(ALICE)
    assert (second.follows, second.notice, second.tokens) == (first.id, None, Tokens())
    assert chats.store.get_chat(first.id).close_reason is CloseReason.ASKED
    assert [turn.content for turn in chats.load(first.id).turns] == ["hello"]


def test_all_who_come_at_once_get_one_chat(make: Make, clock: Clock) -> None:
    chats = make()
    first = chats.open(ALICE)
    clock.later(hours=2)
    with ThreadPoolExecutor(8) as pool:
        ids = set(pool.map(lambda _: chats.open(ALICE).id, range(24)))
    assert len(ids) == 1
    assert first.id not in ids
    assert chats.store.count_chats() == 2


def test_a_chat_that_was_closed_behind_its_back_is_not_given_out(chats: Chats, clock: Clock) -> None:
    first = chats.open(ALICE)
    real = chats.store.open_chat

    def stale_look(key: str) -> object:
        found = real(key)
        if found is not None and found.id == first.id:
            chats.store.open_chat = real  # type: ignore[method-assign]
            chats.reset(ALICE)
        return found

    chats.store.open_chat = stale_look  # type: ignore[method-assign,assignment]
    clock.later(minutes=1)
    given = chats.open(ALICE)
    assert given.id != first.id
    assert given.is_open


# --- jobs, suspending, interruptions, notices


def test_running_jobs_keep_a_chat_and_a_check_that_fails_counts_as_one(make: Make, clock: Clock) -> None:
    asked: list[tuple[str, timedelta]] = []

    def busy(key: str, age: timedelta) -> bool:
        asked.append((key, age))
        return True

    first = make(has_jobs=busy).open(ALICE)
    clock.later(hours=9)
    assert make(has_jobs=busy).open(ALICE).id == first.id
    assert asked == [(first.key, timedelta(hours=24))]

    def broken(key: str, age: timedelta) -> bool:
        raise OSError

    clock.later(hours=9)
    assert make(has_jobs=broken).open(ALICE).id == first.id
    clock.later(hours=9)
    assert make(has_jobs=lambda key, age: False).open(ALICE).id != first.id


def test_a_suspended_chat_gives_way_to_another_and_that_is_told_whatever_the_policy(make: Make) -> None:
    chats = make(ResetPolicy(notify=False))
    first = chats.open(ALICE)
    chats.suspend(first.id)
    assert chats.mark_resume_pending(first.id).resume_pending_at is None
    second = chats.open(ALICE)
    assert second.follows == first.id
    assert chats.take_notice(second.id) is CloseReason.SUSPENDED


def test_an_interrupted_chat_goes_on_for_an_hour(chats: Chats, clock: Clock) -> None:
    first = chats.open(ALICE)
    chats.mark_resume_pending(first.id)
    clock.later(minutes=60)
    assert chats.open(ALICE).id == first.id
    clock.later(microseconds=1)
    # It was used since, but never gone on with.
    second = chats.open(ALICE)
    assert chats.store.get_chat(first.id).close_reason is CloseReason.RESUME_EXPIRED
    assert second.notice is CloseReason.RESUME_EXPIRED
    chats.mark_resume_pending(second.id)
    chats.clear_resume_pending(second.id)
    clock.later(minutes=59)
    chats.touch(second.id)
    clock.later(minutes=59)
    assert chats.open(ALICE).id == second.id


def test_a_notice_is_given_once_to_the_chat_it_is_about(chats: Chats, clock: Clock) -> None:
    for source in (ALICE, BOB):
        chats.append(chats.open(source).id, a_turn())
    clock.later(hours=2)
    alice, bob = chats.open(ALICE), chats.open(BOB)
    with ThreadPoolExecutor(4) as pool:
        given = list(pool.map(lambda _: chats.take_notice(alice.id), range(8)))
    assert sorted(map(str, given)) == sorted(["idle", *["None"] * 7])
    assert chats.take_notice(bob.id) is CloseReason.IDLE
    assert chats.take_notice(chats.open(BOB).id) is None


@pytest.mark.parametrize(
    ("policy", "source", "speaks"),
    [
        (IDLE, ALICE, False),
        (ResetPolicy(mode=ResetMode.IDLE, idle_minutes=60, notify=False), ALICE, True),
        (IDLE, a_source("alice", platform="webhook"), True),
    ],
)
def test_nobody_is_told_of_nothing_or_against_the_policy(
    make: Make, clock: Clock, policy: ResetPolicy, source: Source, speaks: bool
) -> None:
    chats = make(policy)
    first = chats.open(source)
    if speaks:
        chats.append(first.id, a_turn())
    clock.later(hours=2)
    assert chats.take_notice(chats.open(source).id) is None


# --- lists, tokens


def test_lists_are_of_those_that_were_used_lately(chats: Chats, clock: Clock) -> None:
    assert not chats.has_any()
    first = chats.open(ALICE)
    assert chats.has_any()
    assert not chats.has_any(besides=first)
    clock.later(minutes=30)
    second = chats.open(BOB)
    assert [chat.id for chat in chats.list(Asker.OPERATOR)] == [second.id, first.id]
    assert [chat.id for chat in chats.list(Asker.OPERATOR, active_within=timedelta(minutes=30))] == [
        second.id,
        first.id,
    ]
    assert [chat.id for chat in chats.list(Asker.OPERATOR, active_within=timedelta(minutes=29))] == [second.id]
    assert [chat.id for chat in chats.list(ALICE)] == [first.id]


def test_tokens_only_grow_in_total_and_by_model_whoever_adds_them(make: Make) -> None:
    chats = make()
    chat = chats.open(ALICE)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: chats.add_tokens(chat.id, f"m{n % 2}", input=2, output=1), range(20)))
    found = chats.store.get_chat(chat.id)
    assert (found.tokens, found.tokens.total) == (Tokens(input=40, output=20), 60)
    assert found.by_model == dict.fromkeys(("m0", "m1"), Tokens(input=20, output=10))
    first_model = found.model
    chats.add_tokens(chat.id, "other", input=1)
    assert chats.store.get_chat(chat.id).model == first_model
    with pytest.raises(errors.UsageError):
        chats.add_tokens(chat.id, "m0", input=-1)


# --- titles and going on with what was


def titled(chats: Chats, source: Source, title: str) -> str:
    id = chats.reset(source).id
    chats.set_title(source, id, title)
    return id


def test_titles_are_clean_unique_to_their_owner_and_survive_closing(chats: Chats) -> None:
    first = titled(chats, ALICE, "  My\u200b \n Project ")
    assert chats.store.get_chat(first).title == "My Project"
    chats.reset(ALICE)
    assert chats.store.get_chat(first).title == "My Project"
    with pytest.raises(errors.TitleTaken, match=first):
        titled(chats, ALICE, "My Project")
    assert titled(chats, BOB, "My Project")
    assert chats.set_title(ALICE, first, "My Project").title == "My Project"
    assert chats.set_title(ALICE, first, " ").title is None
    with pytest.raises(errors.UsageError, match="100"):
        chats.set_title(ALICE, first, "x" * 101)


def test_an_automatic_title_is_for_a_chat_without_one_and_never_taken(chats: Chats) -> None:
    titled(chats, ALICE, "Roof")
    second = chats.reset(ALICE)
    assert chats.auto_title(second.id, "Roof").title == "Roof #2"
    assert chats.auto_title(second.id, "Other").title == "Roof #2"
    third = chats.reset(ALICE)
    assert chats.auto_title(third.id, "x" * 300).title == "x" * 100
    assert chats.auto_title(chats.reset(ALICE).id, "\u200b").title is None


def test_a_title_means_the_latest_by_number(chats: Chats) -> None:
    plain, third, second = (titled(chats, ALICE, f"My Project{end}") for end in ("", " #3", " #2"))
    titled(chats, ALICE, "My Project #ideas")
    chats.reset(ALICE)
    assert chats.resume(ALICE, "My Project").id == third
    assert chats.resume(ALICE, '"My Project #2"').id == second
    assert chats.resume(ALICE, f"[{plain}]").id == plain
    with pytest.raises(errors.ChatNotFound):
        chats.resume(ALICE, "my project")
    with pytest.raises(errors.ChatNotFound):
        chats.resume(ALICE, "My Project #4")
    with pytest.raises(errors.ChatNotFound):
        chats.resume(ALICE, "")


def test_wildcards_in_titles_are_letters(chats: Chats) -> None:
    titled(chats, ALICE, "ab")
    other = titled(chats, ALICE, "a_")
    assert chats.resume(ALICE, "a_").id == other
    with pytest.raises(errors.ChatNotFound):
        chats.resume(ALICE, "%")


def test_resuming_closes_the_one_and_opens_the_other_as_it_was(chats: Chats, clock: Clock) -> None:
    first = chats.open(ALICE)
    chats.append(first.id, a_turn("roof"))
    chats.add_tokens(first.id, "m", input=5)
    second = chats.reset(ALICE)
    clock.later(minutes=1)
    resumed = chats.resume(ALICE, first.id)
    assert (resumed.id, resumed.is_open, resumed.tokens.total) == (first.id, True, 5)
    assert chats.store.get_chat(second.id).close_reason is CloseReason.SWITCHED
    assert chats.open(ALICE).id == first.id
    assert [turn.content for turn in chats.load(first.id).turns] == ["roof"]
    # Already there: nothing changes.
    before = chats.store.get_chat(first.id)
    clock.later(minutes=1)
    assert chats.resume(ALICE, first.id) == before


def test_the_beginning_of_an_id_is_enough_when_it_is_the_only_one(chats: Chats, clock: Clock) -> None:
    first = chats.open(ALICE)
    clock.later(seconds=1)
    chats.reset(ALICE)
    with pytest.raises(errors.AmbiguousChat):
        chats.resume(ALICE, first.id[:8])
    assert chats.resume(ALICE, first.id[:-3]).id == first.id
    # Another's chats neither count nor help.
    with pytest.raises(errors.ChatNotFound):
        chats.resume(BOB, first.id[:-3])


def test_what_was_made_shorter_is_gone_on_with_where_it_goes_on_and_what_came_after_is_not(chats: Chats) -> None:
    root = titled(chats, ALICE, "Roof")
    chats.append(root, a_turn("a"), a_turn("b"))
    tip = chats.compress(root, [a_turn("summary", "system")], expect=3)
    assert (tip.kinship, tip.title, tip.turns) == (Kinship.CONTINUATION, "Roof #2", 1)
    further = chats.compress(tip.id, [a_turn("shorter", "system")])
    chats.reset(ALICE)
    for text in (root, tip.id, "Roof", "Roof #2"):
        chats.reset(ALICE)
        assert chats.resume(ALICE, text).id == further.id
    # The same conversation: its title may move along.
    assert chats.set_title(ALICE, further.id, "Roof").title == "Roof"
    assert chats.store.get_chat(root).title is None


def test_a_conversation_is_read_from_its_beginning_in_order(chats: Chats) -> None:
    before = chats.open(ALICE).id
    chats.append(before, a_turn("another conversation"))
    root = chats.reset(ALICE).id
    chats.append(root, a_turn("a"), a_turn("b"))
    middle = chats.compress(root, [a_turn("a and b")]).id
    chats.append(middle, a_turn("c"))
    tip = chats.compress(middle, [a_turn("a to c")]).id
    chats.append(tip, a_turn("d"))
    said = [(each.chat, [turn.content for turn in each.turns]) for each in chats.history(ALICE, tip)]
    assert said == [(root, ["a", "b"]), (middle, ["a and b", "c"]), (tip, ["a to c", "d"])]
    assert [each.chat for each in chats.history(ALICE, root)] == [root]
    # A copy is whole by itself.
    copy = chats.branch(ALICE, tip).id
    assert [each.chat for each in chats.history(ALICE, copy)] == [copy]
    with pytest.raises(errors.ChatNotFound):
        chats.history(ALICE, "nobody")
    # Whoever was granted how it goes on was not granted how it began.
    with pytest.raises(errors.Refused):
        chats.history(BOB, tip)
    chats.grant(ALICE, middle, BOB)
    chats.grant(ALICE, tip, BOB)
    assert [each.chat for each in chats.history(BOB, tip)] == [middle, tip]


def test_a_chat_that_was_closed_cannot_be_made_shorter(chats: Chats) -> None:
    first = chats.open(ALICE)
    chats.reset(ALICE)
    with pytest.raises(errors.Conflict):
        chats.compress(first.id, [a_turn("x")])
    assert chats.store.count_chats() == 2


def test_a_branch_is_a_copy_with_a_name_of_its_own(chats: Chats) -> None:
    root = titled(chats, ALICE, "Roof")
    chats.append(root, a_turn("a"), a_turn("b"))
    branch = chats.branch(ALICE, root, before=2)
    assert (branch.title, branch.kinship, branch.follows, branch.turns) == ("Roof #2", Kinship.BRANCH, root, 1)
    assert chats.open(ALICE).id == branch.id
    # A branch is no continuation.
    assert chats.resume(ALICE, root).id == root


def test_undo_and_retry(chats: Chats) -> None:
    id = chats.open(ALICE).id
    chats.append(id, a_turn("q1"), a_turn("a1", "assistant"), a_turn("q2"), a_turn("a2", "assistant"))
    assert chats.undo(id).content == "q2"
    chats.append(id, a_turn("q3"), a_turn("a3", "assistant"))
    turns = chats.load(id).turns
    chats.rewrite(id, turns[-1].position, a_turn("better", "assistant"))
    assert [turn.content for turn in chats.load(id).turns] == ["q1", "a1", "q3", "better"]


# --- whose it is


def test_nobody_resumes_lists_or_finds_what_is_somebody_elses(chats: Chats) -> None:
    id = titled(chats, ALICE, "Secret")
    chats.append(id, a_turn("the password is tiles"))
    assert chats.list(BOB) == ()
    assert chats.search(BOB, "password") == ()
    with pytest.raises(errors.ChatNotFound):
        chats.resume(BOB, "Secret")
    for ask in (
        lambda: chats.resume(BOB, id),
        lambda: chats.switch(BOB, id),
        lambda: chats.branch(BOB, id),
        lambda: chats.get(BOB, id),
        lambda: chats.set_title(BOB, id, "Mine"),
        lambda: chats.grant(BOB, id, BOB),
    ):
        with pytest.raises(errors.Refused) as caught:
            ask()
        assert caught.value.exit_code == 6
    assert chats.open(ALICE).id == id


@pytest.mark.parametrize(
    "stranger",
    [
        a_source("alice", chat_id="elsewhere"),
        a_source("alice", chat_id="chat-alice", thread_id="7"),
        a_source("alice", profile="work"),
        a_source("alice", platform="signal"),
        a_source("bob", chat_id="chat-alice"),
        a_source(None, chat_id="chat-alice"),
        a_source("bob", chat_id="chat-alice", user_id_alt="other"),
    ],
)
def test_every_part_of_who_and_where_has_to_agree(chats: Chats, stranger: Source) -> None:
    id = chats.open(ALICE).id
    with pytest.raises(errors.Refused):
        chats.get(stranger, id)
    assert id not in {chat.id for chat in chats.list(stranger)}


def test_a_chat_of_nobody_in_particular_is_for_whoever_runs_the_store(chats: Chats) -> None:
    nobody = a_source(None, chat_id="5")
    id = chats.open(nobody).id
    with pytest.raises(errors.Refused):
        chats.get(nobody, id)
    assert chats.get(Asker.OPERATOR, id).id == id
    assert [chat.id for chat in chats.list(Asker.OPERATOR)] == [id]


def test_the_machine_itself_is_one_person(chats: Chats) -> None:
    local = Source(platform="local", chat_id="cli")
    first = chats.open(local)
    chats.reset(local)
    assert chats.resume(local, first.id).id == first.id


def test_a_chat_that_is_everybodys_is_for_everybody_there(make: Make) -> None:
    chats = make(keys=ChatKeysConfig(group_sessions_per_user=False))
    first = chats.open(group("alice"))
    assert first.shared
    assert chats.open(group("bob")).id == first.id
    chats.set_title(group("bob"), first.id, "Ours")
    chats.reset(group("alice"))
    assert chats.resume(group("bob"), "Ours").id == first.id
    with pytest.raises(errors.TitleTaken):
        chats.set_title(group("alice"), chats.reset(group("alice")).id, "Ours")
    with pytest.raises(errors.Refused):
        chats.get(a_source("bob"), first.id)


def test_people_in_a_group_have_a_chat_each(chats: Chats) -> None:
    mine, yours = chats.open(group("alice")), chats.open(group("bob"))
    assert mine.id != yours.id
    with pytest.raises(errors.Refused):
        chats.resume(group("bob"), mine.id)


def test_what_is_granted_is_gone_on_with_in_a_copy_and_can_be_taken_back(chats: Chats) -> None:
    id = titled(chats, ALICE, "Plan")
    chats.append(id, a_turn("tiles"))
    chats.grant(ALICE, id, BOB)
    assert [chat.id for chat in chats.list(BOB)] == [id]
    assert [found.chat for found in chats.search(BOB, "tiles")] == [id]
    copy = chats.resume(BOB, "Plan")
    assert (copy.kinship, copy.follows, copy.title) == (Kinship.BRANCH, id, "Plan")
    chats.append(copy.id, a_turn("mine"))
    # Nothing of it is in the other's, which stays the other's.
    assert [turn.content for turn in chats.load(id).turns] == ["tiles"]
    assert chats.open(ALICE).id == id
    with pytest.raises(errors.Refused):
        chats.get(ALICE, copy.id)
    with pytest.raises(errors.Refused):
        chats.set_title(BOB, id, "Mine")
    shorter = chats.compress(id, [a_turn("shorter")])
    assert chats.get(BOB, shorter.id).id == shorter.id
    chats.revoke(ALICE, id, BOB)
    chats.revoke(ALICE, shorter.id, BOB)
    assert {chat.id for chat in chats.list(BOB)} == {copy.id}
    with pytest.raises(errors.UsageError):
        chats.grant(ALICE, id, a_source(None))


def test_search_is_filtered_by_user_platform_time_and_role(chats: Chats) -> None:
    first = chats.open(ALICE)
    chats.append(first.id, a_turn("tiles", at=at(5)), a_turn("tiles", "assistant", at=at(9)))
    chats.append(chats.open(BOB).id, a_turn("tiles", at=at(7)))
    every = chats.search(Asker.OPERATOR, "tiles")
    assert len(every) == 3
    assert {found.chat for found in chats.search(Asker.OPERATOR, "tiles", user="alice")} == {first.id}
    assert len(chats.search(Asker.OPERATOR, "tiles", platform="telegram", since=at(6), until=at(9))) == 1
    assert len(chats.search(Asker.OPERATOR, "tiles", role="assistant")) == 1


def test_two_writers_cannot_interleave_unseen(chats: Chats) -> None:
    id = chats.open(ALICE).id
    seen = chats.load(id)
    chats.append(id, a_turn("a"), expect=seen.next)
    with pytest.raises(errors.Conflict) as caught:
        chats.append(id, a_turn("b"), expect=seen.next)
    assert caught.value.data["position"] == chats.load(id).next


@pytest.mark.parametrize(
    "typed",
    [
        *('"Quoted"', "<x>", "[draft]", "'single'", "[a] vs [b]", '"a" and "b"', "<<a>>", "#5", "x #1", "[]"),
        *("My  Project", "A\tB", "It's\u200b fine", "  pad ", "Caf\u0065\u0301", "a\x07b"),
    ],
)
def test_a_title_comes_back_by_what_was_typed_and_by_what_it_is(chats: Chats, typed: str) -> None:
    chat = chats.open(ALICE)
    title = chats.set_title(ALICE, chat.id, typed).title
    assert title is not None
    chats.reset(ALICE)
    for wanted in (typed, title, f'"{title}"', f"<{typed}>", f" {title} "):
        assert chats.find(ALICE, wanted).id == chat.id
        assert find_chat(chats.store, wanted).id == chat.id
    assert chats.resume(ALICE, typed).id == chat.id


def test_what_is_typed_is_taken_as_it_is_before_anything_is_taken_off(chats: Chats) -> None:
    bare, quoted = chats.open(ALICE).id, chats.reset(ALICE).id
    chats.set_title(ALICE, bare, "Roof")
    assert chats.find(ALICE, '"Roof"').id == bare
    chats.set_title(ALICE, quoted, '"Roof"')
    assert chats.find(ALICE, '"Roof"').id == quoted
    assert chats.find(ALICE, "Roof").id == bare


def test_a_number_that_somebody_wrote_is_no_count_of_ours(chats: Chats) -> None:
    titled = []
    for text in ("please fix bug #42", "please fix bug #43", "please fix bug #42", "PR #7", "what is #1"):
        id = chats.reset(ALICE).id
        titled.append(chats.auto_title(id, text).title)
        chats.append(id, a_turn(text))
    assert titled == ["please fix bug #42", "please fix bug #43", "please fix bug #42 #2", "PR #7", "what is #1"]


def test_a_title_that_had_to_be_cut_for_its_number_means_the_latest_of_its_own(chats: Chats) -> None:
    long, other = "T" * 97 + "abc", "T" * 97 + "xyz"
    first, another = chats.open(ALICE).id, chats.reset(ALICE).id
    chats.set_title(ALICE, first, long)
    chats.set_title(ALICE, another, other)
    second = chats.branch(ALICE, first)
    third = chats.branch(ALICE, second.id)
    assert third.title == "T" * 97 + " #3"
    assert chats.find(ALICE, long).id == third.id
    # Whose cut title is the same, but which is another conversation.
    assert chats.find(ALICE, other).id == another
    assert chats.find(ALICE, second.title or "").id == second.id
    theirs = chats.branch(ALICE, another)
    assert chats.find(ALICE, other).id == theirs.id
    assert chats.find(ALICE, long).id == third.id
