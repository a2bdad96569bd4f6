-- +goose Up
ALTER TABLE sessions ADD COLUMN limited_model TEXT NOT NULL DEFAULT ''; -- the models that the account's limit concerns; empty: all
