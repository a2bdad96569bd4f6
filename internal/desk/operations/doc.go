// Package operations does what people ask for: it starts, lists, shows, escalates and cancels chains, answers gates,
// closes incidents, and manages schedules. Every front end (the command line, the pages, the API) calls it, so that all
// of them decide alike and show the same numbers. A front end parses its input and prints the result, and decides
// nothing itself.
//
// Operations are grouped by their subject: Chains, Gates, Incidents, Services, Schedules, Conversations, Costs. Each
// group connects to Temporal and opens the records when it first needs them.
//
// The texts that operations return can contain words of agents. Their secrets are masked. A front end makes them safe
// for its medium.
package operations
