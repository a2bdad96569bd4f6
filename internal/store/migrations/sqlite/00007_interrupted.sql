-- Whether the session went on with its own conversation after a process of it had died; not known
-- of those of an older release.

-- +goose Up
ALTER TABLE sessions ADD COLUMN interrupted INTEGER NOT NULL DEFAULT 0 CHECK (interrupted IN (0, 1));
