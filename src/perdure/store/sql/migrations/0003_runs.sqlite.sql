-- Runs, what has happened, the numbers both are given, who may do what only one may do, and what repair could
-- not read.
CREATE TABLE counters (
    name TEXT PRIMARY KEY,
    value INTEGER NOT NULL
);

CREATE TABLE runs (
    number INTEGER PRIMARY KEY,
    host TEXT NOT NULL,
    ended_at TEXT CHECK (length(ended_at) = 27),
    body BLOB NOT NULL
);

CREATE INDEX runs_by_end ON runs (ended_at);

CREATE TABLE events (
    seq INTEGER PRIMARY KEY,
    happened_at TEXT NOT NULL CHECK (length(happened_at) = 27),
    kind TEXT NOT NULL,
    run INTEGER,
    body BLOB NOT NULL
);

CREATE INDEX events_by_run ON events (run, seq) WHERE run IS NOT NULL;

CREATE INDEX events_by_time ON events (happened_at);

CREATE TABLE leases (
    name TEXT PRIMARY KEY,
    holder TEXT NOT NULL,
    held_until TEXT NOT NULL
);

CREATE TABLE damaged_runs (
    set_aside_at TEXT NOT NULL,
    number INTEGER,
    host TEXT,
    ended_at TEXT,
    body BLOB
);

CREATE TABLE damaged_events (
    set_aside_at TEXT NOT NULL,
    seq INTEGER,
    happened_at TEXT,
    kind TEXT,
    run INTEGER,
    body BLOB
);
