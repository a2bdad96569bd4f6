// Package prompts renders the prompts for agents. The prompts are templates over typed values.
//
// A prompt is a sequence of sections. Each section is a file in this directory:
//
//	complete   tierN.md  cutoff.md  request.md  incidents.md  known.md  handoff.md  permissions.md  dryrun.md  rules.md
//	           conclusion.md
//	resumed    resumed.md  tierN-resumed.md  cutoff.md  request.md  incidents.md  known.md  permissions.md  dryrun.md
//	           limits.md  statuses.md
//	continued  continued.md  left.md  cutoff.md  request.md
//
// The complete form starts a new conversation, with or without a handoff. The resumed form continues a conversation in
// another role. It lists the tools that the tier may use, and this list replaces all earlier lists. It also states all
// other changes of the role. Apart from the list of tools, the resumed form has fewer than 500 tokens, because the
// conversation contains the rest. If the conversation's tier is unknown, the supervisor may not have started the
// conversation, and limits.md repeats the most important rules. For a recheck, recheck.md replaces tierN-resumed.md.
// The continued form continues an interrupted session. interrupted.md, repair.md and handoff-request.md are separate
// prompts.
//
// An operator's file replaces tierN.md and tierN-resumed.md. The operator's file is a template over the same values
// (see view) and can test .Resumed. The other sections always follow. So an operator's file cannot omit the handoff,
// the limits or the verdict. Load renders each operator's file in the complete and the resumed form, to find errors
// early.
//
// All other text, such as a request, a handoff or the input of a tool call, is fenced (see fence), so that an agent
// cannot mistake such text for a part of the prompt.
package prompts
