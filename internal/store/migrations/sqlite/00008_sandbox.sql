-- What the kernel kept the session's processes from; empty for those of an older release.

-- +goose Up
ALTER TABLE sessions ADD COLUMN sandbox TEXT NOT NULL DEFAULT '';
