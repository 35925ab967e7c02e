-- name: insert_restore
-- Write a restore down.
INSERT INTO restores (id, server, snapshot, began_at, ended_at, body)
VALUES (:id, :server, :snapshot, :began_at, :ended_at, :body)

-- name: delete_restore
-- Forget a restore and what came of it.
DELETE FROM restores WHERE id = :id

-- name: end_restore
-- Note when a restore came to its end, the first time that is said.
UPDATE restores SET ended_at = COALESCE(ended_at, :at) WHERE id = :id

-- name: end_restores_of
-- Let nobody go on with a server's restores any more.
UPDATE restores SET ended_at = :at WHERE server = :server AND ended_at IS NULL

-- name: server_of_restore
-- The server a restore is about.
SELECT server FROM restores WHERE id = :id

-- name: get_restore
-- One restore.
SELECT id, server, snapshot, began_at, ended_at, body FROM restores WHERE id = :id

-- name: open_restore
-- The restore of a server that has not ended. The order is that of writing: a clock that leaps changes nothing.
SELECT id, server, snapshot, began_at, ended_at, body FROM restores
WHERE server = :server AND ended_at IS NULL ORDER BY seq DESC LIMIT 1

-- name: list_restores
-- Restores, latest first.
SELECT id, server, snapshot, began_at, ended_at, body FROM restores ORDER BY seq DESC LIMIT :limit

-- name: restore_ids
-- Every restore, oldest first.
SELECT id FROM restores ORDER BY seq

-- name: put_outcome
-- Say what came of a pane, whatever was said before.
INSERT INTO restore_outcomes (restore, pane, body) VALUES (:restore, :pane, :body)
ON CONFLICT (restore, pane) DO UPDATE SET body = excluded.body

-- name: outcomes_of
-- What came of a restore's panes.
SELECT pane, body FROM restore_outcomes WHERE restore = :restore ORDER BY pane

-- name: snapshots_in_use
-- The snapshots that somebody may still go on to restore.
SELECT DISTINCT snapshot FROM restores WHERE ended_at IS NULL

-- name: delete_old_restores
-- Forget the restores that have ended and are old, or whose snapshot is gone.
DELETE FROM restores WHERE ended_at IS NOT NULL AND (
    began_at < CAST(:before AS TEXT) OR NOT EXISTS (SELECT 1 FROM snapshots WHERE snapshots.id = restores.snapshot)
)

-- name: set_restore_aside
-- Copy a restore that cannot be read to where it does no harm.
INSERT INTO damaged_restores (set_aside_at, id, server, snapshot, began_at, ended_at, body)
SELECT :at, id, server, snapshot, began_at, ended_at, body FROM restores WHERE id = :id

-- name: set_outcomes_aside
-- Copy what came of a restore, or of one of its panes, to where it does no harm.
INSERT INTO damaged_restore_outcomes (set_aside_at, restore, pane, body)
SELECT :at, restore, pane, body FROM restore_outcomes
WHERE restore = :restore AND (CAST(:pane AS TEXT) IS NULL OR pane = :pane)

-- name: delete_outcome
-- Forget what came of one pane.
DELETE FROM restore_outcomes WHERE restore = :restore AND pane = :pane
