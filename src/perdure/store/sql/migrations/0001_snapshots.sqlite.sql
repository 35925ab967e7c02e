-- Snapshots, the scrollback they refer to, and what repair could not read. Big columns come last, so that
-- listing snapshots does not read their bodies.
CREATE TABLE schema_versions (
    version INTEGER PRIMARY KEY
);

CREATE TABLE snapshots (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    server TEXT NOT NULL,
    host TEXT NOT NULL,
    owner TEXT NOT NULL,
    uid INTEGER NOT NULL,
    socket TEXT NOT NULL,
    origin TEXT NOT NULL,
    content TEXT NOT NULL,
    parent TEXT,
    taken_at TEXT NOT NULL CHECK (length(taken_at) = 27),
    last_seen_at TEXT NOT NULL CHECK (length(last_seen_at) = 27),
    sessions INTEGER NOT NULL,
    windows INTEGER NOT NULL,
    panes INTEGER NOT NULL,
    agents INTEGER NOT NULL,
    details BLOB NOT NULL,
    body BLOB NOT NULL
);

CREATE INDEX snapshots_by_server ON snapshots (server, origin, last_seen_at, taken_at);

CREATE INDEX snapshots_by_time ON snapshots (last_seen_at, taken_at);

CREATE TABLE scrollbacks (
    digest TEXT PRIMARY KEY,
    size INTEGER NOT NULL,
    data BLOB NOT NULL
);

CREATE TABLE snapshot_scrollbacks (
    snapshot TEXT NOT NULL REFERENCES snapshots (id) ON DELETE CASCADE,
    digest TEXT NOT NULL,
    PRIMARY KEY (snapshot, digest)
);

CREATE INDEX snapshot_scrollbacks_by_digest ON snapshot_scrollbacks (digest);

CREATE TABLE facts (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
);

CREATE TABLE damaged_snapshots (
    set_aside_at TEXT NOT NULL,
    id TEXT,
    server TEXT,
    host TEXT,
    owner TEXT,
    uid INTEGER,
    socket TEXT,
    origin TEXT,
    content TEXT,
    parent TEXT,
    taken_at TEXT,
    last_seen_at TEXT,
    sessions INTEGER,
    windows INTEGER,
    panes INTEGER,
    agents INTEGER,
    details BLOB,
    body BLOB
);

CREATE TABLE damaged_scrollbacks (
    set_aside_at TEXT NOT NULL,
    digest TEXT,
    size INTEGER,
    data BLOB
);
