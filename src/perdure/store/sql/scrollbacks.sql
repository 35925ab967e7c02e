-- name: held_scrollbacks
-- Those of some digests that are kept.
SELECT digest FROM scrollbacks WHERE digest IN (:digests)

-- name: get_scrollbacks
-- Scrollback texts by digest, compressed, with their true sizes.
SELECT digest, size, data FROM scrollbacks WHERE digest IN (:digests)

-- name: insert_scrollback
-- Keep a text; one with this digest is the same text.
INSERT INTO scrollbacks (digest, size, data) VALUES (:digest, :size, :data) ON CONFLICT (digest) DO NOTHING

-- name: links_of
-- The scrollback a snapshot refers to.
SELECT digest FROM snapshot_scrollbacks WHERE snapshot = :snapshot

-- name: link
-- Let a snapshot refer to a scrollback.
INSERT INTO snapshot_scrollbacks (snapshot, digest) VALUES (:snapshot, :digest) ON CONFLICT (snapshot, digest) DO NOTHING

-- name: unlink
-- Let a snapshot no longer refer to a scrollback.
DELETE FROM snapshot_scrollbacks WHERE snapshot = :snapshot AND digest = :digest

-- name: unlink_everywhere
-- Let no snapshot refer to a scrollback.
DELETE FROM snapshot_scrollbacks WHERE digest = :digest

-- name: all_scrollbacks
-- Every digest that is kept.
SELECT digest FROM scrollbacks ORDER BY digest

-- name: missing_scrollbacks
-- Digests that are referred to and not kept.
SELECT DISTINCT digest FROM snapshot_scrollbacks
WHERE NOT EXISTS (SELECT 1 FROM scrollbacks WHERE scrollbacks.digest = snapshot_scrollbacks.digest)
ORDER BY digest

-- name: delete_unused_scrollbacks
-- Forget the texts no snapshot refers to.
DELETE FROM scrollbacks
WHERE NOT EXISTS (SELECT 1 FROM snapshot_scrollbacks WHERE snapshot_scrollbacks.digest = scrollbacks.digest)

-- name: set_scrollback_aside
-- Copy a text that cannot be read to where it does no harm.
INSERT INTO damaged_scrollbacks (set_aside_at, digest, size, data)
SELECT :at, digest, size, data FROM scrollbacks WHERE digest = :digest

-- name: delete_scrollback
-- Forget one text.
DELETE FROM scrollbacks WHERE digest = :digest
