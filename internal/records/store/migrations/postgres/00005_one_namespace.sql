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
    trusted_at BIGINT NOT NULL,                                  -- milliseconds since 1970, UTC
    jumped_at  BIGINT                                            -- of a clock that is far ahead of trusted_at, when it was first seen; NULL: of none
);
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

-- A dropped column takes the keys and indexes along that contain it.
ALTER TABLE incident_chains DROP COLUMN namespace_id;
ALTER TABLE incident_chains ADD UNIQUE (incident_id, chain_id, first_run_id);
CREATE INDEX incident_chains_chain_id ON incident_chains (chain_id, first_run_id, incident_id);
ALTER TABLE notifications DROP COLUMN namespace_id;
ALTER TABLE notifications ADD UNIQUE (notification_key, target);
ALTER TABLE talk_turns DROP COLUMN namespace_id;
ALTER TABLE talk_turns ADD UNIQUE (conversation_id, turn);
ALTER TABLE talk_turns ADD UNIQUE (message_id, conversation_id);
CREATE INDEX talk_turns_received_at ON talk_turns (received_at, conversation_id, turn);
ALTER TABLE talk_confirmations DROP COLUMN namespace_id;
ALTER TABLE talk_confirmations ADD UNIQUE (conversation_id, turn, proposal);

ALTER TABLE sessions DROP CONSTRAINT sessions_chain_id_namespace_id_sequence_key;
UPDATE sessions SET sequence = numbered.number FROM (
    SELECT id, ROW_NUMBER() OVER (PARTITION BY chain_id ORDER BY id) AS number FROM sessions
) AS numbered
WHERE numbered.id = sessions.id AND chain_id IN (
    SELECT chain_id FROM sessions GROUP BY chain_id HAVING COUNT(DISTINCT namespace_id) > 1
);
ALTER TABLE sessions DROP COLUMN namespace;
ALTER TABLE sessions DROP COLUMN namespace_id;
ALTER TABLE sessions ADD UNIQUE (chain_id, sequence);
