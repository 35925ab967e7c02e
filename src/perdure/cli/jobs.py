"""`perdure jobs`: commands that go on when whoever started them is gone; each verb is a module of its own."""

from __future__ import annotations

#: Every verb: its module and what it is for.
VERBS = {
    "run": ("jobs_run", "start a command that goes on when you are gone, and print its id"),
    "ls": ("jobs_ls", "list jobs, the one that was started last first"),
    "poll": ("jobs_poll", "say how a job stands, and what it printed since it was last polled"),
    "log": ("jobs_log", "print what a job printed"),
    "wait": ("jobs_wait", "return once a job has ended"),
    "kill": ("jobs_kill", "end a job with everything it has started"),
    "write": ("jobs_write", "write to a job's standard input"),
    "submit": ("jobs_submit", "write a line to a job's standard input"),
    "close": ("jobs_close", "let a job read the end of its input"),
    "resize": ("jobs_resize", "give a job's terminal another size"),
}
