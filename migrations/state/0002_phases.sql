-- What each generation is there for, so that a rebuild, its swap and the way back survive a kill.

ALTER TABLE syncer_generations ADD COLUMN phase TEXT NOT NULL DEFAULT 'new';
ALTER TABLE syncer_generations ADD COLUMN kept_since TEXT;
ALTER TABLE syncer_generations ADD COLUMN confirmed_rows INTEGER;

UPDATE syncer_generations SET phase = 'serving' WHERE serving = 1;
