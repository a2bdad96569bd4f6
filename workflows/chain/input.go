package chain

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/google/uuid"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plaintext"
	"github.com/claudeops/claudeops/workflows/parts"
)

// triggerPattern matches a valid trigger.
var triggerPattern = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,62}$`)

// Input is the input with which a client starts a chain. People write it as JSON. Every field is optional. An
// empty input starts a normal cycle.
type Input struct {
	// Trigger names the reason why the chain was started; "manual" if empty.
	Trigger escalation.Trigger `json:"trigger,omitempty"`
	// StartTier is the first tier of the chain; 1 if 0.
	StartTier escalation.Tier `json:"start_tier,omitempty"`
	// Prompt holds the operator's request, in addition to the tier's own prompt.
	Prompt string `json:"prompt,omitempty"`
	// Issue describes the one problem that the chain must repair. The agent that found the problem wrote the text. If
	// a chain starts a child chain for each problem, it sets Issue in the input of each child chain.
	Issue string `json:"issue,omitempty"`
	// Alert describes the alerts that started the chain, as monitoring systems sent them. The first look gets the text
	// as data, because others write it.
	Alert string `json:"alert,omitempty"`
	// Services limits the chain to these services. If it is empty, the chain covers all services.
	Services []string `json:"services,omitempty"`
	// DryRun prevents escalation and keeps the agent read-only. If the configuration demands a dry run, the chain is
	// a dry run even if DryRun is false.
	DryRun bool `json:"dry_run,omitempty"`
	// MaxTier is the highest tier that the chain is permitted to run. It can lower the configured highest tier, but
	// not raise it. If MaxTier is 0, the configured highest tier applies.
	MaxTier escalation.Tier `json:"max_tier,omitempty"`
	// ResumeFrom is a conversation to start from.
	ResumeFrom *ResumeFrom `json:"resume_from,omitempty"`
	// Models replaces the configured models of some tiers. A key is a tier, and its value is the model, for example
	// {"2":"sonnet"}.
	Models map[escalation.Tier]string `json:"models,omitempty"`
	// Repository selects the agents' working directory. It is the path of a repository, or the last element of that
	// path. The workers' configuration lists the allowed repositories. If Repository is empty, agents work in the
	// default directory.
	Repository string `json:"repository,omitempty"`
	// BudgetUSD lowers the chain's spending limit to this amount, in US dollars. If it is 0, the configured budget
	// applies.
	BudgetUSD float64 `json:"budget_usd,omitempty"`
	// Force skips the cooldowns for the first tier.
	Force bool `json:"force,omitempty"`
	// Incidents holds the IDs of the incidents to work on; empty if none are known.
	Incidents []string `json:"incidents,omitempty"`
	// Ask makes the chain of an issue ask a person before it repairs anything. Only the parent chain is permitted to
	// set Ask.
	Ask *AskInput `json:"ask,omitempty"`
	// Actor names the person or program that starts the chain. It is only what the client says, unless Verified is set.
	Actor string `json:"actor,omitempty"`
	// Verified reports that the person has logged in to the server of the pages under the name Actor. Only that server
	// sets it; but a client that reaches Temporal itself can do so, too.
	Verified bool `json:"verified,omitempty"`
	// Carried is the state that a chain passes to its next run when it continues as new. An input from a client must
	// not contain Carried.
	Carried *Carried `json:"carried,omitempty"`

	// problem is the error from decoding the JSON. Temporal would retry a decoding error for ever. So UnmarshalJSON
	// stores the error here. Validate returns the error, and the chain fails at once.
	problem error
}

// AskInput says why the chain must ask a person before any repair.
type AskInput struct {
	Reason string `json:"reason"`
	// History describes the earlier repairs, one line for each.
	History []string `json:"history,omitempty"`
}

// ResumeFrom names an earlier conversation.
type ResumeFrom struct {
	// SessionID is the CLI's id of the conversation, a UUID.
	SessionID string `json:"session_id"`
}

// UnmarshalJSON refuses unknown fields. It stores a decoding error in the problem field and returns nil. Validate
// returns the stored error.
func (in *Input) UnmarshalJSON(data []byte) error {
	decoded, problem := decodeInput(data)
	*in = decoded
	in.problem = problem
	return nil
}

func decodeInput(data []byte) (Input, error) {
	type plain Input // has no UnmarshalJSON, which would call decodeInput again
	var decoded plain
	if err := parts.DecodeStrictly(data, &decoded); err != nil {
		return Input{}, err
	}
	// An explicit tier must be valid, so an explicit 0 is an error. Only a missing tier counts as 0.
	var written struct {
		StartTier *escalation.Tier `json:"start_tier"`
		MaxTier   *escalation.Tier `json:"max_tier"`
	}
	if err := json.Unmarshal(data, &written); err != nil {
		return Input{}, err
	}
	return Input(decoded), cmp.Or(checkWritten("start_tier", written.StartTier),
		checkWritten("max_tier", written.MaxTier))
}

// Validate returns the first error in the input, as one sentence. If the input is valid, it returns nil.
func (in Input) Validate() error {
	switch {
	case in.problem != nil:
		return in.problem
	case in.Trigger != "" && !triggerPattern.MatchString(string(in.Trigger)):
		return fmt.Errorf("trigger %q must be a lower-case word of up to 63 letters, digits, - and _", in.Trigger)
	case in.StartTier != 0 && !in.StartTier.Valid():
		return tierProblem("start_tier", in.StartTier)
	case in.MaxTier != 0 && !in.MaxTier.Valid():
		return tierProblem("max_tier", in.MaxTier)
	case in.MaxTier != 0 && in.StartTier > in.MaxTier && in.Trigger != escalation.TriggerIssue: // see beginBlocked
		return fmt.Errorf("start_tier %d is higher than max_tier %d", in.StartTier, in.MaxTier)
	case in.BudgetUSD < 0:
		return fmt.Errorf("budget_usd %v must not be negative", in.BudgetUSD)
	case in.Ask != nil && in.Trigger != escalation.TriggerIssue:
		return errors.New("ask is not for people: a chain that splits gives it to the chains of its issues")
	case len(in.Incidents) > escalation.MaxKnownIncidents:
		return fmt.Errorf("incidents has %d entries, and at most %d are allowed", len(in.Incidents),
			escalation.MaxKnownIncidents)
	}
	for _, id := range in.Incidents {
		if err := escalation.CheckIncidentID(id); err != nil {
			return fmt.Errorf("incidents: %w", err)
		}
	}
	if in.Actor != "" {
		if err := escalation.CheckActor(in.Actor); err != nil {
			return err
		}
	}
	// The limit applies to the text as JSON, because Temporal's history stores JSON. It can be six times as long as
	// the text.
	for _, text := range []struct{ name, value string }{
		{"prompt", in.Prompt}, {"issue", in.Issue}, {"alert", in.Alert},
	} {
		if encoded, err := json.Marshal(text.value); err != nil || len(encoded) > parts.MaxPromptBytes {
			return fmt.Errorf("%s has %d bytes as JSON, and at most %d are allowed", text.name, len(encoded),
				parts.MaxPromptBytes)
		}
	}
	if err := escalation.CheckServices(in.Services); err != nil {
		return fmt.Errorf("services: %w", err)
	}
	return cmp.Or(in.validateModels(), in.validateRepository(), in.validateResume())
}

// maxModelBytes limits the name of a model. Real names are far shorter.
const maxModelBytes = 200

func (in Input) validateModels() error {
	known := 0
	for _, tier := range escalation.Tiers() {
		model, given := in.Models[tier]
		if !given {
			continue
		}
		known++
		if model == "" || len(model) > maxModelBytes || model[0] == '-' || strings.Contains(model, " ") ||
			!plaintext.IsLine(model) {
			return fmt.Errorf("models: %q for %s is not the name of a model", parts.Clip(model), tier)
		}
	}
	if known < len(in.Models) {
		return errors.New("models must be an object whose keys are tiers (1, 2 or 3)")
	}
	return nil
}

func (in Input) validateRepository() error {
	if len(in.Repository) > parts.MaxRepositoryBytes || !plaintext.IsLine(in.Repository) {
		return fmt.Errorf("repository %q is not the path of a directory", parts.Clip(in.Repository))
	}
	return nil
}

func (in Input) validateResume() error {
	if in.ResumeFrom == nil {
		return nil
	}
	// uuid.Parse also accepts longer and shorter spellings, which the CLI refuses.
	if _, err := uuid.Parse(in.ResumeFrom.SessionID); err != nil || len(in.ResumeFrom.SessionID) != 36 {
		return fmt.Errorf("resume_from.session_id %q is not a UUID", in.ResumeFrom.SessionID)
	}
	return nil
}

func checkWritten(field string, tier *escalation.Tier) error {
	if tier == nil || tier.Valid() {
		return nil
	}
	return tierProblem(field, *tier)
}

func tierProblem(field string, tier escalation.Tier) error {
	return fmt.Errorf("%s %d is not a tier: it must be 1, 2 or 3", field, int(tier))
}
