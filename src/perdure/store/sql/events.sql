-- name: insert_event
-- Write an event down.
INSERT INTO events (seq, happened_at, kind, run, body) VALUES (:seq, :happened_at, :kind, :run, :body)

-- name: all_events
-- The first events behind a number.
SELECT seq, happened_at, kind, run, body FROM events WHERE seq > :after ORDER BY seq LIMIT :limit

-- name: read_events
-- The first events of some kinds behind a number.
SELECT seq, happened_at, kind, run, body FROM events
WHERE seq > :after AND kind IN (:kinds) ORDER BY seq LIMIT :limit

-- name: read_events_of
-- The first events of one run and of some kinds behind a number.
SELECT seq, happened_at, kind, run, body FROM events
WHERE run = :run AND seq > :after AND kind IN (:kinds) ORDER BY seq LIMIT :limit

-- name: delete_event
-- Forget one event.
DELETE FROM events WHERE seq = :seq

-- name: delete_old_events
-- Forget the events before a time.
DELETE FROM events WHERE happened_at < :before

-- name: set_event_aside
-- Copy an event that cannot be read to where it does no harm.
INSERT INTO damaged_events (set_aside_at, seq, happened_at, kind, run, body)
SELECT :at, seq, happened_at, kind, run, body FROM events WHERE seq = :seq

-- name: event_numbers
-- The numbers of all events.
SELECT seq FROM events

-- name: first_event
-- The lowest number that an event has.
SELECT min(seq) FROM events
