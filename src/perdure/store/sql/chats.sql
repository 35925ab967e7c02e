-- name: open_chat
-- The one open chat of a key.
SELECT number, id, key, title, touched_at, closed_at, turns, body FROM chats WHERE key = :key AND closed_at IS NULL

-- name: get_chat
-- One chat.
SELECT number, id, key, title, touched_at, closed_at, turns, body FROM chats WHERE id = :id

-- name: chats_from
-- Chats whose ids begin with some characters.
SELECT number, id, key, title, touched_at, closed_at, turns, body FROM chats
WHERE id >= :low AND id < :high ORDER BY id LIMIT :limit

-- name: last_closed
-- The chat of a key that was closed last, by the times of all; of those before one of them.
SELECT number, id, key, title, touched_at, closed_at, turns, body FROM chats
WHERE key = :key AND (closed_at < :at OR (closed_at = :at AND number < :number))
ORDER BY closed_at DESC, number DESC LIMIT 1

-- name: closed_since
-- Whether a closed chat of a key was begun just when another was closed: so it was closed after that one.
SELECT 1 FROM chats WHERE key = :key AND number > :number AND opened_at = :at AND closed_at IS NOT NULL LIMIT 1

-- name: continuation_of
-- The chats that go on with one that was made shorter.
SELECT number, id, key, title, touched_at, closed_at, turns, body FROM chats WHERE continues = :id ORDER BY number

-- name: list_chats
-- Chats, the one that was used last first.
SELECT number, id, key, title, touched_at, closed_at, turns, body FROM chats
WHERE touched_at >= :since AND (CAST(:key AS TEXT) IS NULL OR key = :key)
AND (CAST(:is_open AS INTEGER) IS NULL OR (closed_at IS NULL) = (:is_open = 1))
ORDER BY touched_at DESC, number DESC LIMIT :limit

-- name: list_chats_in_reach
-- Chats that somebody reaches, the one that was used last first.
SELECT number, id, key, title, touched_at, closed_at, turns, body FROM chats
WHERE touched_at >= :since AND (CAST(:key AS TEXT) IS NULL OR key = :key)
AND (CAST(:is_open AS INTEGER) IS NULL OR (closed_at IS NULL) = (:is_open = 1))
AND (reach IN (:reaches) OR number IN (SELECT chat FROM chat_grants WHERE owner = :owner))
ORDER BY touched_at DESC, number DESC LIMIT :limit

-- name: list_chats_owed
-- Chats that were closed by themselves before they were handed on.
SELECT number, id, key, title, touched_at, closed_at, turns, body FROM chats WHERE owed = 1 ORDER BY number

-- name: all_chats
-- The first chats behind a number.
SELECT number, id, key, title, touched_at, closed_at, turns, body FROM chats
WHERE number > :after ORDER BY number LIMIT :limit

-- name: chats_titled
-- The chats of an owner with a title, or with a numbered one that begins like it.
SELECT number, id, key, title, touched_at, closed_at, turns, body FROM chats
WHERE owner = :owner AND (title = :title OR (title >= :low AND title < :high)) ORDER BY number

-- name: taken_titles
-- The titles of an owner's chats, whether or not these can be read: one, and numbered ones that begin like it.
SELECT title FROM chats WHERE owner = :owner AND (title = :title OR (title >= :low AND title < :high)) ORDER BY number

-- name: all_chats_titled
-- Everybody's chats with a title, or with a numbered one that begins like it.
SELECT number, id, key, title, touched_at, closed_at, turns, body FROM chats
WHERE title = :title OR (title >= :low AND title < :high) ORDER BY number

-- name: holder_of_title
-- Which chat of an owner has a title.
SELECT number, id, key, title, touched_at, closed_at, turns, body FROM chats WHERE owner = :owner AND title = :title

-- name: next_positions
-- The positions of the next turns of some chats.
SELECT id, next FROM chats WHERE id IN (:ids)

-- name: count_chats
-- How many chats there are.
SELECT count(*) FROM chats

-- name: insert_chat
-- Write a chat down.
INSERT INTO chats (
    id, key, reach, owner, platform, participant, title, continues, opened_at, touched_at, closed_at, owed, turns,
    next, searchable, body
)
VALUES (
    :id, :key, :reach, :owner, :platform, :participant, :title, :continues, :opened_at, :touched_at, :closed_at, :owed, 0,
    1, 1, :body
)

-- name: put_chat
-- Let a chat be as it is now.
UPDATE chats SET key = :key, reach = :reach, owner = :owner, platform = :platform, participant = :participant,
title = :title, continues = :continues, touched_at = :touched_at, closed_at = :closed_at, owed = :owed, body = :body
WHERE number = :number

-- name: touch_chat
-- An open chat was used.
UPDATE chats SET touched_at = CASE WHEN touched_at < :at THEN :at ELSE touched_at END
WHERE id = :id AND closed_at IS NULL

-- name: delete_chat
-- Forget a chat.
DELETE FROM chats WHERE number = :number

-- name: grant_chat
-- Let an owner go on with a chat.
INSERT INTO chat_grants (chat, owner) VALUES (:chat, :owner) ON CONFLICT DO NOTHING

-- name: pass_grants_on
-- Grant a chat to whoever another was granted to.
INSERT INTO chat_grants (chat, owner)
SELECT chats.number, chat_grants.owner FROM chats
JOIN chat_grants ON chat_grants.chat = (SELECT number FROM chats WHERE id = :before)
WHERE chats.id = :chat

-- name: revoke_chat
-- Let an owner no longer go on with a chat, with those it was made shorter from, and with those it goes on in.
WITH RECURSIVE line (number, id, continues) AS (
    SELECT number, id, continues FROM chats WHERE number = :chat
    UNION
    SELECT chats.number, chats.id, chats.continues FROM line
    JOIN chats ON chats.continues = line.id OR chats.id = line.continues
)
DELETE FROM chat_grants WHERE owner = :owner AND chat IN (SELECT number FROM line)

-- name: is_granted
-- Whether an owner may go on with a chat.
SELECT 1 FROM chat_grants WHERE chat = :chat AND owner = :owner

-- name: set_chat_aside
-- Copy the record of a chat that cannot be read to where it does no harm.
INSERT INTO damaged_chats (
    set_aside_at, number, id, key, reach, owner, title, opened_at, touched_at, closed_at, body
)
SELECT :at, number, id, key, reach, owner, title, opened_at, touched_at, closed_at, body
FROM chats WHERE number = :number

-- name: chat_columns
-- What stands of a chat outside its record.
SELECT id, key, platform, opened_at, touched_at, closed_at, body FROM chats WHERE number = :number

-- name: found_by
-- By what else a chat is looked for, which its record says, too.
SELECT reach, owner, platform, participant, continues, opened_at FROM chats WHERE number = :number

-- name: put_opened
-- Note when a chat was begun.
UPDATE chats SET opened_at = :opened_at WHERE number = :number

-- name: name_chat
-- Give a chat the id that was its own.
UPDATE chats SET id = :id WHERE number = :number
