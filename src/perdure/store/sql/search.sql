-- name: make_index_sqlite
-- The search index: the words of turns by their ids, with marks for role and time, which begin like no word.
CREATE VIRTUAL TABLE IF NOT EXISTS turn_terms USING fts5 (
    words, content = '', tokenize = 'unicode61 remove_diacritics 0 tokenchars '':''', prefix = '2 3'
)

-- name: drop_index_sqlite
-- Let there be no search index.
DROP TABLE IF EXISTS turn_terms

-- name: drop_old_index_sqlite
-- Let go of the search index of earlier versions, in which no turn has a time.
DROP TABLE IF EXISTS turn_words

-- name: drop_index_postgres
-- Let the search index be empty.
DELETE FROM turn_words

-- name: index_turn_sqlite
-- Let a turn be found by its words.
INSERT INTO turn_terms (rowid, words) VALUES (:id, :words)

-- name: index_turn_postgres
-- Let a turn be found by its words.
INSERT INTO turn_words (id, words) VALUES (:id, CAST(:words AS TSVECTOR))
ON CONFLICT (id) DO UPDATE SET words = excluded.words

-- name: forget_words_sqlite
-- Let a turn be found no more. SQLite has to be told which words it was found by.
INSERT INTO turn_terms (turn_terms, rowid, words) VALUES ('delete', :id, :words)

-- name: forget_words_postgres
-- Let a turn be found no more.
DELETE FROM turn_words WHERE id = :id

-- name: numbers_in_reach
-- The numbers of the chats that are searched, the latest first.
SELECT number FROM chats
WHERE (CAST(:platform AS TEXT) IS NULL OR platform = :platform)
AND (CAST(:participant AS TEXT) IS NULL OR participant = :participant)
AND (CAST(:chat AS TEXT) IS NULL OR id = :chat)
AND (:everybody = 1 OR reach IN (:reaches) OR number IN (SELECT chat FROM chat_grants WHERE owner = :owner))
ORDER BY number DESC LIMIT :limit

-- name: matches_sqlite
-- The latest turns with some words, and how long they are.
SELECT turns.id, length(turns.body) FROM turn_terms JOIN turns ON turns.id = turn_terms.rowid
WHERE turn_terms MATCH :query AND turn_terms.rowid >= :low AND turn_terms.rowid < :high
AND turns.hidden = 0 AND turns.at >= :since AND turns.at < :until
AND (CAST(:role AS TEXT) IS NULL OR turns.role = :role)
AND (
    :everywhere = 1 OR turn_terms.rowid >> 32 IN (
        SELECT number FROM chats
        WHERE (CAST(:platform AS TEXT) IS NULL OR platform = :platform)
        AND (CAST(:participant AS TEXT) IS NULL OR participant = :participant)
        AND (:everybody = 1 OR reach IN (:reaches) OR number IN (SELECT chat FROM chat_grants WHERE owner = :owner))
    )
)
ORDER BY turn_terms.rowid DESC LIMIT :limit

-- name: matches_postgres
-- The latest turns with some words, and how long they are.
SELECT turns.id, length(turns.body) FROM turn_words JOIN turns ON turns.id = turn_words.id
WHERE turn_words.words @@ CAST(:query AS TSQUERY) AND turn_words.id >= :low AND turn_words.id < :high
AND turns.hidden = 0 AND turns.at >= :since AND turns.at < :until
AND (CAST(:role AS TEXT) IS NULL OR turns.role = :role)
AND (
    :everywhere = 1 OR turn_words.id >> 32 IN (
        SELECT number FROM chats
        WHERE (CAST(:platform AS TEXT) IS NULL OR platform = :platform)
        AND (CAST(:participant AS TEXT) IS NULL OR participant = :participant)
        AND (:everybody = 1 OR reach IN (:reaches) OR number IN (SELECT chat FROM chat_grants WHERE owner = :owner))
    )
)
ORDER BY turn_words.id DESC LIMIT :limit

-- name: found_turns
-- Turns by their ids, with whose they are.
SELECT chats.id, chats.title, chats.number, turns.id, turns.role, turns.at, turns.hidden, turns.seal, turns.body
FROM turns JOIN chats ON chats.number = turns.id >> 32 WHERE turns.id IN (:ids)
