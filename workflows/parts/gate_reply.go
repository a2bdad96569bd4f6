package parts

import (
	"fmt"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plaintext"
)

// GateReply is an escalation.GateAnswer that arrived by update or signal.
type GateReply struct {
	escalation.GateAnswer

	// problem is the error from decoding the JSON. The SDK would drop an undecodable signal silently. So UnmarshalJSON
	// stores the error here, and Gates.check returns the error.
	problem error
}

// UnmarshalJSON refuses unknown fields. It stores a decoding error in the problem field and returns nil. The method
// Gates.check returns the stored error.
func (r *GateReply) UnmarshalJSON(data []byte) error {
	*r = GateReply{}
	r.problem = DecodeStrictly(data, &r.GateAnswer)
	return nil
}

// DescribeRefusedReply describes a refused reply: its action, actor and gate, and the reason for the refusal.
func DescribeRefusedReply(reply GateReply, why error) string {
	const most = 60 // characters of each field that a person has typed
	short := func(text string) string { return plaintext.Cut(text, most) }
	return Clip(fmt.Sprintf("%s of %q by %q at %q is refused: %s",
		ResolveGate, short(string(reply.Action)), short(reply.Actor), short(reply.GateID), why))
}
