-- The table that counts. Triggers run inside other people's programs, whatever SQLite those were
-- built with, so nothing here is younger than SQLite 3.6.19: no json_*, no UPSERT, no partial index.

CREATE TABLE memory_events (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    agent         TEXT NOT NULL DEFAULT '',
    scope         TEXT NOT NULL,
    source        TEXT NOT NULL,
    content       TEXT NOT NULL,
    metadata      JSON TEXT NOT NULL DEFAULT '{}',  -- JSON alone has numeric affinity
    importance    REAL NOT NULL DEFAULT 0.5
        CONSTRAINT importance_is_from_0_to_1 CHECK (importance BETWEEN 0 AND 1),
    created_at    TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
    updated_at    TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
    expires_at    TEXT,
    superseded_by INTEGER,
    deleted_by    TEXT
        CONSTRAINT deleted_by_is_null_or_a_name CHECK (deleted_by <> ''),
    CONSTRAINT superseded_by_is_the_id_of_another_row CHECK (
        superseded_by IS NULL
        OR (typeof(superseded_by) = 'integer' AND superseded_by <> id)
    )
);

CREATE INDEX memory_events_expires_at ON memory_events (expires_at);

-- No column list: UPDATE ... SET rowid = 9 changes the id and does not count as UPDATE OF id.
CREATE TRIGGER memory_events_id_is_fixed
BEFORE UPDATE ON memory_events
WHEN NEW.id IS NOT OLD.id
BEGIN
    SELECT RAISE(ABORT, 'memory_events.id: the id of a row never changes; insert a new row and set superseded_by on this one');
END;

-- What is stored is always YYYY-MM-DDTHH:MM:SS.sssZ, so that order as text is order in time.
-- SQLite takes 2030-02-30 for a date; adding no days turns it into a real one. Its releases differ
-- about hour 24, and about years that an offset moves out of 0000 to 9999, so both are refused.
-- What comes out of strftime as it went in has the stored form and is a real date: nothing to do.
CREATE TRIGGER memory_events_expires_at_on_insert
AFTER INSERT ON memory_events
WHEN NEW.expires_at IS NOT NULL
  AND NEW.expires_at IS NOT strftime('%Y-%m-%dT%H:%M:%fZ', NEW.expires_at, '+0 days') COLLATE BINARY
BEGIN
    SELECT RAISE(ABORT, 'memory_events.expires_at: not a date or time; write YYYY-MM-DD or YYYY-MM-DDTHH:MM:SS, UTC or with an offset, or NULL for never')
    WHERE NOT coalesce(
        typeof(NEW.expires_at) = 'text'
        AND substr(NEW.expires_at, 1, 10)
            = strftime('%Y-%m-%d', substr(NEW.expires_at, 1, 10), '+0 days')
        AND (substr(NEW.expires_at, 11, 1) = '' OR substr(NEW.expires_at, 11, 1) IN (' ', 'T'))
        AND (
            substr(NEW.expires_at, 12, 2) = ''
            OR substr(NEW.expires_at, 12, 2) GLOB '[01][0-9]'
            OR substr(NEW.expires_at, 12, 2) GLOB '2[0-3]'
        )
        AND abs(
            julianday(strftime('%Y-%m-%dT%H:%M:%fZ', NEW.expires_at))
            - julianday(substr(NEW.expires_at, 1, 10))
        ) < 2,
        0
    );
    UPDATE memory_events
    SET expires_at = strftime('%Y-%m-%dT%H:%M:%fZ', expires_at)
    WHERE id = NEW.id
      AND expires_at IS NOT strftime('%Y-%m-%dT%H:%M:%fZ', expires_at) COLLATE BINARY;
END;

CREATE TRIGGER memory_events_expires_at_on_update
AFTER UPDATE OF expires_at ON memory_events
WHEN NEW.expires_at IS NOT NULL
  AND NEW.expires_at IS NOT strftime('%Y-%m-%dT%H:%M:%fZ', NEW.expires_at, '+0 days') COLLATE BINARY
BEGIN
    SELECT RAISE(ABORT, 'memory_events.expires_at: not a date or time; write YYYY-MM-DD or YYYY-MM-DDTHH:MM:SS, UTC or with an offset, or NULL for never')
    WHERE NOT coalesce(
        typeof(NEW.expires_at) = 'text'
        AND substr(NEW.expires_at, 1, 10)
            = strftime('%Y-%m-%d', substr(NEW.expires_at, 1, 10), '+0 days')
        AND (substr(NEW.expires_at, 11, 1) = '' OR substr(NEW.expires_at, 11, 1) IN (' ', 'T'))
        AND (
            substr(NEW.expires_at, 12, 2) = ''
            OR substr(NEW.expires_at, 12, 2) GLOB '[01][0-9]'
            OR substr(NEW.expires_at, 12, 2) GLOB '2[0-3]'
        )
        AND abs(
            julianday(strftime('%Y-%m-%dT%H:%M:%fZ', NEW.expires_at))
            - julianday(substr(NEW.expires_at, 1, 10))
        ) < 2,
        0
    );
    UPDATE memory_events
    SET expires_at = strftime('%Y-%m-%dT%H:%M:%fZ', expires_at)
    WHERE id = NEW.id
      AND expires_at IS NOT strftime('%Y-%m-%dT%H:%M:%fZ', expires_at) COLLATE BINARY;
END;

-- Never backwards: after the clock was set back, the old stamp stays. A stamp in another form than
-- ours does not take part, or 'zzz' would stay for ever. Its own UPDATE changes updated_at only,
-- which is not in the list, so it does not fire itself with recursive_triggers on either.
-- expires_at is compared as a time: bringing it into its stored form is no change of the row.
CREATE TRIGGER memory_events_updated_at
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
    UPDATE memory_events
    SET updated_at = max(
        strftime('%Y-%m-%dT%H:%M:%fZ', 'now'),
        CASE WHEN OLD.updated_at = strftime('%Y-%m-%dT%H:%M:%fZ', OLD.updated_at)
             THEN OLD.updated_at ELSE '' END
    )
    WHERE id = NEW.id;
END;
