-- Chats, what was said in them, who else may go on with them, and what repair could not read.
--
-- A turn's id is its chat's number times 2^32 plus its position: the primary key (chat, position) in one number, so
-- that a turn is written to one tree only, what was said in a chat lies side by side, and the search index can name
-- turns. Numbers are never given twice. The search index itself is made by whoever indexes first.
CREATE TABLE chats (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    key TEXT NOT NULL,
    reach TEXT,
    owner TEXT NOT NULL,
    platform TEXT NOT NULL,
    participant TEXT,
    title TEXT,
    continues TEXT,
    opened_at TEXT NOT NULL CHECK (length(opened_at) = 27),
    touched_at TEXT NOT NULL CHECK (length(touched_at) = 27),
    closed_at TEXT CHECK (length(closed_at) = 27),
    owed INTEGER NOT NULL DEFAULT 0,
    turns INTEGER NOT NULL DEFAULT 0,
    next INTEGER NOT NULL DEFAULT 1,
    searchable INTEGER NOT NULL DEFAULT 1,
    body BLOB NOT NULL
);

CREATE UNIQUE INDEX chats_open ON chats (key) WHERE closed_at IS NULL;

CREATE UNIQUE INDEX chats_by_title ON chats (owner, title) WHERE title IS NOT NULL;

CREATE INDEX chats_by_key ON chats (key);

CREATE INDEX chats_by_reach ON chats (reach);

CREATE INDEX chats_by_continued ON chats (continues) WHERE continues IS NOT NULL;

CREATE INDEX chats_owed ON chats (number) WHERE owed = 1;

CREATE INDEX chats_to_index ON chats (number) WHERE searchable < next;

CREATE TABLE turns (
    id INTEGER PRIMARY KEY,
    role TEXT NOT NULL,
    at TEXT NOT NULL,
    hidden INTEGER NOT NULL DEFAULT 0,
    seal INTEGER NOT NULL,
    body BLOB NOT NULL
);

CREATE TABLE chat_grants (
    chat INTEGER NOT NULL REFERENCES chats (number) ON DELETE CASCADE,
    owner TEXT NOT NULL,
    PRIMARY KEY (chat, owner)
);

CREATE INDEX chat_grants_by_owner ON chat_grants (owner);

CREATE TABLE damaged_chats (
    set_aside_at TEXT NOT NULL,
    number INTEGER,
    id TEXT,
    key TEXT,
    reach TEXT,
    owner TEXT,
    title TEXT,
    opened_at TEXT,
    touched_at TEXT,
    closed_at TEXT,
    body BLOB
);

CREATE TABLE damaged_turns (
    set_aside_at TEXT NOT NULL,
    chat TEXT,
    id INTEGER,
    role TEXT,
    at TEXT,
    hidden INTEGER,
    seal INTEGER,
    body BLOB
);
