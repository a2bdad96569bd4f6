// Package api is the API of the HTTP server, below /api/v1. It reads a request, calls internal/desk/operations, and writes the result.
// The OpenAPI document is made from the Go types. The API has no state of its own.
package api
