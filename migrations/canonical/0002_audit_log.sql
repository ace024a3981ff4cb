-- Who changed which row, when, and what; never any text of the row.
--
-- Every write to memory_events pays for this. So there are two forms that it is spared, because
-- SQLite fills a temporary table for each: IN with more than two values, and INSERT ... SELECT into
-- a table that has triggers of its own.

-- In a BEFORE trigger an id that is yet to be chosen reads as -1: a record with that id would make
-- every later insert look like a replacement.
CREATE TABLE audit_log (
    id                    INTEGER PRIMARY KEY AUTOINCREMENT
        CONSTRAINT "audit_log: ids start at 1" CHECK (id >= 1),
    at                    TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
    operation             TEXT NOT NULL
        CONSTRAINT operation_is_known CHECK (
            operation = 'insert' OR operation = 'update' OR operation = 'delete'
        ),
    row_id                INTEGER NOT NULL,
    agent_before          TEXT,
    agent_after           TEXT,
    source_before         TEXT,
    source_after          TEXT,
    changed               TEXT NOT NULL DEFAULT '',
    content_length_before INTEGER,
    content_length_after  INTEGER
);

CREATE INDEX audit_log_row_id ON audit_log (row_id, id);

CREATE TABLE audit_retention (
    only INTEGER PRIMARY KEY CONSTRAINT audit_retention_has_one_row CHECK (only = 1),
    days INTEGER
        CONSTRAINT days_is_null_or_at_least_1
        CHECK (days IS NULL OR (typeof(days) = 'integer' AND days >= 1))
);

INSERT INTO audit_retention (only, days) VALUES (1, NULL);

-- The records that may be deleted: older than audit_retention.days, and not the newest one of a
-- row that still exists, so that every living row keeps its last writer.
CREATE VIEW audit_expired AS
SELECT record.id AS id, record.at AS at, record.row_id AS row_id
FROM audit_log AS record
WHERE record.at < (
        SELECT strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-' || days || ' days')
        FROM audit_retention WHERE only = 1
      )
  AND (
        NOT EXISTS (SELECT 1 FROM memory_events WHERE id = record.row_id)
        OR EXISTS (
            SELECT 1 FROM audit_log AS later
            WHERE later.row_id = record.row_id AND later.id > record.id
        )
      );

-- INSERT OR REPLACE over an existing id fires no DELETE trigger unless recursive_triggers is on. So
-- what is known of the row that may be about to go is noted first, and the note becomes the missing
-- 'delete' if an insert follows, which marks it, and no DELETE trigger took the note away. INSERT OR
-- IGNORE and upserts leave a note behind; it is written anew before it could be used, and goes with
-- its row.
CREATE TABLE audit_replaced (
    row_id         INTEGER PRIMARY KEY,
    agent          TEXT,
    source         TEXT,
    content_length INTEGER,
    replaced       INTEGER NOT NULL DEFAULT 0
);

-- DELETE and INSERT: an OR REPLACE here would be overridden by the OR IGNORE of the outer statement.
-- Lengths are bytes, because length() of a text stops at a NUL character.
CREATE TRIGGER audit_memory_events_before_insert
BEFORE INSERT ON memory_events
WHEN EXISTS (SELECT 1 FROM memory_events WHERE id = NEW.id)
BEGIN
    DELETE FROM audit_replaced WHERE row_id = NEW.id;
    INSERT INTO audit_replaced (row_id, agent, source, content_length)
    SELECT id, agent, source, length(CAST(content AS BLOB)) FROM memory_events WHERE id = NEW.id;
END;

CREATE TRIGGER audit_replaced_becomes_a_record
AFTER UPDATE OF replaced ON audit_replaced
BEGIN
    INSERT INTO audit_log (operation, row_id, agent_before, source_before, content_length_before)
    VALUES ('delete', OLD.row_id, OLD.agent, OLD.source, OLD.content_length);

    DELETE FROM audit_replaced WHERE row_id = OLD.row_id;
END;

-- The values after are read from the row, not from NEW: a trigger of the application may run before
-- this one and update or delete the row, and the newest record has to tell what the row is now.
CREATE TRIGGER audit_memory_events_insert
AFTER INSERT ON memory_events
WHEN EXISTS (SELECT 1 FROM memory_events WHERE id = NEW.id)
BEGIN
    UPDATE audit_replaced SET replaced = 1 WHERE row_id = NEW.id;

    INSERT INTO audit_log (operation, agent_after, row_id, source_after, content_length_after)
    VALUES (
        'insert',
        (SELECT agent FROM memory_events WHERE id = NEW.id),
        NEW.id,
        (SELECT source FROM memory_events WHERE id = NEW.id),
        length(CAST((SELECT content FROM memory_events WHERE id = NEW.id) AS BLOB))
    );
END;

CREATE TRIGGER audit_memory_events_update
AFTER UPDATE OF agent, scope, source, content, metadata, importance, created_at, expires_at,
                superseded_by, deleted_by
ON memory_events
WHEN NEW.agent IS NOT OLD.agent COLLATE BINARY
  OR NEW.scope IS NOT OLD.scope COLLATE BINARY
  OR NEW.source IS NOT OLD.source COLLATE BINARY
  OR NEW.content IS NOT OLD.content COLLATE BINARY
  OR NEW.metadata IS NOT OLD.metadata COLLATE BINARY
  OR NEW.importance IS NOT OLD.importance
  OR NEW.created_at IS NOT OLD.created_at COLLATE BINARY
  OR coalesce(strftime('%Y-%m-%dT%H:%M:%fZ', NEW.expires_at), NEW.expires_at)
     IS NOT coalesce(strftime('%Y-%m-%dT%H:%M:%fZ', OLD.expires_at), OLD.expires_at)
  OR NEW.superseded_by IS NOT OLD.superseded_by
  OR NEW.deleted_by IS NOT OLD.deleted_by COLLATE BINARY
BEGIN
    INSERT INTO audit_log (
        operation, row_id, agent_before, agent_after, source_before, source_after, changed,
        content_length_before, content_length_after
    )
    VALUES (
        'update',
        NEW.id,
        OLD.agent,
        NEW.agent,
        OLD.source,
        NEW.source,
        substr(
            CASE WHEN NEW.agent IS NOT OLD.agent COLLATE BINARY THEN ',agent' ELSE '' END
            || CASE WHEN NEW.scope IS NOT OLD.scope COLLATE BINARY THEN ',scope' ELSE '' END
            || CASE WHEN NEW.source IS NOT OLD.source COLLATE BINARY THEN ',source' ELSE '' END
            || CASE WHEN NEW.content IS NOT OLD.content COLLATE BINARY THEN ',content' ELSE '' END
            || CASE WHEN NEW.metadata IS NOT OLD.metadata COLLATE BINARY
                    THEN ',metadata' ELSE '' END
            || CASE WHEN NEW.importance IS NOT OLD.importance THEN ',importance' ELSE '' END
            || CASE WHEN NEW.created_at IS NOT OLD.created_at COLLATE BINARY
                    THEN ',created_at' ELSE '' END
            || CASE WHEN coalesce(strftime('%Y-%m-%dT%H:%M:%fZ', NEW.expires_at), NEW.expires_at)
                         IS NOT coalesce(strftime('%Y-%m-%dT%H:%M:%fZ', OLD.expires_at),
                                         OLD.expires_at)
                    THEN ',expires_at' ELSE '' END
            || CASE WHEN NEW.superseded_by IS NOT OLD.superseded_by
                    THEN ',superseded_by' ELSE '' END
            || CASE WHEN NEW.deleted_by IS NOT OLD.deleted_by COLLATE BINARY
                    THEN ',deleted_by' ELSE '' END,
            2
        ),
        length(CAST(OLD.content AS BLOB)),
        length(CAST(NEW.content AS BLOB))
    );
END;

CREATE TRIGGER audit_memory_events_delete
AFTER DELETE ON memory_events
BEGIN
    INSERT INTO audit_log (operation, row_id, agent_before, source_before, content_length_before)
    VALUES ('delete', OLD.id, OLD.agent, OLD.source, length(CAST(OLD.content AS BLOB)));

    DELETE FROM audit_replaced WHERE row_id = OLD.id;
END;

CREATE TRIGGER audit_log_is_never_updated
BEFORE UPDATE ON audit_log
BEGIN
    SELECT RAISE(ABORT, 'audit_log: a record is never changed');
END;

-- REPLACE deletes without firing DELETE triggers unless recursive_triggers is on.
CREATE TRIGGER audit_log_is_never_replaced
BEFORE INSERT ON audit_log
WHEN NEW.id <> -1 AND EXISTS (SELECT 1 FROM audit_log WHERE id = NEW.id)
BEGIN
    SELECT RAISE(ABORT, 'audit_log: a record is never replaced');
END;

CREATE TRIGGER audit_log_is_kept
BEFORE DELETE ON audit_log
WHEN NOT EXISTS (SELECT 1 FROM audit_expired WHERE id = OLD.id)
BEGIN
    SELECT RAISE(ABORT, 'audit_log: this record is kept; set audit_retention.days, then delete what the view audit_expired lists');
END;
