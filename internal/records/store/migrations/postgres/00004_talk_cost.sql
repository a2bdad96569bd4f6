-- +goose Up
ALTER TABLE talk_turns ADD COLUMN cost_estimated BOOLEAN NOT NULL DEFAULT FALSE; -- whether a part of cost_usd is an estimate
