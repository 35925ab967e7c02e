-- name: put_run
-- Keep a run as it is now.
INSERT INTO runs (number, host, ended_at, body) VALUES (:number, :host, :ended_at, :body)
ON CONFLICT (number) DO UPDATE SET host = excluded.host, ended_at = excluded.ended_at, body = excluded.body

-- name: get_run
-- One run.
SELECT number, host, ended_at, body FROM runs WHERE number = :number

-- name: list_runs
-- Runs, of a host when one is given.
SELECT number, host, ended_at, body FROM runs
WHERE (CAST(:host AS TEXT) IS NULL OR host = :host) ORDER BY number

-- name: list_runs_that_are_over
-- Runs whose panes are gone, of a host when one is given.
SELECT number, host, ended_at, body FROM runs
WHERE ended_at IS NOT NULL AND (CAST(:host AS TEXT) IS NULL OR host = :host) ORDER BY number

-- name: list_runs_that_ended_after
-- Runs whose panes were gone later than a time, of a host when one is given.
SELECT number, host, ended_at, body FROM runs
WHERE ended_at > :after AND (CAST(:host AS TEXT) IS NULL OR host = :host) ORDER BY number

-- name: list_runs_that_go_on
-- Runs whose panes are there, of a host when one is given.
SELECT number, host, ended_at, body FROM runs
WHERE ended_at IS NULL AND (CAST(:host AS TEXT) IS NULL OR host = :host) ORDER BY number

-- name: delete_run
-- Forget one run.
DELETE FROM runs WHERE number = :number

-- name: delete_old_runs
-- Forget the runs that ended before a time.
DELETE FROM runs WHERE ended_at < :before

-- name: set_run_aside
-- Copy a run that cannot be read to where it does no harm.
INSERT INTO damaged_runs (set_aside_at, number, host, ended_at, body)
SELECT :at, number, host, ended_at, body FROM runs WHERE number = :number

-- name: run_numbers
-- The numbers of all runs.
SELECT number FROM runs
