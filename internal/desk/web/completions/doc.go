// Package completions lets clients of OpenAI's API hold conversations: it serves /v1/chat/completions and /v1/models.
//
// Such a client sends the whole history with each message and keeps no other state. The keys of the history's messages
// lead from it to a conversation and to the answer that the new message follows (place.go). Each request then waits for
// one turn (completions.go).
package completions
