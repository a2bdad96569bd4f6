-- How the session's processes were held together; empty for those of an older release.

-- +goose Up
ALTER TABLE sessions ADD COLUMN containment TEXT NOT NULL DEFAULT '';
