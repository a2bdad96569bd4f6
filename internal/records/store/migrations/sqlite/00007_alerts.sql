-- +goose Up
-- Alerts of monitoring systems, each from its first firing until it fires anew after its end.
CREATE TABLE alerts (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    source      TEXT    NOT NULL,                       -- the name of the source in the services file
    identity    TEXT    NOT NULL,                       -- tells the alerts of a source apart
    starts_at   INTEGER NOT NULL,                       -- milliseconds since 1970, UTC; of a source without starts, of the first delivery
    name        TEXT    NOT NULL,
    status      TEXT    NOT NULL,
    severity    TEXT    NOT NULL,
    labels      TEXT    NOT NULL,                       -- a JSON object
    annotations TEXT    NOT NULL,                       -- a JSON object
    service_key TEXT    NOT NULL,
    service     TEXT    NOT NULL,                       -- empty: none
    max_tier    INTEGER NOT NULL,                       -- 0: that of the configuration
    outcome     TEXT    NOT NULL,
    reason      TEXT    NOT NULL,
    chain_id    TEXT    NOT NULL,
    first_at    INTEGER NOT NULL,                       -- of the first delivery
    last_at     INTEGER NOT NULL,
    received    INTEGER NOT NULL,
    due_at      INTEGER,                                -- when a chain may start; NULL: it does not wait
    looked_at   INTEGER,                                -- when a chain was started or has taken it
    resolved_at INTEGER,                                -- when the source said so
    check_due   INTEGER NOT NULL CHECK (check_due IN (0, 1)),
    UNIQUE (source, identity, starts_at)
) STRICT;
CREATE INDEX alerts_due_at ON alerts (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX alerts_check_due ON alerts (id) WHERE check_due = 1;
CREATE INDEX alerts_chain_id ON alerts (chain_id);
CREATE INDEX alerts_last_at ON alerts (last_at);

-- Chains that were started for alerts, or that have taken one.
CREATE TABLE alert_chains (
    chain_id    TEXT    NOT NULL PRIMARY KEY,
    service_key TEXT    NOT NULL,
    service     TEXT    NOT NULL,
    max_tier    INTEGER NOT NULL,
    planned_at  INTEGER,                                -- counts for the limits; NULL: something else has started it
    started_at  INTEGER,                                -- NULL: Temporal does not have it yet
    ended_at    INTEGER                                 -- NULL: it runs, as far as is known
) STRICT;
CREATE INDEX alert_chains_planned_at ON alert_chains (planned_at) WHERE planned_at IS NOT NULL;
CREATE INDEX alert_chains_open ON alert_chains (service_key) WHERE ended_at IS NULL;
