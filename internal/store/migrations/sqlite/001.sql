-- One row: the version of the newest batch, and the newest version of which a
-- trace was swept away.
CREATE TABLE ken_head (
	one     INTEGER PRIMARY KEY CHECK (one = 1),
	version INTEGER NOT NULL,
	swept   INTEGER NOT NULL
);
INSERT INTO ken_head VALUES (1, 0, 0);

-- A key is there while ends is NULL or lies ahead (microseconds since 1970). A
-- deleted key stays for a while without its value, ended when it was deleted,
-- so that watchers learn of it.
CREATE TABLE ken_item (
	key     TEXT PRIMARY KEY NOT NULL,
	version INTEGER NOT NULL,
	ends    INTEGER,
	value   BLOB
);
CREATE INDEX ken_item_version ON ken_item (version, key);
CREATE INDEX ken_item_ends ON ken_item (ends) WHERE ends IS NOT NULL;
