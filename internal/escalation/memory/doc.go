// Package memory holds the rules about memories: what may be remembered, who must confirm it, and which memories a
// prompt gets. All functions are pure. Package store keeps the memories.
//
//	proposed by a verdict or a reply           added by a person
//	             │                                     │
//	             ▼                                     ▼
//	        candidate ── confirmed by a person ──► confirmed ──► prompts
//	             │    └─ or by a second incident ──►   │
//	             └────────── deleted by a person ──────┴──► deleted
//
// A candidate reaches no prompt. Whoever can write into a log can make an agent propose something: so a memory that
// would make agents less careful needs a person (see Caution), and a deleted memory that is proposed again stays
// deleted.
package memory
