-- Whether the session was held to looking; not known of those of an older release.

-- +goose Up
ALTER TABLE sessions ADD COLUMN dry_run INTEGER NOT NULL DEFAULT 0 CHECK (dry_run IN (0, 1));
