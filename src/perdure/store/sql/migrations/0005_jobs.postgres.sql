-- Jobs, and what repair could not read of them. One that has not ended is running, as far as is known. Text compares by
-- byte, as it does in SQLite.
CREATE TABLE jobs (
    id TEXT COLLATE "C" PRIMARY KEY,
    place TEXT COLLATE "C" NOT NULL,
    owner TEXT COLLATE "C",
    ordered_at TEXT COLLATE "C" NOT NULL CHECK (length(ordered_at) = 27),
    ended_at TEXT COLLATE "C" CHECK (length(ended_at) = 27),
    body BYTEA NOT NULL
);

CREATE INDEX jobs_by_order ON jobs (ordered_at);

CREATE INDEX jobs_by_owner ON jobs (owner);

CREATE INDEX jobs_running ON jobs (place) WHERE ended_at IS NULL;

-- The events that are to be delivered to the owners of jobs, until they are.
CREATE TABLE job_notices (
    seq BIGINT PRIMARY KEY,
    owner TEXT COLLATE "C" NOT NULL
);

CREATE INDEX job_notices_by_owner ON job_notices (owner, seq);

CREATE TABLE damaged_jobs (
    set_aside_at TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C",
    place TEXT COLLATE "C",
    owner TEXT COLLATE "C",
    ordered_at TEXT COLLATE "C",
    ended_at TEXT COLLATE "C",
    body BYTEA
);
