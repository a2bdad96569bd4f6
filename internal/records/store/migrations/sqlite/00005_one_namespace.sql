-- A database belongs to one Temporal namespace, so its records do not name theirs. Records of several namespaces stay, as those of
-- chains that began one after the other under one ID.

-- +goose Up
-- The namespace whose records these are: at most one row, unless workers of several have shared the database until now. A namespace that
-- was three days behind another one counted as gone.
ALTER TABLE namespaces DROP COLUMN host;
DELETE FROM namespaces WHERE seen_at < (SELECT MAX(seen_at) FROM namespaces) - 259200000;
DROP TABLE absences;

-- What a worker took for the time when it last looked for old records: at most one row.
CREATE TABLE clock (
    trusted_at INTEGER NOT NULL,                        -- milliseconds since 1970, UTC
    jumped_at  INTEGER                                  -- of a clock that is far ahead of trusted_at, when it was first seen; NULL: of none
) STRICT;
INSERT INTO clock (trusted_at, jumped_at) SELECT trusted_at, jumped_at FROM clocks ORDER BY trusted_at DESC LIMIT 1;
DROP TABLE clocks;

-- Of conversations with one ID only the one that was used last stays.
DELETE FROM talk_turns WHERE conversation_id IN (
    SELECT conversation_id FROM talk_turns GROUP BY conversation_id HAVING COUNT(DISTINCT namespace_id) > 1
) AND namespace_id <> (
    SELECT latest.namespace_id FROM talk_turns AS latest WHERE latest.conversation_id = talk_turns.conversation_id
    ORDER BY latest.received_at DESC, latest.id DESC LIMIT 1
);
DELETE FROM talk_confirmations WHERE NOT EXISTS (
    SELECT 1 FROM talk_turns WHERE talk_turns.conversation_id = talk_confirmations.conversation_id
        AND talk_turns.namespace_id = talk_confirmations.namespace_id AND talk_turns.turn = talk_confirmations.turn
);
DELETE FROM notifications WHERE EXISTS (
    SELECT 1 FROM notifications AS other WHERE other.notification_key = notifications.notification_key
        AND other.target = notifications.target AND other.id > notifications.id
);
DELETE FROM incident_chains WHERE EXISTS (
    SELECT 1 FROM incident_chains AS other WHERE other.incident_id = incident_chains.incident_id
        AND other.chain_id = incident_chains.chain_id AND other.first_run_id = incident_chains.first_run_id
        AND other.id > incident_chains.id
);

ALTER TABLE events DROP COLUMN namespace_id;
ALTER TABLE service_locks DROP COLUMN namespace;
ALTER TABLE service_locks DROP COLUMN namespace_id;
ALTER TABLE memory_sources DROP COLUMN namespace_id;
DROP INDEX memory_uses_chain_id;
ALTER TABLE memory_uses DROP COLUMN namespace_id;
CREATE INDEX memory_uses_chain_id ON memory_uses (chain_id, first_run_id);

-- SQLite cannot drop a column of a key, so these tables are written anew. They go on with the numbers that they have given out.
CREATE TABLE old_numbers AS SELECT name, seq FROM sqlite_sequence;
CREATE TABLE new_incident_chains (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    incident_id INTEGER NOT NULL REFERENCES incidents (id),
    chain_id    TEXT    NOT NULL,
    first_run_id TEXT   NOT NULL,                       -- tells chains with the same workflow ID apart
    status      TEXT    NOT NULL,
    rule        TEXT    NOT NULL,
    reason      TEXT    NOT NULL,
    until       INTEGER,
    outcome     TEXT    NOT NULL,
    at          INTEGER NOT NULL,                       -- of the status
    max_tier    INTEGER NOT NULL,                       -- the highest that the chain's policy allowed; 0: not recorded
    dry_run     INTEGER NOT NULL CHECK (dry_run IN (0, 1)),
    tier        INTEGER NOT NULL,                       -- the highest that may have changed something; 0: none
    did         TEXT    NOT NULL,
    since       INTEGER NOT NULL,
    UNIQUE (incident_id, chain_id, first_run_id)
) STRICT;
INSERT INTO new_incident_chains (
    id, incident_id, chain_id, first_run_id, status, rule, reason, until, outcome, at, max_tier, dry_run, tier, did, since
) SELECT
    id, incident_id, chain_id, first_run_id, status, rule, reason, until, outcome, at, max_tier, dry_run, tier, did, since
FROM incident_chains;
DROP TABLE incident_chains;
ALTER TABLE new_incident_chains RENAME TO incident_chains;
CREATE INDEX incident_chains_chain_id ON incident_chains (chain_id, first_run_id, incident_id);
CREATE INDEX incident_chains_status ON incident_chains (status, chain_id);

CREATE TABLE new_notifications (
    id               INTEGER PRIMARY KEY AUTOINCREMENT,
    notification_key TEXT    NOT NULL,
    target           TEXT    NOT NULL,
    sent_at          INTEGER NOT NULL,                  -- milliseconds since 1970, UTC
    UNIQUE (notification_key, target)
) STRICT;
INSERT INTO new_notifications (
    id, notification_key, target, sent_at
) SELECT
    id, notification_key, target, sent_at
FROM notifications;
DROP TABLE notifications;
ALTER TABLE new_notifications RENAME TO notifications;

CREATE TABLE new_talk_turns (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    conversation_id TEXT    NOT NULL,                   -- its workflow ID
    turn            INTEGER NOT NULL CHECK (turn > 0),
    message_id      TEXT    NOT NULL,                   -- the sender's ID of the message
    message_key     TEXT    NOT NULL,                   -- of the message and what was said before it; empty: the client sends no history
    actor           TEXT    NOT NULL,
    message         TEXT    NOT NULL,
    after_turn      INTEGER,                            -- the turn whose answer the message follows; 0: none; NULL: the latest one
    received_at     INTEGER NOT NULL,                   -- milliseconds since 1970, UTC, as all times
    about           TEXT    NOT NULL,                   -- the chain from whose last session the conversation began; empty: none
    state           TEXT    NOT NULL,
    session_id      TEXT    NOT NULL,                   -- of its latest session; empty: none has begun
    context         TEXT    NOT NULL,                   -- what that session got in addition to the message
    seen_at         INTEGER,                            -- when the context was true
    reply           TEXT    NOT NULL,
    proposals       TEXT,                               -- a JSON list
    memories        TEXT,                               -- a JSON list
    report          TEXT,                               -- a JSON object: of the session that gave the reply; NULL: none
    note            TEXT    NOT NULL,                   -- what was lost and what was kept
    failure         TEXT    NOT NULL,                   -- why there is no reply
    cost_usd        REAL    NOT NULL,                   -- of all its sessions
    ended_at        INTEGER,
    cost_estimated  INTEGER NOT NULL CHECK (cost_estimated IN (0, 1)), -- whether a part of cost_usd is an estimate
    UNIQUE (conversation_id, turn),
    UNIQUE (message_id, conversation_id)
) STRICT;
INSERT INTO new_talk_turns (
    id, conversation_id, turn, message_id, message_key, actor, message, after_turn, received_at, about, state, session_id,
    context, seen_at, reply, proposals, memories, report, note, failure, cost_usd, cost_estimated, ended_at
) SELECT
    id, conversation_id, turn, message_id, message_key, actor, message, after_turn, received_at, about, state, session_id,
    context, seen_at, reply, proposals, memories, report, note, failure, cost_usd, cost_estimated, ended_at
FROM talk_turns;
DROP TABLE talk_turns;
ALTER TABLE new_talk_turns RENAME TO talk_turns;
CREATE INDEX talk_turns_received_at ON talk_turns (received_at, conversation_id, turn);
CREATE INDEX talk_turns_message_key ON talk_turns (conversation_id, message_key, turn);
CREATE INDEX talk_turns_session_id ON talk_turns (session_id);

CREATE TABLE new_talk_confirmations (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    conversation_id TEXT    NOT NULL,
    turn            INTEGER NOT NULL,
    proposal        INTEGER NOT NULL,                   -- its number in the reply, from 1
    actor           TEXT    NOT NULL,
    confirmed_at    INTEGER NOT NULL,
    result          TEXT    NOT NULL,                   -- empty: it is being done
    UNIQUE (conversation_id, turn, proposal)
) STRICT;
INSERT INTO new_talk_confirmations (
    id, conversation_id, turn, proposal, actor, confirmed_at, result
) SELECT
    id, conversation_id, turn, proposal, actor, confirmed_at, result
FROM talk_confirmations;
DROP TABLE talk_confirmations;
ALTER TABLE new_talk_confirmations RENAME TO talk_confirmations;

-- Other tables refer to sessions. Dropping it breaks their references, and each inserted row restores its own before the transaction ends.
PRAGMA defer_foreign_keys = ON;
CREATE TABLE old_sessions AS SELECT * FROM sessions;
UPDATE old_sessions SET sequence = numbered.number FROM (
    SELECT id, ROW_NUMBER() OVER (PARTITION BY chain_id ORDER BY id) AS number FROM old_sessions
) AS numbered
WHERE numbered.id = old_sessions.id AND chain_id IN (
    SELECT chain_id FROM old_sessions GROUP BY chain_id HAVING COUNT(DISTINCT namespace_id) > 1
);
DROP TABLE sessions;
CREATE TABLE sessions (
    id                    INTEGER PRIMARY KEY AUTOINCREMENT,
    parent_session_id     INTEGER REFERENCES sessions (id),
    chain_id              TEXT    NOT NULL,
    first_run_id          TEXT    NOT NULL,             -- tells chains with the same workflow ID apart
    sequence              INTEGER NOT NULL CHECK (sequence > 0),
    session_id            TEXT    NOT NULL UNIQUE,
    tier                  INTEGER NOT NULL,
    model                 TEXT    NOT NULL,
    trigger               TEXT    NOT NULL,
    continuity            TEXT    NOT NULL,
    continuity_reason     TEXT    NOT NULL,
    purpose               TEXT    NOT NULL,
    phase                 TEXT    NOT NULL,
    scope                 TEXT,                         -- a JSON list of services; NULL: not limited
    budget_usd            REAL    NOT NULL,             -- what was reserved for it
    forced                INTEGER NOT NULL CHECK (forced IN (0, 1)),
    dry_run               INTEGER NOT NULL CHECK (dry_run IN (0, 1)),
    has_request           INTEGER NOT NULL CHECK (has_request IN (0, 1)), -- 1: it was asked for something of its own
    started_at            INTEGER NOT NULL,             -- milliseconds since 1970, UTC
    started_day           INTEGER NOT NULL,             -- days since 1970, UTC, computed from started_at
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
    containment           TEXT    NOT NULL,             -- how its processes were held together
    sandbox               TEXT    NOT NULL,             -- what the kernel kept them from
    worktree              TEXT,                         -- a JSON object; NULL: it worked in the chain's directory
    survivors             INTEGER NOT NULL,             -- how many of them could not be ended
    interrupted           INTEGER NOT NULL CHECK (interrupted IN (0, 1)),
    attempts              INTEGER NOT NULL,
    host                  TEXT    NOT NULL,
    worker_version        TEXT    NOT NULL,
    verdict               TEXT,                         -- a JSON object
    services              TEXT    NOT NULL,             -- a JSON list, copied from the verdict
    conclusion            TEXT    NOT NULL,             -- the verdict's status, copied from it; empty: there is no verdict
    error                 TEXT    NOT NULL,
    ending                TEXT    NOT NULL,             -- why it has no result; empty: it has one
    limited_until         INTEGER,                      -- the end of the account's limit that it has met
    limited_model         TEXT    NOT NULL,             -- the models that the account's limit concerns; empty: all
    UNIQUE (chain_id, sequence)
) STRICT;
INSERT INTO sessions (
    id, parent_session_id, chain_id, first_run_id, sequence, session_id, tier, model, trigger, continuity, continuity_reason,
    purpose, phase, scope, budget_usd, forced, dry_run, has_request, started_at, started_day, ended_at, status, cost_usd,
    cost_estimated, reported_total_usd, input_tokens, output_tokens, cache_read_tokens, cache_creation_tokens, context_tokens,
    context_window, turns, duration_ms, reported_session_id, cli_version, containment, sandbox, worktree, survivors, interrupted,
    attempts, host, worker_version, verdict, services, conclusion, error, ending, limited_until, limited_model
) SELECT
    id, parent_session_id, chain_id, first_run_id, sequence, session_id, tier, model, trigger, continuity, continuity_reason,
    purpose, phase, scope, budget_usd, forced, dry_run, has_request, started_at, started_day, ended_at, status, cost_usd,
    cost_estimated, reported_total_usd, input_tokens, output_tokens, cache_read_tokens, cache_creation_tokens, context_tokens,
    context_window, turns, duration_ms, reported_session_id, cli_version, containment, sandbox, worktree, survivors, interrupted,
    attempts, host, worker_version, verdict, services, conclusion, error, ending, limited_until, limited_model
FROM old_sessions ORDER BY id;
DROP TABLE old_sessions;
CREATE INDEX sessions_parent_session_id ON sessions (parent_session_id);
CREATE INDEX sessions_started_at ON sessions (started_at);
-- Costs are added up from these two indexes alone, and without a sort: those of each kind, and those of each quarter of an hour.
CREATE INDEX sessions_started_day ON sessions (
    started_day, tier, model, trigger, conclusion, services, started_at, ended_at, cost_usd, cost_estimated, attempts, budget_usd
);
CREATE INDEX sessions_started_quarter ON sessions (
    (started_at / 900000), started_at, ended_at, cost_usd, cost_estimated, attempts, budget_usd
);
CREATE INDEX sessions_model ON sessions (model, id);
CREATE INDEX sessions_status ON sessions (status, id);
CREATE INDEX sessions_limited_until ON sessions (limited_until) WHERE limited_until IS NOT NULL;

DELETE FROM sqlite_sequence WHERE name IN (SELECT name FROM old_numbers);
INSERT INTO sqlite_sequence (name, seq) SELECT name, seq FROM old_numbers;
DROP TABLE old_numbers;
