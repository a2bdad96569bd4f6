// Package systemtest tests a worker as a whole: chains, conversations and plans on a real Temporal server, with the
// stand-in for the claude CLI or the real one, and with real processes that are killed. What its tests share with
// others lies in the packages below.
package systemtest
