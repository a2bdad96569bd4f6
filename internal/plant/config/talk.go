package config

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/prompts"
)

// Talk holds the settings of conversations.
type Talk struct {
	Model        string        `env:"TALK_MODEL" desc:"The model of conversations (claudeops talk), by its name for the CLI. haiku is cheaper, and understands less of what was said before."`
	Timeout      time.Duration `env:"TALK_TIMEOUT" desc:"Wall-clock limit of one turn of a conversation."`
	BudgetUSD    float64       `env:"TALK_BUDGET_USD" desc:"Budget of one turn of a conversation, in US dollars; 0: no cap. CLAUDEOPS_DAY_BUDGET_USD counts it, too."`
	PerPerson    int           `env:"TALKS_PER_PERSON" desc:"Number of conversations in which one person is answered at the same time; others wait. 0: no limit. Users of a chat client that share a token are one person."`
	IdentityFile string        `env:"IDENTITY_FILE" desc:"Absolute path of a text that says who answers in conversations, of at most 4000 characters, read at the worker's start like the two below. A conversation keeps the text with which it began."`
	SoulFile     string        `env:"SOUL_FILE" desc:"Absolute path of a text that says how to behave in conversations, of at most 8000 characters."`
	UserFile     string        `env:"USER_FILE" desc:"Absolute path of a text about the people who talk, of at most 8000 characters."`
	// Persona holds the content of the three files.
	Persona prompts.Persona `env:"-"`
}

// maxIdentity limits the file of the identity, in characters.
const maxIdentity = 4_000

// load reads the files of the persona.
func (t *Talk) load(p *problems) {
	for _, file := range []struct {
		name, path string
		limit      int
		text       *string
	}{
		{"IDENTITY_FILE", t.IdentityFile, maxIdentity, &t.Persona.Identity},
		{"SOUL_FILE", t.SoulFile, MaxInstructions, &t.Persona.Soul},
		{"USER_FILE", t.UserFile, MaxInstructions, &t.Persona.User},
	} {
		if file.path == "" {
			continue
		}
		text, err := ReadInstructions(file.path)
		if length := utf8.RuneCountInString(text); err == nil && length > file.limit {
			err = fmt.Errorf("%s has %d characters, and at most %d are allowed", file.path, length, file.limit)
		}
		p.must(file.name, err == nil, "name a text that can be used: %s", errorText(err))
		*file.text = strings.TrimSpace(text)
	}
}

func (t *Talk) validate(p *problems) {
	p.must("TALK_MODEL", isWord(t.Model) && !strings.HasPrefix(t.Model, "-"), "be the name of a model, without spaces")
	p.must("TALK_TIMEOUT", t.Timeout > 0, positive)
	p.must("TALK_BUDGET_USD", isBudget(t.BudgetUSD), noCap)
	p.must("TALKS_PER_PERSON", t.PerPerson >= 0, "be at least 1, or 0 for no limit")
}

// TalkPolicy returns the policy for a turn of a conversation. A turn has the tools and the permissions of Tier 1, its
// own model and budget, and no budget of a chain.
func (c Config) TalkPolicy() escalation.Policy {
	tier := c.Tiers.Tier1.policy()
	tier.Model, tier.BudgetUSD = c.Talk.Model, c.Talk.BudgetUSD
	tier.Timeout = escalation.Duration(c.Talk.Timeout)
	return escalation.Policy{
		Tiers: []escalation.TierPolicy{tier}, MaxTier: escalation.TierObserve,
		ResumeThreshold: c.Chain.ResumeThreshold, ResumeMaxTokens: c.Chain.ResumeMaxTokens,
		DayBudgetUSD: c.Limits.DayBudgetUSD, Heartbeat: escalation.Duration(c.Worker.HeartbeatInterval),
		Encrypted: c.Encryption.Keys != nil, TalksPerPerson: c.Talk.PerPerson,
	}
}
