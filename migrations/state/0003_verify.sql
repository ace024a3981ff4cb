-- What the last comparison of both stores found: when, and how many rows and points by kind.

CREATE TABLE syncer_verify (
    generation   TEXT PRIMARY KEY,
    at           TEXT NOT NULL,
    clean        INTEGER NOT NULL,
    rows         INTEGER NOT NULL,
    points       INTEGER NOT NULL,
    missing      INTEGER NOT NULL,
    stale        INTEGER NOT NULL,
    orphan       INTEGER NOT NULL,
    incomplete   INTEGER NOT NULL,
    no_vector    INTEGER NOT NULL,
    wrong_vector INTEGER NOT NULL,
    "foreign"    INTEGER NOT NULL,
    pending      INTEGER NOT NULL,
    quarantined  INTEGER NOT NULL,
    withheld     INTEGER NOT NULL
);
