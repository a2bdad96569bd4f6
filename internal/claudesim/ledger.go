package claudesim

// ledger counts the usage of a process by model. It has one count since the start, and one count since the last result.
type ledger struct {
	release release
	// carried is the cost and usage of the conversation before this process.
	carried costState
	total   map[string]spent
	since   map[string]spent
	turn    Usage // since the last result, of all models
	last    Usage // of the last model call
}

// spent is the usage and cost of one model.
type spent struct {
	Usage
	costUSD float64
}

// costState is the transcript line with the cost of the conversation.
type costState struct {
	TotalCostUSD float64               `json:"totalCostUSD"`
	ModelUsage   map[string]modelUsage `json:"modelUsage,omitempty"`
}

// modelUsage is the usage of one model in a result, in the CLI's form.
type modelUsage struct {
	InputTokens         int     `json:"inputTokens"`
	OutputTokens        int     `json:"outputTokens"`
	CacheReadTokens     int     `json:"cacheReadInputTokens"`
	CacheCreationTokens int     `json:"cacheCreationInputTokens"`
	WebSearchRequests   int     `json:"webSearchRequests"`
	CostUSD             float64 `json:"costUSD"`
	ContextWindow       int     `json:"contextWindow,omitempty"`
	MaxOutputTokens     int     `json:"maxOutputTokens,omitempty"`
}

func newLedger(r release, carried costState) *ledger {
	return &ledger{release: r, carried: carried, total: map[string]spent{}, since: map[string]spent{}}
}

// add counts one model call.
func (l *ledger) add(m model, u Usage) {
	l.last = u
	l.turn = l.turn.plus(u, 1)
	for _, account := range []map[string]spent{l.total, l.since} {
		entry := account[m.id]
		entry.Usage = entry.plus(u, 1)
		entry.costUSD += m.price.cost(u)
		account[m.id] = entry
	}
}

// cutShort removes the last model call from the usage in the next result, but not its cost. The CLI also omits a call
// if it stops within the call's message.
func (l *ledger) cutShort() { l.turn = l.turn.plus(l.last, -1) }

func (u Usage) plus(other Usage, sign int) Usage {
	return Usage{
		Input: u.Input + sign*other.Input, Output: u.Output + sign*other.Output,
		CacheRead: u.CacheRead + sign*other.CacheRead, CacheCreation: u.CacheCreation + sign*other.CacheCreation,
	}
}

// own returns the cost of this process so far in US dollars.
func (l *ledger) own() float64 {
	sum := 0.0
	for _, entry := range l.total {
		sum += entry.costUSD
	}
	return sum
}

// takeSince returns the usage since the last result, and resets this usage.
func (l *ledger) takeSince() (byModel map[string]modelUsage, all Usage) {
	byModel, all = l.report(l.since, nil), l.turn
	l.since, l.turn = map[string]spent{}, Usage{}
	return byModel, all
}

// report converts the usage in accounts to the CLI's form, and adds the usage in carried.
func (l *ledger) report(accounts map[string]spent, carried map[string]modelUsage) map[string]modelUsage {
	report := map[string]modelUsage{}
	for id, usage := range carried {
		m := l.release.model(id)
		usage.ContextWindow, usage.MaxOutputTokens = m.window, m.maxOut
		report[id] = usage
	}
	for id, entry := range accounts {
		usage, m := report[id], l.release.model(id)
		usage.InputTokens += entry.Input
		usage.OutputTokens += entry.Output
		usage.CacheReadTokens += entry.CacheRead
		usage.CacheCreationTokens += entry.CacheCreation
		usage.CostUSD += entry.costUSD
		usage.ContextWindow, usage.MaxOutputTokens = m.window, m.maxOut
		report[id] = usage
	}
	return report
}

// totals returns the total cost and the usage by model. With CostCumulative they include the usage of the conversation
// before this process. An empty mode means CostCumulative.
func (l *ledger) totals(mode CostMode) costState {
	carried := costState{}
	if mode != CostPerProcess {
		carried = l.carried
	}
	return costState{
		TotalCostUSD: carried.TotalCostUSD + l.own(),
		ModelUsage:   l.report(l.total, carried.ModelUsage),
	}
}
