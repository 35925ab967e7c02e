-- name: make_index_sqlite
-- The search index: the words of turns by their ids, and nothing else of them.
CREATE VIRTUAL TABLE IF NOT EXISTS turn_words USING fts5 (
    words, content = '', tokenize = 'unicode61 remove_diacritics 0', prefix = '2 3'
)

-- name: drop_index_sqlite
-- Let there be no search index.
DROP TABLE IF EXISTS turn_words

-- name: drop_index_postgres
-- Let the search index be empty.
DELETE FROM turn_words

-- name: index_turn_sqlite
-- Let a turn be found by its words.
INSERT INTO turn_words (rowid, words) VALUES (:id, :words)

-- name: index_turn_postgres
-- Let a turn be found by its words.
INSERT INTO turn_words (id, words) VALUES (:id, CAST(:words AS TSVECTOR))
ON CONFLICT (id) DO UPDATE SET words = excluded.words

-- name: forget_words_sqlite
-- Let a turn be found no more. SQLite has to be told which words it was found by.
INSERT INTO turn_words (turn_words, rowid, words) VALUES ('delete', :id, :words)

-- name: forget_words_postgres
-- Let a turn be found no more.
DELETE FROM turn_words WHERE id = :id

-- name: search_turns_sqlite
-- Turns by their words, the best first.
SELECT chats.id, chats.title, chats.number, turns.id, turns.role, turns.at, turns.hidden, turns.seal, turns.body
FROM (
    SELECT turn_words.rowid AS id, turn_words.rank AS weight FROM turn_words
    JOIN turns ON turns.id = turn_words.rowid
    JOIN chats ON chats.number = turn_words.rowid >> 32
    WHERE turn_words MATCH :query AND turns.hidden = 0
    AND turns.at >= :since AND turns.at < :until
    AND (CAST(:role AS TEXT) IS NULL OR turns.role = :role)
    AND (CAST(:platform AS TEXT) IS NULL OR chats.platform = :platform)
    AND (CAST(:participant AS TEXT) IS NULL OR chats.participant = :participant)
    AND (CAST(:chat AS TEXT) IS NULL OR chats.id = :chat)
    AND (
        :everywhere = 1 OR chats.reach IN (:reaches)
        OR chats.number IN (SELECT chat FROM chat_grants WHERE owner = :owner)
    )
    ORDER BY turn_words.rank LIMIT :limit
) AS hits
JOIN turns ON turns.id = hits.id JOIN chats ON chats.number = hits.id >> 32
ORDER BY hits.weight, hits.id DESC

-- name: search_turns_postgres
-- Turns by their words, the best first.
SELECT chats.id, chats.title, chats.number, turns.id, turns.role, turns.at, turns.hidden, turns.seal, turns.body
FROM (
    SELECT turn_words.id, -ts_rank(turn_words.words, CAST(:query AS TSQUERY)) AS weight FROM turn_words
    JOIN turns ON turns.id = turn_words.id
    JOIN chats ON chats.number = turn_words.id >> 32
    WHERE turn_words.words @@ CAST(:query AS TSQUERY) AND turns.hidden = 0
    AND turns.at >= :since AND turns.at < :until
    AND (CAST(:role AS TEXT) IS NULL OR turns.role = :role)
    AND (CAST(:platform AS TEXT) IS NULL OR chats.platform = :platform)
    AND (CAST(:participant AS TEXT) IS NULL OR chats.participant = :participant)
    AND (CAST(:chat AS TEXT) IS NULL OR chats.id = :chat)
    AND (
        :everywhere = 1 OR chats.reach IN (:reaches)
        OR chats.number IN (SELECT chat FROM chat_grants WHERE owner = :owner)
    )
    ORDER BY weight, turn_words.id DESC LIMIT :limit
) AS hits
JOIN turns ON turns.id = hits.id JOIN chats ON chats.number = hits.id >> 32
ORDER BY hits.weight, hits.id DESC
