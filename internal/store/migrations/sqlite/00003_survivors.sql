-- How many of the agent's processes could not be ended; 0 for those of an older release.

-- +goose Up
ALTER TABLE sessions ADD COLUMN survivors INTEGER NOT NULL DEFAULT 0;
