-- Jobs, and what repair could not read of them. One that has not ended is running, as far as is known.
CREATE TABLE jobs (
    id TEXT PRIMARY KEY,
    place TEXT NOT NULL,
    owner TEXT,
    ordered_at TEXT NOT NULL CHECK (length(ordered_at) = 27),
    ended_at TEXT CHECK (length(ended_at) = 27),
    body BLOB NOT NULL
);

CREATE INDEX jobs_by_order ON jobs (ordered_at);

CREATE INDEX jobs_by_owner ON jobs (owner);

CREATE INDEX jobs_running ON jobs (place) WHERE ended_at IS NULL;

-- The events that are to be delivered to the owners of jobs, until they are.
CREATE TABLE job_notices (
    seq INTEGER PRIMARY KEY,
    owner TEXT NOT NULL
);

CREATE INDEX job_notices_by_owner ON job_notices (owner, seq);

CREATE TABLE damaged_jobs (
    set_aside_at TEXT NOT NULL,
    id TEXT,
    place TEXT,
    owner TEXT,
    ordered_at TEXT,
    ended_at TEXT,
    body BLOB
);
