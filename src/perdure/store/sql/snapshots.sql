-- name: latest
-- The snapshot of a server and origin that was seen last.
SELECT id, content, parent, taken_at, last_seen_at FROM snapshots
WHERE server = :server AND origin = :origin
ORDER BY last_seen_at DESC, taken_at DESC, seq DESC LIMIT 1

-- name: current_at
-- The snapshot a capture follows that was taken before the latest one was seen.
SELECT id, content, parent, taken_at, last_seen_at FROM snapshots
WHERE server = :server AND origin = :origin AND taken_at <= :at
ORDER BY last_seen_at DESC, taken_at DESC, seq DESC LIMIT 1

-- name: standing
-- Where one snapshot stands in time.
SELECT id, content, parent, taken_at, last_seen_at FROM snapshots WHERE id = :id

-- name: insert_snapshot
-- Keep a new snapshot; one with this id is the same snapshot.
INSERT INTO snapshots (
    id, server, host, owner, uid, socket, origin, content, parent, taken_at, last_seen_at,
    sessions, windows, panes, agents, details, body
) VALUES (
    :id, :server, :host, :owner, :uid, :socket, :origin, :content, :parent, :taken_at, :last_seen_at,
    :sessions, :windows, :panes, :agents, :details, :body
) ON CONFLICT (id) DO NOTHING

-- name: see_again
-- Move a snapshot and its details forward in time, never back.
UPDATE snapshots SET last_seen_at = :at, details = :details WHERE id = :id AND last_seen_at <= :at

-- name: bring_back
-- Correct the times a clock that was ahead has left.
UPDATE snapshots SET last_seen_at = :at, taken_at = CASE WHEN taken_at > :at THEN :at ELSE taken_at END
WHERE server = :server AND origin = :origin AND last_seen_at > :at

-- name: get_snapshot
-- Everything of one snapshot.
SELECT
    id, host, owner, uid, socket, origin, taken_at, last_seen_at, sessions, windows, panes, agents,
    content, parent, details, body
FROM snapshots WHERE id = :id

-- name: get_whereabouts
-- What tells who was where in one snapshot.
SELECT id, last_seen_at, content, body FROM snapshots WHERE id = :id

-- name: ids_from
-- The first two ids in a range: enough to tell one from several.
SELECT id FROM snapshots WHERE id >= :low AND id < :high ORDER BY id LIMIT 2

-- name: captured_ids
-- A server's snapshots of one origin, latest first.
SELECT id FROM snapshots WHERE server = :server AND origin = :origin
ORDER BY last_seen_at DESC, taken_at DESC, seq DESC LIMIT :limit

-- name: all_ids
-- Every snapshot, oldest first.
SELECT id FROM snapshots ORDER BY seq

-- name: servers
-- Every server that has snapshots of an origin.
SELECT DISTINCT server FROM snapshots WHERE origin = :origin

-- name: servers_of
-- The servers of one user on one machine that have snapshots of an origin seen since.
SELECT DISTINCT owner, socket FROM snapshots
WHERE origin = :origin AND host = :host AND uid = :uid AND last_seen_at >= :since ORDER BY socket

-- name: list_snapshots
-- Summaries, latest first.
SELECT id, host, owner, uid, socket, origin, taken_at, last_seen_at, sessions, windows, panes, agents FROM snapshots
WHERE (CAST(:server AS TEXT) IS NULL OR server = :server) AND (CAST(:before AS TEXT) IS NULL OR last_seen_at < :before)
ORDER BY last_seen_at DESC, taken_at DESC, seq DESC LIMIT :limit

-- name: delete_snapshot
-- Forget one snapshot and what it links to.
DELETE FROM snapshots WHERE id = :id

-- name: set_snapshot_aside
-- Copy a snapshot that cannot be read to where it does no harm.
INSERT INTO damaged_snapshots (
    set_aside_at, id, server, host, owner, uid, socket, origin, content, parent, taken_at, last_seen_at,
    sessions, windows, panes, agents, details, body
) SELECT
    :at, id, server, host, owner, uid, socket, origin, content, parent, taken_at, last_seen_at,
    sessions, windows, panes, agents, details, body
FROM snapshots WHERE id = :id
