"""Jobs: commands that go on when whoever asked is gone."""

from __future__ import annotations

import asyncio
from typing import Annotated, Literal, TypeAlias

from litestar import Response, get, post
from litestar.params import JSONBody, QueryParameter
from msgspec import Meta, Struct, structs

from perdure.api.asking import Asked, Cursor, Id, Limit, Who, World
from perdure.api.caller import Caller
from perdure.api.failures import UNCHANGED, failures
from perdure.api.replies import PAGE, Page, Rank, newest_first, page_of, unless_known
from perdure.api.world import ApiWorld
from perdure.jobs import output, reading, waiting
from perdure.jobs.ordering import MOST_CELLS, accepted
from perdure.jobs.service import Ended, Jobs
from perdure.jobs.shown import EndedRow, JobAnswer, JobRow, LogRow, answer_of, ended_row, job_row, log_row
from perdure.model.job import LOCAL, Job, Notify, Order, Terminal
from perdure.model.text import encode

#: Larger than any number of lines or bytes.
_MOST = 1 << 53
#: How often it is looked whether a job has ended that is waited for, in seconds.
_EVERY = 0.2
#: How much of its output is given at once, in bytes.
_PIECE = 1 << 18

Text: TypeAlias = Annotated[str, Meta(max_length=65_536)]
Name: TypeAlias = Annotated[str, Meta(min_length=1, max_length=1000)]
Cells: TypeAlias = Annotated[int, Meta(ge=1, le=MOST_CELLS)]

Owner: TypeAlias = Annotated[
    str | None, QueryParameter(min_length=1, max_length=1000, description="Only jobs of this chat or run.")
]
IsRunning: TypeAlias = Annotated[
    bool | None, QueryParameter(description="Only those that run (true), or that ended (false).")
]
FirstLine: TypeAlias = Annotated[
    int | None, QueryParameter(ge=0, le=_MOST, description="From this line on; the first is 0.")
]
HowMany: TypeAlias = Annotated[int | None, QueryParameter(ge=0, le=_MOST, description="So many lines from there on.")]
Tail: TypeAlias = Annotated[int | None, QueryParameter(ge=0, le=_MOST, description="The last so many lines.")]
FromByte: TypeAlias = Annotated[int, QueryParameter(ge=0, le=_MOST, description="From this byte on; `end` goes on.")]
Timeout: TypeAlias = Annotated[
    float | None,
    QueryParameter(ge=0, le=86_400, description="In seconds; no longer than jobs.wait_seconds, which it is without."),
]


class NewTerminal(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The size of a terminal."""

    rows: Cells = 30
    columns: Cells = 120


class NewNotify(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the owner of a job is told of, as events."""

    on_exit: bool = False
    patterns: Annotated[tuple[Name, ...], Meta(max_length=64)] = ()
    #: In seconds.
    every_seconds: Annotated[float, Meta(gt=0, le=86_400)] | None = None


class NewJob(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is to be run: exactly one of `argv` and `shell`."""

    argv: Annotated[tuple[Text, ...], Meta(min_length=1, max_length=4096)] | None = None
    #: A text for the user's own shell.
    shell: Annotated[str, Meta(min_length=1, max_length=65_536)] | None = None
    #: A path from the root on, or, on this machine, from `~/` on; the user's home without it.
    cwd: Annotated[str, Meta(min_length=1, max_length=4096)] | None = None
    env: Annotated[dict[str, Text], Meta(max_length=1000)] = {}
    #: null: no terminal, and standard error is told from standard output.
    terminal: NewTerminal | None = None
    #: The key of a chat or the id of a run.
    owner: Name | None = None
    backend: Name = LOCAL
    notify: NewNotify | None = None


class Spawned(Struct, frozen=True, kw_only=True):
    """A job that was started, or could not be: it says so itself."""

    job: JobRow
    #: What is otherwise than it was wanted, a sentence each.
    notes: list[str]


class Piece(Struct, frozen=True, kw_only=True):
    """Some of what a job printed, for whoever follows it."""

    job: str
    status: str
    exit_code: int | None
    #: In bytes.
    start: int
    #: Where it goes on.
    end: int
    output: str
    #: What was printed before `start`, was asked for, and is no longer kept, in bytes.
    missing: int
    #: All of it was given, and nothing more will come.
    over: bool


class Input(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is written to a job."""

    text: Text


class Written(Struct, frozen=True, kw_only=True):
    """How much of it was taken: less than there was, when the job does not read."""

    job: str
    bytes_written: int


class Closed(Struct, frozen=True, kw_only=True):
    """That the job reads the end of its input."""

    job: str
    result: Literal["closed"] = "closed"


class Size(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The size its terminal is to have."""

    rows: Cells
    columns: Cells


class Resized(Struct, frozen=True, kw_only=True):
    """The size its terminal has."""

    job: str
    rows: int
    columns: int


class OfOwner(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whose jobs are meant: the key of a chat or the id of a run."""

    owner: Name


class EndedJobs(Struct, frozen=True, kw_only=True):
    """What came of each."""

    jobs: list[EndedRow]


def _rank_of(job: Job) -> Rank:
    return newest_first(job.ordered_at, job.id)


@get("/api/jobs", responses={**failures(), **UNCHANGED})
async def list_jobs(
    world: World,
    caller: Who,
    request: Asked,
    owner: Owner = None,
    running: IsRunning = None,
    limit: Limit = PAGE,
    cursor: Cursor = None,
) -> Response[Page[JobRow]]:
    """Jobs, the one that was started last first."""

    def work() -> Page[JobRow]:
        jobs = world.jobs()
        page = page_of(jobs.list(owner=owner, is_running=running), _rank_of, limit=limit, cursor=cursor)
        return Page(items=[_row(jobs, job) for job in page.items], next=page.next)

    page: Page[JobRow] = await world.read(lambda _: work()) if world.owners_only(caller) else Page(items=[])
    # How long it has run can be told from when it began.
    lasting = [structs.replace(row, uptime=0.0) for row in page.items]
    return unless_known(request, page, by=(lasting, page.next))


@post("/api/jobs", status_code=201, responses=failures())
async def spawn(world: World, caller: Who, data: JSONBody[NewJob]) -> Spawned:
    """Start a command that goes on by itself."""
    world.refuse_others(caller, "jobs")
    terminal, notify = data.terminal, data.notify or NewNotify()
    home = world.ground.me.home if data.backend == LOCAL else ""
    order, notes = accepted(
        Order(
            argv=data.argv,
            shell=data.shell,
            cwd=_place(data.cwd, home),
            env=data.env,
            terminal=None if terminal is None else Terminal(rows=terminal.rows, columns=terminal.columns),
            owner=data.owner,
            backend=data.backend,
            notify=Notify(on_exit=notify.on_exit, patterns=notify.patterns, every_seconds=notify.every_seconds),
        )
    )

    def work() -> Spawned:
        jobs = world.jobs()
        return Spawned(job=_row(jobs, jobs.spawn(order)), notes=list(notes))

    spawned = await world.do(work)
    world.logs.audit(caller, "job_spawn", spawned.job.job, owner=data.owner, backend=data.backend)
    return spawned


def _place(asked: str | None, home: str) -> str:
    """Return where a job is started; `~ann` is somebody else's, and what is `~` on another machine only that knows."""
    if home and asked is not None and (asked == "~" or asked.startswith("~/")):
        return f"{home}{asked[1:]}"
    return asked or home


@get("/api/jobs/{id:str}", responses=failures(404))
async def one_job(world: World, caller: Who, id: Id) -> JobRow:
    """One job, by its id or the beginning of it."""
    world.refuse_others(caller, "jobs")

    def work() -> JobRow:
        jobs = world.jobs()
        return _row(jobs, jobs.find(id))

    return await world.read(lambda _: work())


@post("/api/jobs/{id:str}/poll", status_code=200, responses=failures(404))
async def poll(world: World, caller: Who, id: Id) -> JobAnswer:
    """How a job stands, and what it printed since it was last polled, by whomever."""
    world.refuse_others(caller, "jobs")

    def work() -> JobAnswer:
        jobs = world.jobs()
        polled = jobs.poll(jobs.find(id).id)
        return answer_of(polled.job, polled.printed, jobs.left(polled.job))

    return await world.do(work)


@get("/api/jobs/{id:str}/log", responses=failures(404))
async def log(
    world: World, caller: Who, id: Id, offset: FirstLine = None, limit: HowMany = None, tail: Tail = None
) -> LogRow:
    """Lines of what a job printed: counted from the first, or the last so many. Polling makes no difference to it."""
    world.refuse_others(caller, "jobs")

    def work() -> LogRow:
        jobs = world.jobs()
        return log_row(jobs.log(jobs.find(id).id, offset=offset, limit=limit, tail=tail))

    return await world.read(lambda _: work())


@get("/api/jobs/{id:str}/output", responses=failures(404))
async def follow(world: World, caller: Who, id: Id, start: FromByte = 0) -> Piece:
    """What a job printed from a byte on, for whoever follows it: ask again from `end` until it is `over`."""
    world.refuse_others(caller, "jobs")

    def work() -> Piece:
        jobs = world.jobs()
        job = jobs.find(id)
        is_over = not job.is_running
        piece = output.read_text(jobs.path(job), start, _PIECE, is_over=is_over)
        return Piece(
            job=job.id,
            status=job.status.value,
            exit_code=job.exit_code,
            start=piece.start,
            end=piece.end,
            output=piece.text,
            missing=piece.missing,
            over=is_over and piece.end >= jobs.printed(job),
        )

    return await world.read(lambda _: work())


@post("/api/jobs/{id:str}/wait", status_code=200, responses=failures(404))
async def wait(world: World, caller: Who, id: Id, timeout: Timeout = None) -> JobAnswer:
    """Answer once a job has ended, or when the time is up: `status` tells which."""
    world.refuse_others(caller, "jobs")
    seconds, note = waiting.allowed(timeout, world.config.jobs.wait_seconds)
    job = await world.read(lambda _: world.jobs().find(id))
    found = job.id
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds
    while job.is_running and (left := until - loop.time()) > 0:
        await asyncio.sleep(min(_EVERY, left))
        job = await world.read(lambda _: world.jobs().get(found))

    def work() -> JobAnswer:
        jobs = world.jobs()
        printed = reading.since(jobs.path(job), 0, jobs.config.poll_bytes, is_over=not job.is_running)
        said = note or (waiting.still_running(seconds) if job.is_running else None)
        return answer_of(job, printed, note=said)

    return await world.read(lambda _: work())


@post("/api/jobs/kill", status_code=200, responses=failures())
async def kill_all(world: World, caller: Who, data: JSONBody[OfOwner]) -> EndedJobs:
    """End every running job of an owner, and what others left behind, all at once."""
    world.refuse_others(caller, "jobs")
    ended = await world.do(lambda: world.jobs().end_all(data.owner))
    world.logs.audit(caller, "job_kill", data.owner, jobs=len(ended))
    return EndedJobs(jobs=[ended_row(each) for each in ended])


@post("/api/jobs/{id:str}/kill", status_code=200, responses=failures(404))
async def kill(world: World, caller: Who, id: Id) -> EndedRow:
    """End a job with everything it has started. One that has ended says so."""
    world.refuse_others(caller, "jobs")

    def work() -> Ended:
        jobs = world.jobs()
        return jobs.kill(jobs.find(id).id)

    ended = ended_row(await world.do(work))
    world.logs.audit(caller, "job_kill", ended.job, result=ended.result)
    return ended


@post("/api/jobs/{id:str}/write", status_code=200, responses=failures(404, 409))
async def write(world: World, caller: Who, id: Id, data: JSONBody[Input]) -> Written:
    """Write to a job's standard input."""
    return await _written(world, caller, id, data, submits=False)


@post("/api/jobs/{id:str}/submit", status_code=200, responses=failures(404, 409))
async def submit(world: World, caller: Who, id: Id, data: JSONBody[Input]) -> Written:
    """Write a line to a job's standard input."""
    return await _written(world, caller, id, data, submits=True)


@post("/api/jobs/{id:str}/close", status_code=200, responses=failures(404, 409))
async def close(world: World, caller: Who, id: Id) -> Closed:
    """Let a job read the end of its input."""
    world.refuse_others(caller, "jobs")

    def work() -> Closed:
        jobs = world.jobs()
        job = jobs.find(id)
        jobs.close_stdin(job.id)
        return Closed(job=job.id)

    closed = await world.do(work)
    world.logs.audit(caller, "job_close", closed.job)
    return closed


@post("/api/jobs/{id:str}/resize", status_code=200, responses=failures(404, 409))
async def resize(world: World, caller: Who, id: Id, data: JSONBody[Size]) -> Resized:
    """Give a job's terminal another size."""
    world.refuse_others(caller, "jobs")

    def work() -> Resized:
        jobs = world.jobs()
        job = jobs.find(id)
        jobs.resize(job.id, data.rows, data.columns)
        return Resized(job=job.id, rows=data.rows, columns=data.columns)

    return await world.do(work)


async def _written(world: ApiWorld, caller: Caller, id: str, data: Input, *, submits: bool) -> Written:
    world.refuse_others(caller, "jobs")

    def work() -> Written:
        jobs = world.jobs()
        job = jobs.find(id)
        return Written(job=job.id, bytes_written=(jobs.submit if submits else jobs.write)(job.id, encode(data.text)))

    written = await world.do(work)
    world.logs.audit(caller, "job_write", written.job, bytes=written.bytes_written)
    return written


def _row(jobs: Jobs, job: Job) -> JobRow:
    return job_row(job, jobs.now(), jobs.left(job))


ROUTES = (list_jobs, spawn, one_job, poll, log, follow, wait, kill, kill_all, write, submit, close, resize)
