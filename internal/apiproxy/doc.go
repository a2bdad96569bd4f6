// Package apiproxy keeps the credentials of the model's API with the worker. It serves the Messages API on
// loopback. Each session gets a key of its own, which is valid while the session runs, for the models of its
// tier and up to its budget. The proxy passes a call on with the worker's credentials, streams the answer, and
// counts what the call used.
//
//	agent -> session key -> route, model, budget -> upstream with the worker's credentials -> usage -> agent
//
// A refused call never reaches the upstream. Every answer of the upstream, errors included, reaches the agent
// unchanged.
package apiproxy
