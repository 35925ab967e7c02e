"""Telling a pane something, and finding out whether it was taken in.

    refuse? -> leave a mode -> paste -> wait until it stands there -> Enter -> confirm

A text that was pasted is never pasted again: at the worst it stands in the input, and Enter is pressed once more. Nobody gets
any of it but who was meant: that is looked at before the text and before Enter, and what is started in the pane between a
look and a key is told from what was there by tmux itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum

from msgspec import Struct

from perdure.agents import Roster
from perdure.errors import NotFound, Unanswered
from perdure.host.clock import ticking
from perdure.host.processes import is_alive
from perdure.live.drafts import draft
from perdure.live.meant import Meant, stranger
from perdure.live.present import Present, conversation_of, made_for, present_in
from perdure.live.typed import (
    Held,
    Message,
    Outlook,
    has_moved,
    held,
    is_recorded,
    is_said,
    last_lines,
    objection,
    outlook,
    part_said,
    sign_of_keys,
)
from perdure.model.identity import Identity
from perdure.model.process import Process
from perdure.model.run import Program, RunState
from perdure.model.screen import Screen, ScreenReading, State
from perdure.model.secrets import redact_text
from perdure.model.text import encode
from perdure.model.wrapped import Stage, read_wrapper
from perdure.ports import AgentAdapter, HostView, ReadsTranscripts, TellsState
from perdure.tmux.act import OTHERS_TOO, PASSING, Spot, leave_mode, paste, press
from perdure.tmux.peek import Peeked, is_there, peek, started_with

#: How long a text may take to show up, at most.
_ECHO = 2.0
#: How long a program is left alone between a paste and Enter: some take an Enter that comes at once for part of it.
_SETTLE = 0.2
#: After how long Enter is pressed again for a text that stands where it was.
_AGAIN = 1.0
_INTERVAL = 0.1
#: How long a pane is looked at before keys to see whether it prints by itself: an agent's, of which more is known, and any other.
_MOMENT, _WHILE = 0.3, 1.2
#: How long after keys a program's end is their doing.
_AT_ONCE = 1.0
#: How long an agent that was told to stop may take to.
_STOPPING = 3.0
_PLAIN = Message(text="anything")
#: How long what an agent was told may stand in its input though it has it.
_DRAWN = 1.0
#: How much of what stands in an input is told.
_SHOWN = 60
#: How often a transcript is read, at most: it may be long.
_READ_EVERY = 0.5
#: Who has the very words.
_VERBATIM = ("hook", "transcript")
#: The longest text that no terminal cuts: a program that reads whole lines gets 4095 bytes of one, and the rest is lost.
_LONG = 1000
#: How long the transcript may take to have a text that may have been cut.
_WRITTEN = 2.0


class Result(StrEnum):
    """What came of a message."""

    DELIVERED = "delivered"
    #: It was typed, and nothing shows that it was taken in.
    UNCONFIRMED = "unconfirmed"
    #: Nothing was typed.
    REFUSED = "refused"


class Delivery(Struct, frozen=True, kw_only=True):
    """What came of a message, and how that is known."""

    result: Result
    #: One sentence without its full stop.
    why: str
    #: Who confirms it: `transcript`, `hook`, `registry` or `screen`.
    by: str | None = None
    agent: str | None = None
    #: How often Enter was pressed.
    enters: int = 0
    #: What somebody has begun to type there, secrets aside, where nothing was typed because of that.
    draft: str | None = None
    #: What the pane showed last, where it was not delivered.
    screen: tuple[str, ...] = ()


class Recipient(Struct, frozen=True, kw_only=True):
    """A pane, and who in it is to hear something."""

    spot: Spot
    #: Nobody else does. Where it is an agent, a text is no command for the shell that is left either.
    meant: Meant
    #: Who was found in the pane by a look that weighed everything, and the conversation they are in: it need not be found out again.
    seen: tuple[Program, Identity] | None = None


class _Look(Struct, frozen=True, kw_only=True):
    """A pane at one moment."""

    pane: Peeked
    who: Present
    reading: ScreenReading | None


def deliver(
    message: Message,
    to: Recipient,
    *,
    known: Roster,
    view: HostView | None,
    now: Callable[[], datetime],
    pause: Callable[[float], None],
    timeout: float,
    unless: Callable[[Sequence[str]], str] = lambda lines: "",
) -> Delivery:
    """Tell a pane something; return within about `timeout` seconds what came of it.

    `unless` says of what the pane shows, right before anything is typed, why nothing may be; "" when it may.
    `view` are the files of the pane's user, None where they are not to be read: then only the screen confirms. Raises
    Unanswered and PerdureError when tmux does not do what it is told.
    """
    return _Delivering(message, to, known, view, now, pause, timeout, unless).run()


class _Delivering:
    def __init__(
        self,
        message: Message,
        to: Recipient,
        known: Roster,
        view: HostView | None,
        now: Callable[[], datetime],
        pause: Callable[[float], None],
        timeout: float,
        unless: Callable[[Sequence[str]], str],
    ) -> None:
        self._message = message
        self._to = to
        self._spot = to.spot
        self._known = known
        self._view = view
        self._now = now
        self._pause = pause
        self._unless = unless
        self._deadline = ticking() + timeout
        self._sent_at = now()
        self._typed = False
        #: Whether what comes behind the text was pressed; None while that is not known.
        self._pressed: bool | None = False
        self._restless = False
        self._enters = 0
        self._agent: AgentAdapter | None = None
        self._process: Process | None = None
        self._before: _Look | None = None
        self._was_busy = False
        self._draft: str | None = None
        self._read_at = 0.0

    def run(self) -> Delivery:
        before = self._look()
        looked = ticking()
        if before is None:
            return self._is(Result.REFUSED, "it is not there any more")
        self._agent, self._process = before.who.adapter, before.who.process
        self._spot = self._spot._replace(first=before.pane.pid)
        if why := self._refusal(before) or self._unless(before.pane.lines):
            return self._is(Result.REFUSED, why, look=before)
        try:
            if before.pane.mode:
                leave_mode(self._spot)
            if not self._message.text:
                self._restless = self._prints_by_itself(before)
            if before.pane.mode or ticking() - looked >= _INTERVAL:
                # Who was there some time ago is not who is there.
                before = self._look() or before
                if why := self._strange(before) or self._unless(before.pane.lines):
                    return self._is(Result.REFUSED, why, look=before)
            self._before, self._was_busy = before, self._is_busy(before)
            return self._tell(before)
        except Unanswered:
            if not self._typed:
                raise
            return self._is(Result.UNCONFIRMED, self._silenced())
        except NotFound:
            if not self._typed:
                return self._is(Result.REFUSED, "what was there ended just then; look again")
            left = "" if self._enters else ", and Enter was not pressed"
            return self._is(Result.UNCONFIRMED, f"its program ended just then: the text was typed{left}")

    def _silenced(self) -> str:
        """What came of something after which its server did not answer any more."""
        told = self._message
        why = f"{'it was typed' if told.text else 'the keys were pressed'}, and then its server did not answer"
        if self._pressed or not told.text or not (told.keys or told.enter):
            return why
        if self._pressed is None:
            return f"{why}: whether Enter was pressed is not known"
        return f"{why}: Enter was not pressed, and the text may stand in the input"

    def _prints_by_itself(self, before: _Look) -> bool:
        """Whether a pane shows something new though nobody told it anything: then what it shows after keys proves nothing."""
        began, length = ticking(), _MOMENT if before.reading is not None else _WHILE
        moves = False
        while not moves and ticking() - began < length:
            self._pause(_INTERVAL)
            pane = peek(self._spot)
            moves = pane is not None and has_moved(before.pane.lines, pane.lines)
        # Nobody has been told anything so far.
        self._deadline += ticking() - began
        return moves

    def _refusal(self, look: _Look) -> str:
        told, expected = self._message, self._to.meant.agent
        if look.pane.is_dead:
            return "its program has ended, and nobody reads what is typed"
        if look.pane.is_deaf:
            return "it was told to take no input"
        if look.pane.is_shared:
            return OTHERS_TOO
        if why := self._strange(look):
            return why
        wrapped = read_wrapper(look.who.tree[0].argv) if look.who.tree else None
        if expected is None and told.text and not told.anyway and wrapped is None and look.who.adapter is None:
            expected = self._was_started_for()
        if wrapped is not None and wrapped.stage is Stage.PRELUDE and not told.keys:
            return "it waits to be started, which the key Enter does, and would not hear the text"
        if expected is not None and look.who.adapter is None and not told.anyway:
            if told.text:
                return f"{expected} has ended, and the shell that is left would run the text as a command"
            if self._to.meant.program is not None and self._to.meant.program not in look.who.there.programs:
                return f"{expected} has ended meanwhile; look again"
        if look.pane.mode and look.pane.mode not in PASSING:
            return f"it is in {look.pane.mode}, where keys mean something else"
        return objection(look.reading, told) or self._joined(look)

    def _was_started_for(self) -> str | None:
        """The agent that a pane was made for which is a shell's by now, None where it was made for none."""
        return made_for(started_with(self._spot), self._known, self._now())

    def _joined(self, look: _Look) -> str:
        """Why a text would not stand alone, "" when it would. What was sent just before may be there for another moment."""
        told = self._message
        # Who presses nothing behind it goes on with what stands there.
        if not told.text or told.anyway or told.joined or not (told.enter or told.keys):
            return ""
        until, found = ticking() + _DRAWN, _draft(look)
        while found and ticking() < until:
            self._pause(_INTERVAL)
            later = self._look()
            found = "" if later is None else _draft(later)
        if not found:
            return ""
        self._draft = redact_text(found if len(found) <= _SHOWN else f"{found[: _SHOWN - 1]}…")
        return f"{self._draft!r} stands in its input, and the text would be joined with it"

    def _strange(self, look: _Look) -> str:
        """Why those who would hear it are not those who are meant, "" when they are."""
        why = stranger(self._to.meant, look.who.there, lambda: self._conversation_of(look))
        return why or ("" if self._message.anyway else look.who.displaced)

    def _conversation_of(self, look: _Look) -> Identity | None:
        seen, now = self._to.seen, self._now()
        return conversation_of(look.who, self._spot, look.pane.title, view=self._view, now=now, seen=seen)

    def _tell(self, before: _Look) -> Delivery:
        told = self._message
        self._sent_at = self._now()
        if not told.text:
            press(self._spot, told.keys)
            self._typed = True
            return self._watch_keys(before)
        paste(self._spot, encode(told.text))
        self._typed = True
        typed, look = self._await_echo(before)
        if told.keys or told.enter:
            self._pause(_SETTLE)
            look = self._look(anew=True)
            if why := self._unexpected(look, before):
                return self._is(Result.UNCONFIRMED, f"{why}: the text was typed, and Enter was not pressed", look=look)
            self._press(told.keys or ("Enter",))
        elif typed is not None:
            return self._is(Result.DELIVERED, "it stands in the pane", by="screen", look=look)
        if before.who.adapter is None or not (told.keys or told.enter):
            return self._watch_echo(before, typed)
        return self._confirm(before, typed)

    def _press(self, keys: tuple[str, ...]) -> None:
        if not self._pressed:
            self._pressed = None
        press(self._spot, keys)
        self._pressed = True
        self._enters += keys.count("Enter")

    def _unexpected(self, look: _Look | None, before: _Look) -> str:
        """Why Enter must not be pressed any more, "" when it may. Only of a look anew."""
        if look is None or self._is_over(look, before):
            return "its program ended just then"
        was = before.who.there
        if stranger(Meant(agent=was.agent, first=was.first, program=was.program), look.who.there, lambda: None):
            return "another program was started there just then"
        if look.who.displaced and not before.who.displaced:
            return "its agent was stopped just then"
        if look.pane.mode:
            return f"somebody went into {look.pane.mode} just then"
        if look.pane.is_shared:
            return "others of its window would get it too by now"
        came_up = objection(look.reading, _PLAIN) and not objection(before.reading, _PLAIN)
        return "something else came up just then" if came_up else ""

    def _is_over(self, look: _Look, before: _Look) -> bool:
        """Whether who was told is gone, and what the pane shows is nobody's answer or somebody else's.

        Who loses the terminal to another may live on for a while.
        """
        process = self._process
        if look.pane.is_dead or look.pane.pid != before.pane.pid:
            return True
        return process is not None and not is_alive(process.pid, process.start_ticks)

    def _await_echo(self, before: _Look) -> tuple[Held | None, _Look | None]:
        """Wait until the text stands in the pane, twice at the same place, or it has had its time."""
        last: Held | None = None
        until = min(self._deadline, ticking() + _ECHO)
        while True:
            look = self._look()
            if look is None:
                return last, None
            found = held(self._message.text, look.pane.lines, before.pane.lines)
            if (found is not None and found == last) or ticking() >= until:
                return found, look
            last = found
            self._pause(_INTERVAL)

    def _watch_keys(self, before: _Look) -> Delivery:
        """Wait until the pane, or its agent, shows what came of keys. One that prints anyway shows nothing by that."""
        pressed, last = ticking(), ""
        was = before.reading.state if before.reading is not None else None
        is_at_work = self._was_busy and was is not State.ATTENTION
        is_restless = self._restless or is_at_work
        # Until when its screen may tell: it may also end its work by itself, and later than that it does.
        until = self._deadline if not is_at_work else pressed + (_STOPPING if was is State.BUSY else 0.0)
        while True:
            self._pause(_INTERVAL)
            look = self._look()
            if look is None or look.pane.is_dead or look.pane.pid != before.pane.pid:
                return self._over_after_keys(look, at_once=ticking() - pressed < _AT_ONCE)
            if not is_restless and has_moved(before.pane.lines, look.pane.lines):
                return self._is(Result.DELIVERED, "the pane answered to the keys", by="screen", look=look)
            if not self._was_busy and (by := self._busy_since()):
                return self._is(Result.DELIVERED, f"its {by} says so", by=by, look=look)
            sign = sign_of_keys(before.reading, look.reading, self._message.keys)
            # What is redrawn is gone for a moment: twice is gone.
            if sign and sign == last and ticking() < until:
                return self._is(Result.DELIVERED, sign, by="screen", look=look)
            last = sign
            if ticking() >= self._deadline or (is_restless and before.who.adapter is None):
                why = "the pane was printing anyway" if is_restless else "the pane shows nothing new"
                return self._is(Result.UNCONFIRMED, f"the keys were pressed, and {why}", look=look)

    def _over_after_keys(self, look: _Look | None, *, at_once: bool) -> Delivery:
        """What is to be said where the program that keys were for is not there any more, or its pane is gone."""
        if look is None and not is_there(self._spot):
            return self._is(Result.UNCONFIRMED, "the keys were pressed, and then its server was gone")
        if at_once:
            return self._is(Result.DELIVERED, "its program ended at once", by="screen")
        return self._is(
            Result.UNCONFIRMED, "the keys were pressed, and its program ended a while after them", look=look
        )

    def _watch_echo(self, before: _Look, typed: Held | None) -> Delivery:
        """A shell or a program nobody knows: that the text is shown is all there is to see."""
        while True:
            look = self._look()
            if typed is None and look is not None:
                typed = held(self._message.text, look.pane.lines, before.pane.lines)
            if typed is not None:
                return self._is(Result.DELIVERED, "the pane showed the text", by="screen", look=look)
            if look is None or ticking() >= self._deadline:
                return self._is(Result.UNCONFIRMED, "it was typed, and the pane does not show it", look=look)
            self._pause(_INTERVAL)

    def _confirm(self, before: _Look, typed: Held | None) -> Delivery:
        """Wait until somebody says that an agent has taken the text in."""
        entered, was = ticking(), Outlook.UNKNOWN
        while True:
            if by := self._told():
                return self._taken(by, f"its {by} says so")
            look = self._look()
            if look is None or self._is_over(look, before):
                return self._is(Result.UNCONFIRMED, "it was typed, and then the agent ended", look=look)
            seen = outlook(before.reading, typed, look.pane.lines, look.reading)
            # What is redrawn is gone for a moment: twice is gone.
            if seen is Outlook.STARTED or (seen is Outlook.GONE and was is Outlook.GONE):
                return self._taken("screen", "it left the input", look)
            if seen is Outlook.STANDS and was is Outlook.STANDS and self._may_press_again(look, before, entered):
                self._press(("Enter",))
                entered = ticking()
            if ticking() >= self._deadline:
                return self._is(Result.UNCONFIRMED, self._doubt(seen), look=look)
            was = seen
            self._pause(_INTERVAL)

    def _taken(self, by: str, why: str, look: _Look | None = None) -> Delivery:
        """What came of a text that was taken in, by who says so: those who have not its words cannot say how much of it."""
        identity = self._identity()
        if by not in _VERBATIM and identity is not None and identity.certain:
            text, since = self._message.text, self._sent_at
            until = min(self._deadline, ticking() + (_WRITTEN if len(text) > _LONG else 0.0))
            while True:
                turns = tuple(self._turns())
                if is_said(text, turns, since):
                    return self._is(Result.DELIVERED, "its transcript says so", by="transcript")
                if part := part_said(text, turns, since):
                    why = f"its transcript has only a part of the text, about {part} of {len(text)} characters"
                    return self._is(Result.UNCONFIRMED, why, look=look)
                if ticking() >= until:
                    break
                self._pause(_READ_EVERY)
        return self._is(Result.DELIVERED, why, by=by, look=look)

    def _may_press_again(self, look: _Look, before: _Look, entered: float) -> bool:
        """Once, and only into an input: on a form Enter would be an answer."""
        if (
            self._message.keys
            or self._enters != 1
            or ticking() - entered < _AGAIN
            or look.pane.mode
            or look.pane.is_shared
        ):
            return False
        if look.reading is None or look.reading.state is not State.IDLE:
            return False
        return not self._unexpected(self._look(anew=True), before)

    def _doubt(self, seen: Outlook) -> str:
        if seen is Outlook.STANDS:
            return f"it still stands in the input; Enter was pressed {'twice' if self._enters > 1 else 'once'}"
        return "it was typed, and nothing shows that it was taken in"

    def _is_busy(self, look: _Look) -> bool:
        """Whether anybody says that the agent is at work: then that it is proves nothing."""
        if look.reading is not None and look.reading.state is State.BUSY:
            return True
        agent, process, view = look.who.adapter, look.who.process, self._view
        if process is None or view is None or not isinstance(agent, TellsState):
            return False
        return any(each.state is RunState.BUSY for each in agent.told(process, view))

    def _told(self) -> str | None:
        """Who but the screen says that the text was taken in."""
        agent, process, view = self._agent, self._process, self._view
        if agent is None or process is None or view is None:
            return None
        text, since = self._message.text, self._sent_at
        if is_recorded(text, view.hooks(agent.name, process), since):
            return "hook"
        if not self._was_busy and (by := self._busy_since()):
            return by
        if ticking() - self._read_at < _READ_EVERY:
            return None
        self._read_at = ticking()
        return "transcript" if is_said(text, self._turns(), since) else None

    def _busy_since(self) -> str | None:
        """Who but the screen says that the agent has gone to work since it was told something."""
        agent, process, view = self._agent, self._process, self._view
        if process is None or view is None or not isinstance(agent, TellsState):
            return None
        told = agent.told(process, view)
        return next(
            (str(each.source) for each in told if each.state is RunState.BUSY and each.at >= self._sent_at), None
        )

    def _turns(self) -> Iterable[Mapping[str, object]]:
        """What was said in the conversation, as far as it can be read."""
        agent, process, view, identity = self._agent, self._process, self._view, self._identity()
        if identity is None or identity.is_kept or not identity.conversation or process is None or view is None:
            return ()
        if not isinstance(agent, ReadsTranscripts):
            return ()
        return agent.turns(identity.conversation, view, agent.describe(identity, process, view).transcript)

    def _identity(self) -> Identity | None:
        return self._to.seen[1] if self._to.seen is not None else self._to.meant.identity

    def _look(self, *, anew: bool = False) -> _Look | None:
        """Look at the pane; at who is in it only as long as nothing was typed, or `anew`: that takes longer."""
        pane = peek(self._spot)
        if pane is None:
            return None
        who = present_in(pane, self._known) if self._before is None or anew else self._before.who
        screen = Screen(lines=pane.lines, title=pane.title)
        return _Look(pane=pane, who=who, reading=who.adapter.read_screen(screen) if who.adapter is not None else None)

    def _is(self, result: Result, why: str, *, by: str | None = None, look: _Look | None = None) -> Delivery:
        return Delivery(
            result=result,
            why=why,
            by=by,
            agent=self._agent.name if self._agent is not None else None,
            enters=self._enters,
            draft=self._draft,
            screen=last_lines(look.pane.lines) if look is not None and result is not Result.DELIVERED else (),
        )


def _draft(look: _Look) -> str:
    """What somebody has begun to tell an agent. A shell's input is a command's."""
    if look.who.adapter is None or (look.reading is not None and look.reading.frozen):
        return ""
    waits = look.reading is not None and look.reading.state is State.IDLE
    return draft(look.pane.lines, look.pane.cursor, waits=waits)
