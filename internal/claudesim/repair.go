package claudesim

import "slices"

// The messages that the CLI adds to a resumed conversation.
const (
	resumeFiller   = "Continue from where you left off."
	noResponse     = "No response requested."
	outcomeUnknown = "[Tool call interrupted: the session ended before this call's result was recorded, so its outcome is unknown. " +
		"Check whether it took effect before relying on it or running it again.]"
)

// repair prepares a loaded conversation for the next prompt in the same way as the release r. If tool calls in the last
// message have no results, repair removes the calls or adds results, depending on the release. If the user wrote the
// last message, repair adds an answer.
func (c *conversation) repair(r release) {
	if len(c.messages) == 0 {
		return
	}
	last := &c.messages[len(c.messages)-1]
	if last.Role == RoleAssistant {
		c.repairCalls(last, r)
	}
	if c.messages[len(c.messages)-1].Role != RoleUser {
		return
	}
	if r.version == VersionOld && c.endsInToolResult() {
		c.addRepair(userText(resumeFiller))
	}
	c.addRepair(Message{Role: RoleAssistant, Blocks: []Block{{Type: BlockText, Text: noResponse}}})
}

// repairCalls handles the unanswered tool calls of the last message.
func (c *conversation) repairCalls(last *Message, r release) {
	isCall := func(b Block) bool { return b.Type == BlockToolUse }
	if !slices.ContainsFunc(last.Blocks, isCall) {
		return
	}
	if !r.keepsToolCall {
		last.Blocks = slices.DeleteFunc(slices.Clone(last.Blocks), isCall)
		if len(last.Blocks) == 0 {
			c.messages = c.messages[:len(c.messages)-1]
		}
		return
	}
	answer := Message{Role: RoleUser}
	for _, block := range last.Blocks {
		if isCall(block) {
			answer.Blocks = append(answer.Blocks, Block{Type: BlockToolResult, ID: block.ID, Text: outcomeUnknown, IsError: true})
		}
	}
	c.addRepair(answer)
}

func (c *conversation) endsInToolResult() bool {
	last := c.messages[len(c.messages)-1]
	return slices.ContainsFunc(last.Blocks, func(b Block) bool { return b.Type == BlockToolResult })
}

func (c *conversation) addRepair(m Message) {
	c.messages = append(c.messages, m)
	c.repairs = append(c.repairs, m)
}

func userText(text string) Message {
	return Message{Role: RoleUser, Blocks: []Block{{Type: BlockText, Text: text}}}
}
