-- One row: the version of the newest batch, and the newest version of which a
-- trace was swept away. Whoever writes locks it, so versions follow commits.
CREATE TABLE ken_head (
	one     boolean PRIMARY KEY CHECK (one),
	version bigint NOT NULL,
	swept   bigint NOT NULL
);
INSERT INTO ken_head VALUES (true, 0, 0);

-- A key is there while ends is NULL or lies ahead (microseconds since 1970). A
-- deleted key stays for a while without its value, ended when it was deleted,
-- so that watchers learn of it.
CREATE TABLE ken_item (
	key     text COLLATE "C" PRIMARY KEY,
	version bigint NOT NULL,
	ends    bigint,
	value   bytea
);
CREATE INDEX ken_item_version ON ken_item (version, key);
CREATE INDEX ken_item_ends ON ken_item (ends) WHERE ends IS NOT NULL;
