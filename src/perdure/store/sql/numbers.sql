-- name: given_runs
-- The last number that was given to a run, and the highest that one has.
SELECT (SELECT value FROM counters WHERE name = 'runs'), (SELECT MAX(number) FROM runs)

-- name: given_events
-- The last number that was given to an event, and the highest that one has.
SELECT (SELECT value FROM counters WHERE name = 'events'), (SELECT MAX(seq) FROM events)

-- name: put_counter
-- Note the last number that was given.
INSERT INTO counters (name, value) VALUES (:name, :value)
ON CONFLICT (name) DO UPDATE SET value = excluded.value
