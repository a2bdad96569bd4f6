-- STRICT makes SQLite hold columns to their types, as other databases do.
-- AUTOINCREMENT makes sure that a number is never given out twice.
-- There is no way down: records of what was paid for are not dropped by a downgrade.

-- +goose Up
CREATE TABLE sessions (
    id                    INTEGER PRIMARY KEY AUTOINCREMENT,
    parent_session_id     INTEGER REFERENCES sessions (id),
    chain_id              TEXT    NOT NULL,
    first_run_id          TEXT    NOT NULL,             -- tells chains with the same workflow ID apart
    namespace             TEXT    NOT NULL,             -- the chain's Temporal namespace, by its name
    namespace_id          TEXT    NOT NULL,             -- Temporal's ID of it; no two clusters share one
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
    UNIQUE (chain_id, namespace_id, sequence)
) STRICT;

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

CREATE TABLE replaced_reports (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id TEXT    NOT NULL REFERENCES sessions (session_id),
    started_at INTEGER NOT NULL,                        -- copied from the session
    ended_at   INTEGER NOT NULL,
    cost_usd   REAL    NOT NULL,                        -- copied from the report
    cost_estimated INTEGER NOT NULL CHECK (cost_estimated IN (0, 1)), -- copied from the report
    report     TEXT    NOT NULL                         -- a JSON object
) STRICT;

CREATE INDEX replaced_reports_session_id ON replaced_reports (session_id);
CREATE INDEX replaced_reports_started_at ON replaced_reports (started_at);

-- What the sessions have cost whose records were removed as old. Reports and budgets count it.
CREATE TABLE removed_costs (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    quarter       INTEGER NOT NULL,                     -- quarters of an hour since 1970, UTC, in which the sessions started
    tier          INTEGER NOT NULL,
    model         TEXT    NOT NULL,
    trigger       TEXT    NOT NULL,
    conclusion    TEXT    NOT NULL,
    services      TEXT    NOT NULL,                     -- a JSON list
    sessions      INTEGER NOT NULL,
    usd           REAL    NOT NULL,                     -- with the replaced reports
    estimated_usd REAL    NOT NULL,                     -- the part of usd in reports that have an estimated cost
    unknown_usd   REAL    NOT NULL,                     -- what counts against budgets in addition
    UNIQUE (quarter, tier, model, trigger, conclusion, services)
) STRICT;

CREATE TABLE events (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    event_key    TEXT    NOT NULL UNIQUE,
    chain_id     TEXT    NOT NULL,
    first_run_id TEXT    NOT NULL,                      -- tells chains with the same workflow ID apart; empty: not known
    namespace_id TEXT    NOT NULL,
    session_id   TEXT    NOT NULL,                      -- empty: about the chain itself
    kind         TEXT    NOT NULL,
    severity     TEXT    NOT NULL,
    message      TEXT    NOT NULL,
    occurred_at  INTEGER NOT NULL
) STRICT;

CREATE INDEX events_chain_id ON events (chain_id, id);
CREATE INDEX events_kind ON events (kind, occurred_at);

-- What was done to services, by which cooldowns are reckoned.
CREATE TABLE ledger (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    service_key TEXT   NOT NULL,                        -- the name in the form in which names are compared
    service    TEXT    NOT NULL,
    kind       TEXT    NOT NULL,
    position   INTEGER NOT NULL CHECK (position > 0),   -- among the session's actions of that kind on that service
    at         INTEGER NOT NULL,                        -- milliseconds since 1970, UTC
    chain_id   TEXT    NOT NULL,
    session_id TEXT    NOT NULL REFERENCES sessions (session_id),
    call_id    TEXT    NOT NULL,                        -- the tool call that it was charged for; empty: only a verdict tells of it
    succeeded  INTEGER NOT NULL CHECK (succeeded IN (0, 1)),
    UNIQUE (session_id, service, kind, position)
) STRICT;

CREATE INDEX ledger_at ON ledger (at);
CREATE INDEX ledger_service_key ON ledger (service_key, at);

-- Who works on which service now.
CREATE TABLE service_locks (
    service_key  TEXT    PRIMARY KEY NOT NULL,          -- the name in the form in which names are compared
    service      TEXT    NOT NULL,                      -- empty: all services, because the chain has named none
    chain_id     TEXT    NOT NULL,
    namespace    TEXT    NOT NULL,
    namespace_id TEXT    NOT NULL,
    since        INTEGER NOT NULL                       -- milliseconds since 1970, UTC
) STRICT;

CREATE INDEX service_locks_chain_id ON service_locks (chain_id);

-- When a worker of each Temporal namespace last ran.
CREATE TABLE namespaces (
    id      TEXT    PRIMARY KEY NOT NULL,
    name    TEXT    NOT NULL,
    host    TEXT    NOT NULL,                           -- of the worker that reported last
    seen_at INTEGER NOT NULL                            -- milliseconds since 1970, UTC, by the worker's clock
) STRICT;

-- What a worker of each Temporal namespace took for the time when it last looked for old records.
CREATE TABLE clocks (
    namespace_id TEXT    PRIMARY KEY NOT NULL,
    trusted_at   INTEGER NOT NULL,                      -- milliseconds since 1970, UTC
    jumped_at    INTEGER                                -- of a clock that is far ahead of trusted_at, when it was first seen; NULL: of none
) STRICT;

-- How often a namespace has swept since another one last reported.
CREATE TABLE absences (
    namespace_id TEXT    NOT NULL,
    observer_id  TEXT    NOT NULL,                      -- the namespace that has swept
    sweeps       INTEGER NOT NULL,
    PRIMARY KEY (namespace_id, observer_id)
) STRICT;

-- One fault of one or more services, from its first sight to its end.
CREATE TABLE incidents (
    id               INTEGER PRIMARY KEY AUTOINCREMENT,
    services         TEXT    NOT NULL,                  -- a JSON list
    kind             TEXT    NOT NULL,                  -- empty: no verdict has named one
    summary          TEXT    NOT NULL,
    severity         TEXT    NOT NULL,
    opened_at        INTEGER NOT NULL,                  -- milliseconds since 1970, UTC, as all times
    last_seen_at     INTEGER NOT NULL,
    returned_at      INTEGER,
    worse_at         INTEGER,
    resolved_at      INTEGER,                           -- NULL: not resolved
    resolved_by      TEXT    NOT NULL,                  -- a chain or a person
    resolved_verified INTEGER NOT NULL CHECK (resolved_verified IN (0, 1)), -- the person had logged in under this name
    resolved_reason  TEXT    NOT NULL,                  -- a person's words; empty: none were given
    resolved_session TEXT    NOT NULL,                  -- the conversation whose verdict resolved it; empty: a person did
    resolution       TEXT    NOT NULL,
    returned         INTEGER NOT NULL,
    returns          TEXT                               -- a JSON list of the times at which it came back after a repair
) STRICT;

CREATE INDEX incidents_resolved_at ON incidents (resolved_at, id);
CREATE INDEX incidents_resolved_session ON incidents (resolved_session);

-- What chains do about incidents.
CREATE TABLE incident_chains (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    incident_id INTEGER NOT NULL REFERENCES incidents (id),
    chain_id    TEXT    NOT NULL,
    namespace_id TEXT   NOT NULL,
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
    UNIQUE (incident_id, chain_id, namespace_id, first_run_id)
) STRICT;

CREATE INDEX incident_chains_chain_id ON incident_chains (chain_id, namespace_id, first_run_id, incident_id);
CREATE INDEX incident_chains_status ON incident_chains (status, chain_id);

-- What was sent to whom, so that nobody gets it twice. A target is a name of ours, not its URL.
CREATE TABLE notifications (
    id               INTEGER PRIMARY KEY AUTOINCREMENT,
    notification_key TEXT    NOT NULL,
    namespace_id     TEXT    NOT NULL,                  -- schedules of two namespaces may have one ID, and keys contain it
    target           TEXT    NOT NULL,
    sent_at          INTEGER NOT NULL,                  -- milliseconds since 1970, UTC
    UNIQUE (notification_key, namespace_id, target)
) STRICT;

-- What the guard decided on the calls of agents.
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

-- Which worker does what only one worker may do at a time, and until when.
CREATE TABLE duties (
    name   TEXT    PRIMARY KEY NOT NULL,
    holder TEXT    NOT NULL,
    until  INTEGER NOT NULL                             -- milliseconds since 1970, UTC, by the holder's clock
) STRICT;

-- What agents and people have learned. A row is the sum of the acts in memory_sources.
CREATE TABLE memories (
    id                    INTEGER PRIMARY KEY AUTOINCREMENT,
    kind                  TEXT    NOT NULL,
    service_key           TEXT    NOT NULL,             -- the name in the form in which names are compared
    service               TEXT    NOT NULL,             -- empty: about all services
    subject               TEXT    NOT NULL,
    text                  TEXT    NOT NULL,
    words                 TEXT    NOT NULL,             -- by which it is found
    status                TEXT    NOT NULL,
    trust                 TEXT    NOT NULL,
    decided_by            TEXT    NOT NULL,             -- the person who confirmed or deleted it; empty: no person did
    decided_at            INTEGER,
    revision              INTEGER NOT NULL,             -- counts what people did with it, from 1
    created_at            INTEGER NOT NULL,             -- milliseconds since 1970, UTC, as all times
    uses                  INTEGER NOT NULL,
    last_used_at          INTEGER
) STRICT;

CREATE INDEX memories_service_key ON memories (service_key, kind);
CREATE INDEX memories_status ON memories (status, id);

-- Full text search over memories. The triggers keep it like the table.
CREATE VIRTUAL TABLE memories_search USING fts5 (words, content = 'memories', content_rowid = 'id', tokenize = 'unicode61 remove_diacritics 0');
-- +goose StatementBegin
CREATE TRIGGER memories_inserted AFTER INSERT ON memories BEGIN
    INSERT INTO memories_search (rowid, words) VALUES (new.id, new.words);
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER memories_deleted AFTER DELETE ON memories BEGIN
    INSERT INTO memories_search (memories_search, rowid, words) VALUES ('delete', old.id, old.words);
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER memories_updated AFTER UPDATE OF words ON memories BEGIN
    INSERT INTO memories_search (memories_search, rowid, words) VALUES ('delete', old.id, old.words);
    INSERT INTO memories_search (rowid, words) VALUES (new.id, new.words);
END;
-- +goose StatementEnd

-- What people and sessions did with memories.
CREATE TABLE memory_sources (
    id                    INTEGER PRIMARY KEY AUTOINCREMENT,
    memory_id             INTEGER NOT NULL REFERENCES memories (id),
    act                   TEXT    NOT NULL,
    trust                 TEXT    NOT NULL,
    at                    INTEGER NOT NULL,
    person                TEXT    NOT NULL,             -- empty: a session did it
    chain_id              TEXT    NOT NULL,
    namespace_id          TEXT    NOT NULL,
    session_id            TEXT    NOT NULL,
    incidents             TEXT,                         -- a JSON list of IDs
    text                  TEXT    NOT NULL              -- of the memory, after the act
) STRICT;

CREATE INDEX memory_sources_memory_id ON memory_sources (memory_id, id);

-- Which session's prompt had which memory.
CREATE TABLE memory_uses (
    id                    INTEGER PRIMARY KEY AUTOINCREMENT,
    memory_id             INTEGER NOT NULL REFERENCES memories (id),
    revision              INTEGER NOT NULL,             -- of the memory, when the session read it
    chain_id              TEXT    NOT NULL,
    namespace_id          TEXT    NOT NULL,
    first_run_id          TEXT    NOT NULL,
    session_id            TEXT    NOT NULL,
    at                    INTEGER NOT NULL,
    UNIQUE (memory_id, session_id)
) STRICT;

CREATE INDEX memory_uses_chain_id ON memory_uses (chain_id, namespace_id, first_run_id);
CREATE INDEX memory_uses_session_id ON memory_uses (session_id);

-- What people and the supervisor say to each other in conversations, by turns.
CREATE TABLE talk_turns (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    conversation_id TEXT    NOT NULL,                   -- its workflow ID
    namespace_id    TEXT    NOT NULL,
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
    UNIQUE (conversation_id, turn, namespace_id),
    UNIQUE (message_id, conversation_id, namespace_id)
) STRICT;

CREATE INDEX talk_turns_received_at ON talk_turns (received_at, conversation_id, turn, namespace_id);
CREATE INDEX talk_turns_message_key ON talk_turns (conversation_id, message_key, turn);
CREATE INDEX talk_turns_session_id ON talk_turns (session_id);

-- Which proposals of replies people have confirmed.
CREATE TABLE talk_confirmations (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    conversation_id TEXT    NOT NULL,
    namespace_id    TEXT    NOT NULL,
    turn            INTEGER NOT NULL,
    proposal        INTEGER NOT NULL,                   -- its number in the reply, from 1
    actor           TEXT    NOT NULL,
    confirmed_at    INTEGER NOT NULL,
    result          TEXT    NOT NULL,                   -- empty: it is being done
    UNIQUE (conversation_id, namespace_id, turn, proposal)
) STRICT;
