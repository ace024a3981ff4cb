-- How far each collection has got, for tools that know a table of this name and shape. It belongs
-- to this set, not to syncer's own tables, so that it never meets a sync_status of the application.

CREATE VIEW sync_status AS
SELECT
    alias AS target,
    CASE
        WHEN last_id IS NULL THEN 0
        WHEN CAST(CAST(last_id AS INTEGER) AS TEXT) = last_id THEN CAST(last_id AS INTEGER)
        ELSE last_id
    END AS last_id
FROM syncer_generations
WHERE serving = 1;
