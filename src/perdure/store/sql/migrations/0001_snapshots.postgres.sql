-- Snapshots, the scrollback they refer to, and what repair could not read. Big columns come last, so that
-- listing snapshots does not read their bodies. Text compares by byte, as it does in SQLite.
CREATE TABLE schema_versions (
    version INTEGER PRIMARY KEY
);

CREATE TABLE snapshots (
    seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id TEXT COLLATE "C" NOT NULL UNIQUE,
    server TEXT COLLATE "C" NOT NULL,
    host TEXT COLLATE "C" NOT NULL,
    owner TEXT COLLATE "C" NOT NULL,
    uid BIGINT NOT NULL,
    socket TEXT COLLATE "C" NOT NULL,
    origin TEXT COLLATE "C" NOT NULL,
    content TEXT COLLATE "C" NOT NULL,
    parent TEXT COLLATE "C",
    taken_at TEXT COLLATE "C" NOT NULL CHECK (length(taken_at) = 27),
    last_seen_at TEXT COLLATE "C" NOT NULL CHECK (length(last_seen_at) = 27),
    sessions INTEGER NOT NULL,
    windows INTEGER NOT NULL,
    panes INTEGER NOT NULL,
    agents INTEGER NOT NULL,
    details BYTEA NOT NULL,
    body BYTEA NOT NULL
);

CREATE INDEX snapshots_by_server ON snapshots (server, origin, last_seen_at, taken_at);

CREATE INDEX snapshots_by_time ON snapshots (last_seen_at, taken_at);

CREATE TABLE scrollbacks (
    digest TEXT COLLATE "C" PRIMARY KEY,
    size BIGINT NOT NULL,
    data BYTEA NOT NULL
);

CREATE TABLE snapshot_scrollbacks (
    snapshot TEXT COLLATE "C" NOT NULL REFERENCES snapshots (id) ON DELETE CASCADE,
    digest TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (snapshot, digest)
);

CREATE INDEX snapshot_scrollbacks_by_digest ON snapshot_scrollbacks (digest);

CREATE TABLE facts (
    name TEXT COLLATE "C" PRIMARY KEY,
    value TEXT COLLATE "C" NOT NULL
);

CREATE TABLE damaged_snapshots (
    set_aside_at TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C",
    server TEXT COLLATE "C",
    host TEXT COLLATE "C",
    owner TEXT COLLATE "C",
    uid BIGINT,
    socket TEXT COLLATE "C",
    origin TEXT COLLATE "C",
    content TEXT COLLATE "C",
    parent TEXT COLLATE "C",
    taken_at TEXT COLLATE "C",
    last_seen_at TEXT COLLATE "C",
    sessions INTEGER,
    windows INTEGER,
    panes INTEGER,
    agents INTEGER,
    details BYTEA,
    body BYTEA
);

CREATE TABLE damaged_scrollbacks (
    set_aside_at TEXT COLLATE "C" NOT NULL,
    digest TEXT COLLATE "C",
    size BIGINT,
    data BYTEA
);
