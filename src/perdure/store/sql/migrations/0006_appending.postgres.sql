-- Which chats are behind: something was said that cannot be searched yet, or of which no event tells yet. It is a column
-- of its own, so that appending to a chat that is behind already writes to no index.
ALTER TABLE chats ADD COLUMN told BIGINT NOT NULL DEFAULT 1;

ALTER TABLE chats ADD COLUMN behind SMALLINT NOT NULL DEFAULT 0;

UPDATE chats SET told = next, behind = CASE WHEN searchable < next THEN 1 ELSE 0 END;

DROP INDEX chats_to_index;

CREATE INDEX chats_behind ON chats (number) WHERE behind = 1;
