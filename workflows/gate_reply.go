package workflows

import (
	"fmt"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plaintext"
)

// GateReply is an escalation.GateAnswer as it arrives, by update or by signal.
type GateReply struct {
	escalation.GateAnswer

	// problem is the error of decoding the JSON. The SDK would drop a signal without a trace.
	problem error
}

// UnmarshalJSON reads the payload strictly. It returns no error: the check of the reply reports what is wrong.
func (r *GateReply) UnmarshalJSON(data []byte) error {
	*r = GateReply{}
	r.problem = decodeStrictly(data, &r.GateAnswer)
	return nil
}

// DescribeRefusedReply describes who answered what, and why it did not count.
func DescribeRefusedReply(reply GateReply, why error) string {
	const most = 60 // characters of what somebody has typed
	short := func(text string) string { return plaintext.Cut(text, most) }
	return clip(fmt.Sprintf("%s of %q by %q at %q is refused: %s",
		ResolveGate, short(string(reply.Action)), short(reply.Actor), short(reply.GateID), why))
}
