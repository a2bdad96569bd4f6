-- +goose Up
ALTER TABLE talk_turns ADD COLUMN cost_estimated INTEGER NOT NULL DEFAULT 0 CHECK (cost_estimated IN (0, 1)); -- whether a part of cost_usd is an estimate
