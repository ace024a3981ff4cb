-- Where rows came from that `syncer recover` brought home: one record for each point that somebody
-- wrote past SQLite. It outlives the row, so that a point is never brought home twice, be the
-- command killed and run again, or the row changed or deleted since.

CREATE TABLE audit_recovered (
    id           INTEGER PRIMARY KEY AUTOINCREMENT
        CONSTRAINT "audit_recovered: ids start at 1" CHECK (id >= 1),
    at           TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
    row_id       INTEGER NOT NULL,
    collection   TEXT NOT NULL,
    point        TEXT NOT NULL,
    payload_hash TEXT NOT NULL
);

CREATE UNIQUE INDEX audit_recovered_point ON audit_recovered (point, payload_hash);

CREATE INDEX audit_recovered_row_id ON audit_recovered (row_id);

CREATE TRIGGER audit_recovered_is_never_updated
BEFORE UPDATE ON audit_recovered
BEGIN
    SELECT RAISE(ABORT, 'audit_recovered: a record is never changed');
END;

-- REPLACE deletes without firing DELETE triggers unless recursive_triggers is on. In a BEFORE
-- trigger an id that is yet to be chosen reads as -1.
CREATE TRIGGER audit_recovered_is_never_replaced
BEFORE INSERT ON audit_recovered
WHEN EXISTS (
    SELECT 1 FROM audit_recovered
    WHERE (NEW.id <> -1 AND id = NEW.id)
       OR (point = NEW.point AND payload_hash = NEW.payload_hash)
)
BEGIN
    SELECT RAISE(ABORT, 'audit_recovered: a record is never replaced');
END;

CREATE TRIGGER audit_recovered_is_kept
BEFORE DELETE ON audit_recovered
BEGIN
    SELECT RAISE(ABORT, 'audit_recovered: a record is kept; without it the point could come home twice');
END;
