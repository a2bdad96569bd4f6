// Package api is the API of the HTTP server, below /api/v1, and its client. It reads a request, calls
// internal/desk/operations, and writes the result. One description of a route serves both sides, and the OpenAPI
// document is made from its Go types. The API has no state of its own.
package api
