-- What the admission of a session is decided by: what is reserved for it, what was done to
-- services, and who works on them now.

-- +goose Up
ALTER TABLE sessions ADD COLUMN purpose TEXT NOT NULL DEFAULT '';
ALTER TABLE sessions ADD COLUMN budget_usd REAL NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN forced INTEGER NOT NULL DEFAULT 0 CHECK (forced IN (0, 1));

ALTER TABLE replaced_reports ADD COLUMN cost_usd REAL NOT NULL DEFAULT 0; -- copied from the report
UPDATE replaced_reports SET cost_usd = json_extract(report, '$.cost_usd');

CREATE TABLE ledger (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    service    TEXT    NOT NULL,
    kind       TEXT    NOT NULL,
    position   INTEGER NOT NULL CHECK (position > 0),   -- among the session's actions of that kind on that service
    at         INTEGER NOT NULL,                        -- milliseconds since 1970, UTC
    chain_id   TEXT    NOT NULL,
    session_id TEXT    NOT NULL REFERENCES sessions (session_id),
    succeeded  INTEGER NOT NULL CHECK (succeeded IN (0, 1)),
    UNIQUE (session_id, service, kind, position)
) STRICT;

CREATE INDEX ledger_at ON ledger (at);
CREATE INDEX ledger_service_at ON ledger (service, at);

CREATE TABLE service_locks (
    service  TEXT    PRIMARY KEY NOT NULL,
    chain_id TEXT    NOT NULL,
    since    INTEGER NOT NULL                           -- milliseconds since 1970, UTC
) STRICT;

CREATE INDEX service_locks_chain_id ON service_locks (chain_id);
