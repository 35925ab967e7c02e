-- The journal of restores, what came of their steps, and what repair could not read of both. Text
-- compares by byte, as it does in SQLite.
CREATE TABLE restores (
    seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id TEXT COLLATE "C" NOT NULL UNIQUE,
    server TEXT COLLATE "C" NOT NULL,
    snapshot TEXT COLLATE "C" NOT NULL,
    began_at TEXT COLLATE "C" NOT NULL CHECK (length(began_at) = 27),
    ended_at TEXT COLLATE "C" CHECK (length(ended_at) = 27),
    body BYTEA NOT NULL
);

CREATE INDEX restores_by_server ON restores (server, seq);

CREATE TABLE restore_outcomes (
    restore TEXT COLLATE "C" NOT NULL REFERENCES restores (id) ON DELETE CASCADE,
    pane TEXT COLLATE "C" NOT NULL,
    body BYTEA NOT NULL,
    PRIMARY KEY (restore, pane)
);

CREATE TABLE damaged_restores (
    set_aside_at TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C",
    server TEXT COLLATE "C",
    snapshot TEXT COLLATE "C",
    began_at TEXT COLLATE "C",
    ended_at TEXT COLLATE "C",
    body BYTEA
);

CREATE TABLE damaged_restore_outcomes (
    set_aside_at TEXT COLLATE "C" NOT NULL,
    restore TEXT COLLATE "C",
    pane TEXT COLLATE "C",
    body BYTEA
);
