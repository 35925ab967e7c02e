-- name: get_lease
-- Who holds a lease, and until when.
SELECT holder, held_until FROM leases WHERE name = :name

-- name: put_lease
-- Give a lease to somebody, whoever had it.
INSERT INTO leases (name, holder, held_until) VALUES (:name, :holder, :held_until)
ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, held_until = excluded.held_until

-- name: drop_lease
-- Take a lease back from its holder.
DELETE FROM leases WHERE name = :name AND holder = :holder
