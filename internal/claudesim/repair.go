package claudesim

// The messages that the CLI adds to a resumed conversation.
const (
	noResponse     = "No response requested."
	outcomeUnknown = "[Tool call interrupted: the session ended before this call's result was recorded, so its " +
		"outcome is unknown. Check whether it took effect before relying on it or running it again.]"
)

// repair prepares a loaded conversation for the next prompt in the same way as the CLI. If tool calls in the last
// message have no results, repair adds results. If the user wrote the last message, repair adds an answer.
func (c *conversation) repair() {
	if len(c.messages) == 0 {
		return
	}
	if last := c.messages[len(c.messages)-1]; last.Role == RoleAssistant {
		c.repairCalls(last)
	}
	if c.messages[len(c.messages)-1].Role == RoleUser {
		c.addRepair(Message{Role: RoleAssistant, Blocks: []Block{{Type: BlockText, Text: noResponse}}})
	}
}

// repairCalls adds results for the tool calls of the last message.
func (c *conversation) repairCalls(last Message) {
	answer := Message{Role: RoleUser}
	for _, block := range last.Blocks {
		if block.Type == BlockToolUse {
			answer.Blocks = append(answer.Blocks, Block{
				Type: BlockToolResult, ID: block.ID, Text: outcomeUnknown,
				IsError: true,
			})
		}
	}
	if answer.Blocks != nil {
		c.addRepair(answer)
	}
}

func (c *conversation) addRepair(m Message) {
	c.messages = append(c.messages, m)
	c.repairs = append(c.repairs, m)
}

func userText(text string) Message {
	return Message{Role: RoleUser, Blocks: []Block{{Type: BlockText, Text: text}}}
}
