// Package proxy forwards the agents' calls of the model's API, so that agents do not get the API's credentials. It
// serves the Messages API on loopback. Each session gets its own key. The key is valid while the session runs, for the
// models of the session's tier and up to the session's budget. The proxy forwards a call with the worker's credentials,
// streams the answer, and counts the usage.
//
//	agent -> session key -> route, model, budget -> upstream with the worker's credentials -> usage -> agent
//
// The upstream is the model's API. A call that the proxy refuses never reaches the upstream. Every answer of the
// upstream, errors included, reaches the agent unchanged.
package proxy
