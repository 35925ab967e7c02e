-- The journal of restores, what came of their steps, and what repair could not read of both.
CREATE TABLE restores (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    server TEXT NOT NULL,
    snapshot TEXT NOT NULL,
    began_at TEXT NOT NULL CHECK (length(began_at) = 27),
    ended_at TEXT CHECK (length(ended_at) = 27),
    body BLOB NOT NULL
);

CREATE INDEX restores_by_server ON restores (server, seq);

CREATE TABLE restore_outcomes (
    restore TEXT NOT NULL REFERENCES restores (id) ON DELETE CASCADE,
    pane TEXT NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (restore, pane)
);

CREATE TABLE damaged_restores (
    set_aside_at TEXT NOT NULL,
    id TEXT,
    server TEXT,
    snapshot TEXT,
    began_at TEXT,
    ended_at TEXT,
    body BLOB
);

CREATE TABLE damaged_restore_outcomes (
    set_aside_at TEXT NOT NULL,
    restore TEXT,
    pane TEXT,
    body BLOB
);
