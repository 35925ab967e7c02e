-- Runs, what has happened, the numbers both are given, who may do what only one may do, and what repair could
-- not read. Text compares by byte, as it does in SQLite.
CREATE TABLE counters (
    name TEXT COLLATE "C" PRIMARY KEY,
    value BIGINT NOT NULL
);

CREATE TABLE runs (
    number BIGINT PRIMARY KEY,
    host TEXT COLLATE "C" NOT NULL,
    ended_at TEXT COLLATE "C" CHECK (length(ended_at) = 27),
    body BYTEA NOT NULL
);

CREATE INDEX runs_by_end ON runs (ended_at);

CREATE TABLE events (
    seq BIGINT PRIMARY KEY,
    happened_at TEXT COLLATE "C" NOT NULL CHECK (length(happened_at) = 27),
    kind TEXT COLLATE "C" NOT NULL,
    run BIGINT,
    body BYTEA NOT NULL
);

CREATE INDEX events_by_run ON events (run, seq) WHERE run IS NOT NULL;

CREATE INDEX events_by_time ON events (happened_at);

CREATE TABLE leases (
    name TEXT COLLATE "C" PRIMARY KEY,
    holder TEXT COLLATE "C" NOT NULL,
    held_until TEXT COLLATE "C" NOT NULL
);

CREATE TABLE damaged_runs (
    set_aside_at TEXT COLLATE "C" NOT NULL,
    number BIGINT,
    host TEXT COLLATE "C",
    ended_at TEXT COLLATE "C",
    body BYTEA
);

CREATE TABLE damaged_events (
    set_aside_at TEXT COLLATE "C" NOT NULL,
    seq BIGINT,
    happened_at TEXT COLLATE "C",
    kind TEXT COLLATE "C",
    run BIGINT,
    body BYTEA
);
