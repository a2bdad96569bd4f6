-- +goose Up
ALTER TABLE incidents ADD COLUMN acknowledged TEXT COLLATE "C"; -- a JSON object: by whom, when, until when; NULL: by nobody
