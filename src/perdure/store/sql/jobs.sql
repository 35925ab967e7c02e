-- name: insert_job
-- Write a job down.
INSERT INTO jobs (id, place, owner, ordered_at, ended_at, body)
VALUES (:id, :place, :owner, :ordered_at, :ended_at, :body)

-- name: put_job
-- Let a job be as it is now.
UPDATE jobs SET ended_at = :ended_at, body = :body WHERE id = :id

-- name: get_job
-- One job.
SELECT id, place, owner, ordered_at, ended_at, body FROM jobs WHERE id = :id

-- name: jobs_from
-- Jobs whose ids begin with some characters.
SELECT id, place, owner, ordered_at, ended_at, body FROM jobs
WHERE id >= :low AND id < :high ORDER BY id LIMIT :limit

-- name: list_jobs
-- Jobs of an owner, of a place, running or not, when that is asked for; the one that was ordered last first.
SELECT id, place, owner, ordered_at, ended_at, body FROM jobs
WHERE (CAST(:owner AS TEXT) IS NULL OR owner = :owner)
AND (CAST(:place AS TEXT) IS NULL OR place = :place)
AND (CAST(:is_running AS INTEGER) IS NULL OR (ended_at IS NULL) = (:is_running = 1))
ORDER BY ordered_at DESC, id DESC

-- name: count_running_jobs
-- How many jobs of a place are running.
SELECT count(*) FROM jobs WHERE ended_at IS NULL AND place = :place

-- name: count_running_jobs_of
-- How many jobs of an owner are running.
SELECT count(*) FROM jobs WHERE ended_at IS NULL AND owner = :owner

-- name: jobs_to_forget
-- The ended jobs of a place that ended before a time, and those beyond so many of the latest.
SELECT id FROM jobs WHERE place = :place AND ended_at IS NOT NULL AND (
    ended_at < :before OR id NOT IN (
        SELECT id FROM jobs WHERE place = :place AND ended_at IS NOT NULL ORDER BY ended_at DESC, id DESC LIMIT :keep
    )
)
ORDER BY id

-- name: delete_job
-- Forget one job.
DELETE FROM jobs WHERE id = :id

-- name: set_job_aside
-- Copy a job that cannot be read to where it does no harm.
INSERT INTO damaged_jobs (set_aside_at, id, place, owner, ordered_at, ended_at, body)
SELECT :at, id, place, owner, ordered_at, ended_at, body FROM jobs WHERE id = :id

-- name: insert_job_notice
-- An event is to be delivered to an owner.
INSERT INTO job_notices (seq, owner) VALUES (:seq, :owner) ON CONFLICT DO NOTHING

-- name: read_job_notices
-- The first events that are to be delivered to an owner, and were not.
SELECT events.seq, events.happened_at, events.kind, events.run, events.body
FROM job_notices JOIN events ON events.seq = job_notices.seq
WHERE job_notices.owner = :owner AND job_notices.seq > :after ORDER BY job_notices.seq LIMIT :limit

-- name: delete_job_notices
-- Everything up to a number has been delivered to an owner.
DELETE FROM job_notices WHERE owner = :owner AND seq <= :seq

-- name: delete_old_job_notices
-- Let go of what was not delivered as long as its event was known.
DELETE FROM job_notices WHERE seq NOT IN (SELECT seq FROM events)
