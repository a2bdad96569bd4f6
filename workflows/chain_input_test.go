package workflows_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/workflows"
)

func TestChainInputAccepts(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		json string
		want workflows.ChainInput
	}{
		"nothing":        {`{}`, workflows.ChainInput{}},
		"null":           {`null`, workflows.ChainInput{}},
		"one field":      {`{"start_tier":2}`, workflows.ChainInput{StartTier: 2}},
		"surrounding ws": {" {\"max_tier\": 1}\n", workflows.ChainInput{MaxTier: 1}},
		"everything": {
			`{"trigger":"manual","start_tier":2,"prompt":"look","services":["jellyfin"],"dry_run":true,"max_tier":2,
			  "models":{"2":"sonnet"},"repository":"infra","resume_from":{"session_id":"4f2b7c1e-8b8e-4d53-9f0e-0d9c7e0f7a11"}}`,
			workflows.ChainInput{
				Trigger: "manual", StartTier: 2, Prompt: "look", Services: []string{"jellyfin"}, DryRun: true, MaxTier: 2,
				Models: map[escalation.Tier]string{2: "sonnet"}, Repository: "infra",
				ResumeFrom: &workflows.ResumeFrom{SessionID: "4f2b7c1e-8b8e-4d53-9f0e-0d9c7e0f7a11"},
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got workflows.ChainInput
			require.NoError(t, json.Unmarshal([]byte(tt.json), &got))
			require.NoError(t, got.Validate())
			require.Equal(t, tt.want, got)
		})
	}
}

func TestChainInputRefuses(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ json, want string }{
		"unknown field":        {`{"start_teir":2}`, `input is not valid: unknown field "start_teir"`},
		"unknown nested field": {`{"resume_from":{"id":"x"}}`, `input is not valid: unknown field "id"`},
		"tier too high":        {`{"start_tier":4}`, `start_tier 4 is not a tier: it must be 1, 2 or 3`},
		"tier zero":            {`{"start_tier":0}`, `start_tier 0 is not a tier: it must be 1, 2 or 3`},
		"max tier negative":    {`{"max_tier":-1}`, `max_tier -1 is not a tier: it must be 1, 2 or 3`},
		"max tier zero":        {`{"max_tier":0}`, `max_tier 0 is not a tier: it must be 1, 2 or 3`},
		"tier as text":         {`{"start_tier":"2"}`, `start_tier must not be a string`},
		"tier with a fraction": {`{"start_tier":1.5}`, `start_tier must not be a number 1.5`},
		"services as text":     {`{"services":"jellyfin"}`, `services must not be a string`},
		"list":                 {`[1]`, `input must be a JSON object, not an array`},
		"text":                 {`"go"`, `input must be a JSON object, not a string`},
		"start above max":      {`{"start_tier":3,"max_tier":2}`, `start_tier 3 is higher than max_tier 2`},
		"odd trigger":          {`{"trigger":"Big Red Button"}`, `trigger "Big Red Button" must be a lower-case word of up to 63 letters, digits, - and _`},
		"blank service":        {`{"services":["a"," "]}`, `services: service 2 has a blank name`},
		"service name too long": {
			`{"services":["` + strings.Repeat("x", 101) + `"]}`, `services: service 1 has a name of more than 100 characters`,
		},
		"too many services": {
			`{"services":["a"` + strings.Repeat(`,"a"`, 100) + `]}`, `services: 101 services, and at most 100 are allowed`,
		},
		"model of no tier":   {`{"models":{"4":"opus"}}`, `models must be an object whose keys are tiers (1, 2 or 3)`},
		"models by name":     {`{"models":{"sonnet":"opus"}}`, `models must not be a number sonnet`},
		"models as a list":   {`{"models":["opus"]}`, `models must not be an array`},
		"no model":           {`{"models":{"1":""}}`, `models: "" for tier 1 is not the name of a model`},
		"an option as model": {`{"models":{"1":"--print"}}`, `models: "--print" for tier 1 is not the name of a model`},
		"two words as model": {`{"models":{"3":"opus 4"}}`, `models: "opus 4" for tier 3 is not the name of a model`},
		"odd repository":     {`{"repository":"a\u0000b"}`, `repository "a\x00b" is not the path of a directory`},
		"not a UUID":         {`{"resume_from":{"session_id":"last"}}`, `resume_from.session_id "last" is not a UUID`},
		"UUID in braces": {
			`{"resume_from":{"session_id":"{4f2b7c1e-8b8e-4d53-9f0e-0d9c7e0f7a11}"}}`,
			`resume_from.session_id "{4f2b7c1e-8b8e-4d53-9f0e-0d9c7e0f7a11}" is not a UUID`,
		},
		"blank actor":   {`{"actor":" "}`, `actor is empty: say who you are`},
		"control actor": {`{"actor":"a\u001b[2J"}`, `actor has characters that cannot be printed: give a plain name`},
		"carried, odd":  {`{"carried":{"step":[]}}`, `carried.step must not be an array`},
		"prompt too long": {
			`{"prompt":"` + strings.Repeat("x", 100_001) + `"}`, `prompt has 100003 bytes as JSON, and at most 100000 are allowed`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got workflows.ChainInput
			require.NoError(t, json.Unmarshal([]byte(tt.json), &got), "decoding must leave the problem to Validate")
			require.EqualError(t, got.Validate(), tt.want)
		})
	}
}

func FuzzChainInput(f *testing.F) {
	for _, seed := range []string{`{}`, `null`, `{"start_tier":2}`, `{"start_tier":9}`, `[]`, `{"prompt":"x","services":["a"]}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var input workflows.ChainInput
		if json.Unmarshal(data, &input) != nil {
			return // not JSON: encoding/json refuses it before UnmarshalJSON runs
		}
		if input.Validate() != nil {
			return
		}
		encoded, err := json.Marshal(input)
		require.NoError(t, err)
		var again workflows.ChainInput
		require.NoError(t, json.Unmarshal(encoded, &again))
		require.NoError(t, again.Validate(), "a valid input must survive its own encoding")
	})
}
