-- STRICT makes SQLite hold columns to their types, as other databases do.
-- AUTOINCREMENT makes sure that a number is never given out twice.
-- There is no way down: records of what was paid for are not dropped by a downgrade.

-- +goose Up
CREATE TABLE sessions (
    id                    INTEGER PRIMARY KEY AUTOINCREMENT,
    parent_session_id     INTEGER REFERENCES sessions (id),
    chain_id              TEXT    NOT NULL,
    sequence              INTEGER NOT NULL CHECK (sequence > 0),
    session_id            TEXT    NOT NULL UNIQUE,
    tier                  INTEGER NOT NULL,
    model                 TEXT    NOT NULL,
    trigger               TEXT    NOT NULL,
    continuity            TEXT    NOT NULL,
    continuity_reason     TEXT    NOT NULL,
    started_at            INTEGER NOT NULL,             -- milliseconds since 1970, UTC
    ended_at              INTEGER,
    status                TEXT    NOT NULL,
    cost_usd              REAL    NOT NULL,
    cost_estimated        INTEGER NOT NULL CHECK (cost_estimated IN (0, 1)),
    reported_total_usd    REAL    NOT NULL,
    input_tokens          INTEGER NOT NULL,
    output_tokens         INTEGER NOT NULL,
    cache_read_tokens     INTEGER NOT NULL,
    cache_creation_tokens INTEGER NOT NULL,
    context_tokens        INTEGER NOT NULL,
    context_window        INTEGER NOT NULL,
    turns                 INTEGER NOT NULL,
    duration_ms           INTEGER NOT NULL,
    reported_session_id   TEXT    NOT NULL,
    cli_version           TEXT    NOT NULL,
    attempts              INTEGER NOT NULL,
    host                  TEXT    NOT NULL,
    verdict               TEXT,                         -- a JSON object
    services              TEXT    NOT NULL,             -- a JSON list, copied from the verdict
    error                 TEXT    NOT NULL,
    UNIQUE (chain_id, sequence)
) STRICT;

CREATE INDEX sessions_parent_session_id ON sessions (parent_session_id);
CREATE INDEX sessions_started_at ON sessions (started_at);
CREATE INDEX sessions_model ON sessions (model, id);
CREATE INDEX sessions_status ON sessions (status, id);

CREATE TABLE replaced_reports (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id TEXT    NOT NULL REFERENCES sessions (session_id),
    ended_at   INTEGER NOT NULL,
    report     TEXT    NOT NULL                         -- a JSON object
) STRICT;

CREATE INDEX replaced_reports_session_id ON replaced_reports (session_id);

CREATE TABLE events (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    event_key   TEXT    NOT NULL UNIQUE,
    chain_id    TEXT    NOT NULL,
    session_id  TEXT    NOT NULL,                       -- empty: about the chain itself
    kind        TEXT    NOT NULL,
    severity    TEXT    NOT NULL,
    message     TEXT    NOT NULL,
    occurred_at INTEGER NOT NULL
) STRICT;

CREATE INDEX events_chain_id ON events (chain_id, id);
