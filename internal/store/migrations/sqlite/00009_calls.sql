-- What the guard decided on the calls of agents, and which call an action was charged for; empty for what only
-- a verdict tells.

-- +goose Up
ALTER TABLE ledger ADD COLUMN call_id TEXT NOT NULL DEFAULT '';

CREATE TABLE calls (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    chain_id   TEXT    NOT NULL,
    session_id TEXT    NOT NULL,
    call_id    TEXT    NOT NULL,
    tier       INTEGER NOT NULL,
    decided_at INTEGER NOT NULL,                        -- milliseconds since 1970, UTC
    tool       TEXT    NOT NULL,
    input      TEXT    NOT NULL,                        -- JSON, or the beginning of it
    allowed    INTEGER NOT NULL CHECK (allowed IN (0, 1)),
    rule       TEXT    NOT NULL,
    reason     TEXT    NOT NULL,
    actions    TEXT,                                    -- a JSON list
    UNIQUE (session_id, call_id)
) STRICT;

CREATE INDEX calls_chain_id ON calls (chain_id, id);
