-- What was sent to whom, so that nobody gets it twice. A target is a name of ours, not its URL.

-- +goose Up
CREATE TABLE notifications (
    id               INTEGER PRIMARY KEY AUTOINCREMENT,
    notification_key TEXT    NOT NULL,
    target           TEXT    NOT NULL,
    sent_at          INTEGER NOT NULL,                  -- milliseconds since 1970, UTC
    UNIQUE (notification_key, target)
) STRICT;
