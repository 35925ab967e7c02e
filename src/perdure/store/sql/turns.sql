-- `all_turns` and `all_places` are what `store/arrivals.py` says: turns, and what has arrived and is to be among them.

-- name: places_to_append
-- Where the next turns of chats go, and what is the last that is there.
SELECT chats.id, number, next, turns, touched_at, behind, closed_at, (SELECT all_places.id FROM all_places
WHERE all_places.id >= chats.number * 4294967296 AND all_places.id < (chats.number + 1) * 4294967296
ORDER BY all_places.id DESC LIMIT 1)
FROM chats WHERE chats.id IN (:ids)

-- name: place_to_append
-- Where the next turn of a chat goes, and what is the last that is there.
SELECT chats.id, number, next, turns, touched_at, behind, closed_at, (SELECT all_places.id FROM all_places
WHERE all_places.id >= chats.number * 4294967296 AND all_places.id < (chats.number + 1) * 4294967296
ORDER BY all_places.id DESC LIMIT 1)
FROM chats WHERE chats.id = :id

-- name: put_right
-- Where the next turn of a chat goes that has said otherwise; what it says to be told and indexed is before that.
UPDATE chats SET next = :next, told = CASE WHEN told > :next THEN :next ELSE told END,
searchable = CASE WHEN searchable > :next THEN :next ELSE searchable END WHERE number = :number

-- name: insert_turn
-- Write a turn down.
INSERT INTO turns (id, role, at, hidden, seal, body) VALUES (:id, :role, :at, :hidden, :seal, :body)

-- name: put_place
-- Where the next turn of a chat goes now, how many there are, and when it was used; all of it was told.
UPDATE chats SET next = :next, turns = :turns, touched_at = :touched_at, told = :next, behind = 1 WHERE number = :number

-- name: put_place_untold
-- The same where what was said is yet to be told.
UPDATE chats SET next = :next, turns = :turns, touched_at = :touched_at, behind = 1 WHERE number = :number

-- name: put_place_behind
-- The same of a chat that is behind already. SQLite would write to the index of those whether or not that changes.
UPDATE chats SET next = :next, turns = :turns, touched_at = :touched_at WHERE number = :number

-- name: move_on
-- Let an open chat that is behind already go on so many turns later, if it goes on where somebody believes.
UPDATE chats SET next = ?3 + ?5, turns = turns + ?5, touched_at = ?4
WHERE number = ?1 AND id = ?2 AND next = ?3 AND behind = 1 AND touched_at <= ?4 AND closed_at IS NULL

-- name: say_sqlite
-- Write a turn down where it arrives.
INSERT INTO arrivals (id, role, at, hidden, seal, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6)

-- name: say_postgres
-- Write a turn down.
INSERT INTO turns (id, role, at, hidden, seal, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6)

-- name: load_turns
-- The turns of a chat from a position on, with what the chat says of all of them; one row without a turn for none.
SELECT chats.next, chats.turns, chats.number, turns.id, turns.role, turns.at, turns.hidden, turns.seal, turns.body
FROM chats LEFT JOIN turns ON turns.id >= chats.number * 4294967296 + :start
AND turns.id < (chats.number + 1) * 4294967296 AND turns.hidden <= :hidden
WHERE chats.id = :id ORDER BY turns.id LIMIT :limit

-- name: load_settled
-- The same of a chat in which all is in its place; nothing of another.
SELECT chats.next, chats.turns, chats.number, turns.id, turns.role, turns.at, turns.hidden, turns.seal, turns.body
FROM chats LEFT JOIN turns ON turns.id >= chats.number * 4294967296 + :start
AND turns.id < (chats.number + 1) * 4294967296 AND turns.hidden <= :hidden
WHERE chats.id = :id AND chats.behind = 0 ORDER BY turns.id LIMIT :limit

-- name: load_with_arrivals
-- The same of any chat: before the turns, one of which more are read, always one row without. SQLite would go through
-- all there are in a view, were chats joined with one.
SELECT next, turns, number, NULL AS id, NULL AS role, NULL AS at, NULL AS hidden, NULL AS seal, NULL AS body
FROM chats WHERE chats.id = :id
UNION ALL
SELECT chats.next, chats.turns, chats.number, turns.id, turns.role, turns.at, turns.hidden, turns.seal, turns.body
FROM chats CROSS JOIN turns ON turns.id >= chats.number * 4294967296 + :start
AND turns.id < (chats.number + 1) * 4294967296 AND turns.hidden <= :hidden WHERE chats.id = :id
UNION ALL
SELECT chats.next, chats.turns, chats.number, arrivals.id, arrivals.role, arrivals.at, arrivals.hidden, arrivals.seal,
arrivals.body
FROM chats CROSS JOIN arrivals ON arrivals.id >= chats.number * 4294967296 + :start
AND arrivals.id < (chats.number + 1) * 4294967296 AND arrivals.hidden <= :hidden WHERE chats.id = :id
ORDER BY 4 LIMIT :limit + 1

-- name: turns_between
-- Turns by their ids, taken back or not; nothing that only stands for positions without a turn.
SELECT id, role, at, hidden, seal, body FROM all_turns
WHERE id >= :low AND id < :high AND hidden < 2 ORDER BY id LIMIT :limit

-- name: sizes_between
-- How many bytes the same have.
SELECT id, coalesce(length(body), 0) FROM all_turns WHERE id >= :low AND id < :high AND hidden < 2 ORDER BY id LIMIT :limit

-- name: places_between
-- What stands at which positions: turns, and what stands for several without one.
SELECT id, hidden, seal FROM all_places WHERE id >= :low AND id < :high ORDER BY id LIMIT :limit

-- name: place_before
-- What stands last before a position. What only stands for positions is never among what has arrived.
SELECT id, hidden, seal FROM turns WHERE id >= :low AND id < :id ORDER BY id DESC LIMIT 1

-- name: count_places
-- How many positions are accounted for: those of turns, those that were left out, and maybe those of one other kind. One
-- that was taken back says so twice, so that none is without a trace. What stands for several may go on behind the last.
SELECT coalesce(sum(CASE WHEN hidden = 0 THEN 1 WHEN hidden = 1 AND seal >= 4294967296 THEN 1
WHEN hidden IN (2, :other) THEN CASE WHEN seal > :high - id THEN :high - id ELSE seal END ELSE 0 END), 0)
FROM all_places WHERE id >= :low AND id < :high

-- name: count_settled
-- The same where all is in its place.
SELECT coalesce(sum(CASE WHEN hidden = 0 THEN 1 WHEN hidden = 1 AND seal >= 4294967296 THEN 1
WHEN hidden IN (2, :other) THEN CASE WHEN seal > :high - id THEN :high - id ELSE seal END ELSE 0 END), 0)
FROM turns WHERE id >= :low AND id < :high

-- name: last_of_role
-- The ids of the last turns of a role in a chat that were not taken back.
SELECT id FROM all_places WHERE id >= :low AND id < :high AND hidden = 0 AND role = :role ORDER BY id DESC LIMIT :limit

-- name: hide_turns
-- Take turns back.
UPDATE turns SET hidden = 1, seal = seal + 4294967296 WHERE id >= :low AND id < :high AND hidden = 0

-- name: count_turns
-- How many turns of a chat were not taken back.
SELECT count(*) FROM all_places WHERE id >= :low AND id < :high AND hidden = 0

-- name: set_count
-- How many turns of a chat there are.
UPDATE chats SET turns = :turns WHERE number = :number

-- name: delete_turn
-- Forget one turn.
DELETE FROM turns WHERE id = :id

-- name: delete_turns
-- Forget turns.
DELETE FROM turns WHERE id >= :low AND id < :high

-- name: turns_without_chat
-- Turns whose chats are not there, and were not forgotten.
SELECT id FROM all_places WHERE id >> 32 NOT IN (SELECT number FROM chats)
AND id >> 32 NOT IN (SELECT CAST(substr(name, 12, 20) AS BIGINT) FROM facts WHERE name LIKE 'forgetting %') ORDER BY id

-- name: forgetting
-- Chats that were forgotten and of which something is left, with the position before which it is in the search index.
SELECT name, value FROM facts WHERE name LIKE 'forgetting %'

-- name: nothing_forgotten_searchable
-- What is left of them is in no search index any more.
UPDATE facts SET value = '1' WHERE name LIKE 'forgetting %'

-- name: is_chat_there
-- Whether there is a chat of a number.
SELECT 1 FROM chats WHERE number = :number

-- name: forgotten
-- Nothing is left of one of them.
DELETE FROM facts WHERE name = :name

-- name: set_turn_aside
-- Copy a turn that cannot be read to where it does no harm.
INSERT INTO damaged_turns (set_aside_at, chat, id, role, at, hidden, seal, body)
SELECT :set_aside_at, (SELECT chats.id FROM chats WHERE number = :number), id, role, at, hidden, seal, body
FROM turns WHERE turns.id = :id

-- name: keep_turn_aside
-- Write a turn that belongs to no chat any more to where it does no harm.
INSERT INTO damaged_turns (set_aside_at, chat, id, role, at, hidden, seal, body)
VALUES (:set_aside_at, NULL, :id, :role, :at, :hidden, :seal, :body)

-- name: arrivals
-- What is yet to be put in its place, in the order in which it came, and how many bytes it has.
SELECT rowid, id, coalesce(length(body), 0) FROM arrivals WHERE rowid > :after ORDER BY rowid LIMIT :limit

-- name: count_arrivals
-- How many of them there are, and of how many their chats know: what is written there is before where the chat goes on.
SELECT count(*), count(chats.number) FROM arrivals LEFT JOIN chats ON chats.number = arrivals.id >> 32
AND arrivals.id & 4294967295 BETWEEN 1 AND chats.next - 1
WHERE arrivals.id >= :low AND arrivals.id < :high AND arrivals.rowid <= :last

-- name: stray_arrivals
-- Those of which their chats do not know, with the chats' ids; not those of forgotten ones.
SELECT arrivals.rowid, chats.id, arrivals.id, role, at, hidden, seal, arrivals.body
FROM arrivals LEFT JOIN chats ON chats.number = arrivals.id >> 32
WHERE arrivals.id >= :low AND arrivals.id < :high AND arrivals.rowid <= :last
AND (chats.number IS NULL OR NOT arrivals.id & 4294967295 BETWEEN 1 AND chats.next - 1)
AND arrivals.id >> 32 NOT IN (SELECT CAST(substr(name, 12, 20) AS BIGINT) FROM facts WHERE name LIKE 'forgetting %')

-- name: set_arrival_aside
-- Copy what has arrived and cannot be put where it says to where it does no harm.
INSERT INTO damaged_turns (set_aside_at, chat, id, role, at, hidden, seal, body)
SELECT at, (SELECT chats.id FROM chats WHERE number = arrivals.id >> 32), id, role, at, hidden, seal, body FROM arrivals
WHERE rowid = :arrival

-- name: forget_arrival
-- It was set aside.
DELETE FROM arrivals WHERE rowid = :arrival

-- name: place_arrivals
-- Put what has arrived in its place, where nothing else is.
INSERT OR IGNORE INTO turns (id, role, at, hidden, seal, body) SELECT id, role, at, hidden, seal, body FROM arrivals
WHERE id >= :low AND id < :high AND rowid <= :last ORDER BY id

-- name: set_arrivals_aside
-- Copy what has arrived where something else is to where it does no harm.
INSERT INTO damaged_turns (set_aside_at, chat, id, role, at, hidden, seal, body)
SELECT at, (SELECT chats.id FROM chats WHERE number = arrivals.id >> 32), id, role, at, hidden, seal, body FROM arrivals
WHERE id >= :low AND id < :high AND rowid <= :last AND NOT EXISTS (
    SELECT 1 FROM turns WHERE turns.id = arrivals.id AND turns.seal = arrivals.seal AND turns.body = arrivals.body
)

-- name: forget_arrivals
-- What has arrived is in its place.
DELETE FROM arrivals WHERE id >= :low AND id < :high AND rowid <= :last

-- name: chats_to_index_sqlite
-- Chats of which some turns cannot be searched yet: from which position on, and up to which all are in their places.
SELECT number, searchable, min(next, coalesce((SELECT min(arrivals.id) FROM arrivals
WHERE arrivals.id >= chats.number * 4294967296 AND arrivals.id < (chats.number + 1) * 4294967296)
- chats.number * 4294967296, next)) AS settled, id
FROM chats WHERE behind = 1 AND searchable < settled ORDER BY number LIMIT :limit

-- name: chats_to_index_postgres
-- The same, where nothing is ever out of its place.
SELECT number, searchable, next, id FROM chats WHERE behind = 1 AND searchable < next ORDER BY number LIMIT :limit

-- name: note_searchable
-- Up to which position the turns of a chat can be searched.
UPDATE chats SET searchable = :searchable, behind = CASE WHEN :searchable < next OR told < next THEN 1 ELSE 0 END
WHERE number = :number AND searchable = :before

-- name: nothing_searchable
-- Let every turn be indexed anew.
UPDATE chats SET searchable = 1, behind = 1 WHERE searchable > 1

-- name: searchable_of
-- Up to which position the turns of a chat can be searched.
SELECT searchable FROM chats WHERE number = :number

-- name: chats_to_tell_of
-- Chats in which something was said that is yet to be told, and from which position on.
SELECT number, id, told, next, touched_at FROM chats WHERE behind = 1 AND told < next ORDER BY touched_at, number

-- name: note_told
-- What was said in a chat is told.
UPDATE chats SET told = next, behind = CASE WHEN searchable < next THEN 1 ELSE 0 END WHERE number = :number

-- name: handed_over
-- What was written last for each of those who handed something over.
SELECT place, ticket, positions FROM handed_over

-- name: handed_over_at
-- What was written last for one of them.
SELECT ticket, positions FROM handed_over WHERE place = :place

-- name: note_handed_over
-- What was just written for one of them.
INSERT INTO handed_over (place, ticket, positions) VALUES (:place, :ticket, :positions)
ON CONFLICT (place) DO UPDATE SET ticket = excluded.ticket, positions = excluded.positions
