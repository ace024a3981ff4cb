-- Which rows to look at again. An entry says where to look, never what to do: the row is read as
-- it is when its turn comes. SQLite has one writer at a time, so the order of seq is that of commits.
-- changed_at is a Julian day, which every date function of SQLite's takes: writing out a date would
-- cost each insert of the application a fifth more.

CREATE TABLE syncer_changes_memory_events (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    id         INTEGER NOT NULL,
    changed_at REAL NOT NULL DEFAULT (julianday('now'))
);

-- An INSERT OR REPLACE ends here too, under the id of the row that went: ids are the only key.
CREATE TRIGGER syncer_changes_memory_events_insert
AFTER INSERT ON memory_events
BEGIN
    INSERT INTO syncer_changes_memory_events (id) VALUES (NEW.id);
END;

CREATE TRIGGER syncer_changes_memory_events_delete
AFTER DELETE ON memory_events
BEGIN
    INSERT INTO syncer_changes_memory_events (id) VALUES (OLD.id);
END;

-- updated_at is not read by the mapping, and an UPDATE that changes nothing costs nothing.
-- IS NOT tells storage classes apart: a text and the blob of its bytes are two values.
CREATE TRIGGER syncer_changes_memory_events_update
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
    INSERT INTO syncer_changes_memory_events (id) VALUES (NEW.id);
END;
