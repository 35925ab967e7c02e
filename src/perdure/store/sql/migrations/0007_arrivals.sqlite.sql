-- What was appended last, in the order in which it came, until it is put in its place among the turns. There what is
-- said in a chat goes into the midst of a tree, which writes more pages than one at its end, and the more the more chats
-- are talked in at once: whoever appends need not wait for that. What has arrived in a chat is always behind all that
-- can be searched in it, and the chat is behind.
CREATE TABLE arrivals (
    id INTEGER NOT NULL,
    role TEXT NOT NULL,
    at TEXT NOT NULL,
    hidden INTEGER NOT NULL,
    seal INTEGER NOT NULL,
    body BLOB NOT NULL
);
