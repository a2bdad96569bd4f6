// Package review holds the rules for changes that one agent makes, the author, and another one reviews, the reviewer.
// All of it is pure: workflows call it.
//
//   - Loop.After decides what follows each step of the loop.
//   - ContinuationOf says whether a gate offers to continue a session of the loop.
//   - ParseDiff and Scope say what a change contains, and why a person must look at it.
//   - DecodeVerdict reads what a reviewer says.
//   - ParsePlan reads the phases of a plan, and Plan.Lost says what an author has removed from it.
//
// The loop:
//
//	execute ──► quality ──► review ──► approved
//	               │  ▲       │  ▲
//	               ▼  │       ▼  │
//	     quality_retry┘  auto_fix┘ (by way of quality)
//
// Every state can also lead to the gate, where a person decides. The reviewer reports, and these rules decide.
package review
