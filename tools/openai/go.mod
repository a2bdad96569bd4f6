// The official client of OpenAI's API, for a test of /v1/chat/completions. It has a module of its own, so that the modules
// that it needs do not decide about those of the worker.
module github.com/claudeops/claudeops/tools/openai

go 1.26.8

require github.com/openai/openai-go/v3 v3.98.0

require (
	github.com/coder/websocket v1.8.15 // indirect
	github.com/tidwall/gjson v1.20.0 // indirect
	github.com/tidwall/match v1.1.1 // indirect
	github.com/tidwall/pretty v1.2.1 // indirect
	github.com/tidwall/sjson v1.2.5 // indirect
)
