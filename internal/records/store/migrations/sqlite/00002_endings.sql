-- +goose Up
ALTER TABLE sessions ADD COLUMN ending TEXT NOT NULL DEFAULT ''; -- why it has no result; empty: it has one
ALTER TABLE sessions ADD COLUMN limited_until INTEGER;           -- the end of the account's limit that it has met
CREATE INDEX sessions_limited_until ON sessions (limited_until) WHERE limited_until IS NOT NULL;
