// Package prompts holds what the supervisor says to agents, as templates that are
// rendered from typed values.
//
// A prompt is a row of sections, each a file beside this one:
//
//	complete   tierN.md          request.md  handoff.md  permissions.md          dryrun.md  rules.md  conclusion.md
//	resumed    resumed.md  tierN-resumed.md  request.md  permissions.md  dryrun.md  limits.md  statuses.md
//
// The complete form starts a conversation, from nothing or from a handoff. The resumed
// form goes on with one: it says what the tier may use, which replaces what was said before,
// and what else has changed. Without that list it stays under 500 tokens, because the
// conversation holds the rest; of one that is not known to be ours, limits.md assumes that
// it was told no rules. interrupted.md, repair.md and handoff-request.md are prompts on their
// own.
//
// An operator's file takes the place of tierN.md and of tierN-resumed.md. It is a
// template as well, over the same values (see view), and may test .Resumed. The other
// sections always follow, so that no override can lose the handoff, the limits or the
// verdict. Each file is rendered once when it is loaded.
//
// Text that did not come from these files (a request, a handoff, the input of a tool
// call) is fenced, so that it cannot be taken for a part of the prompt: see fence.
package prompts
