-- What syncer knows of itself: beside the source table in log mode, else in a file of its own.

CREATE TABLE syncer_identity (
    only      INTEGER PRIMARY KEY CHECK (only = 1),
    source_id TEXT NOT NULL
);

INSERT INTO syncer_identity (only, source_id) VALUES (1, lower(hex(randomblob(16))));

CREATE TABLE syncer_generations (
    generation      TEXT PRIMARY KEY,
    alias           TEXT NOT NULL,
    source_table    TEXT NOT NULL,
    serving         INTEGER NOT NULL DEFAULT 0,
    created_at      TEXT NOT NULL,
    last_id         TEXT,
    change_seq      INTEGER NOT NULL DEFAULT 0,
    walked          INTEGER NOT NULL DEFAULT 0,
    expired_to      TEXT,
    settled         TEXT,
    cursor          TEXT,
    reconcile       INTEGER NOT NULL DEFAULT 0,
    token           TEXT,
    pending_token   TEXT,
    writer          TEXT,
    settings_digest TEXT NOT NULL DEFAULT '',
    mapping_digest  TEXT NOT NULL DEFAULT '',
    schema_seen     TEXT NOT NULL DEFAULT '',
    points          INTEGER,
    rows            INTEGER,
    last_success_at TEXT
);

-- Not a partial unique index: one of those anywhere in a database keeps programs with a SQLite older
-- than 3.8.0 from opening it at all.
CREATE TRIGGER syncer_generations_one_serves_on_insert
AFTER INSERT ON syncer_generations
WHEN NEW.serving = 1
BEGIN
    SELECT RAISE(ABORT, 'syncer_generations: another generation serves this alias')
    WHERE (SELECT count(*) FROM syncer_generations WHERE alias = NEW.alias AND serving = 1) > 1;
END;

CREATE TRIGGER syncer_generations_one_serves_on_update
AFTER UPDATE OF alias, serving ON syncer_generations
WHEN NEW.serving = 1
BEGIN
    SELECT RAISE(ABORT, 'syncer_generations: another generation serves this alias')
    WHERE (SELECT count(*) FROM syncer_generations WHERE alias = NEW.alias AND serving = 1) > 1;
END;

CREATE TABLE syncer_withheld (
    generation TEXT NOT NULL,
    row        TEXT NOT NULL,
    since      TEXT NOT NULL,
    PRIMARY KEY (generation, row)
);

CREATE TABLE syncer_deletes (
    generation TEXT NOT NULL,
    at         TEXT NOT NULL,
    rows       INTEGER NOT NULL
);

CREATE TABLE syncer_quarantine (
    generation   TEXT NOT NULL,
    row          TEXT NOT NULL,
    content_hash TEXT NOT NULL DEFAULT '',
    reason       TEXT NOT NULL,
    detail       TEXT NOT NULL DEFAULT '',
    first_seen   TEXT NOT NULL,
    last_seen    TEXT NOT NULL,
    attempts     INTEGER NOT NULL DEFAULT 1,
    next_try     TEXT,
    PRIMARY KEY (generation, row)
);
