package workflows_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/workflows"
)

func TestPlanInputProblems(t *testing.T) {
	t.Parallel()
	for input, want := range map[string]string{
		`{"file":"docs/plan.md"}`: "",
		`{"file":"plan.md","repository":"infra","phases":["1","2.1"],"prompt":"x","budget_usd":2,"actor":"ada"}`: "",
		`{}`:                               "file is empty: name the plan, such as docs/plan.md",
		`{"file":"/plan.md"}`:              `file "/plan.md" must be a plain path below the working directory`,
		`{"file":"../plan.md"}`:            `file "../plan.md" must be a plain path`,
		`{"file":"."}`:                     `file "." must be a plain path`,
		`{"file":"a//plan.md"}`:            `file "a//plan.md" must be a plain path`,
		`{"file":"a\nb"}`:                  "file must be one line",
		`{"file":"x","fiel":"y"}`:          `unknown field "fiel"`,
		`{"file":1}`:                       "file must not be a number",
		`[]`:                               "input must be a JSON object, not an array",
		`{"file":"x","phases":["one"]}`:    `phases: "one" is not the number of a phase, such as 2 or 2.1`,
		`{"file":"x","phases":[""]}`:       `phases: "" is not the number of a phase`,
		`{"file":"x","repository":"a\nb"}`: "is not the path of a directory",
		`{"file":"x","budget_usd":-1}`:     "budget_usd -1 must not be negative",
		`{"file":"x","actor":" "}`:         "actor",
		`{"file":"` + strings.Repeat("x", 501) + `"}`:                  "file must be one line of at most 500 bytes",
		`{"file":"x","prompt":"` + strings.Repeat("x", 100_001) + `"}`: "prompt has 100001 bytes",
	} {
		var decoded workflows.PlanInput
		require.NoError(t, json.Unmarshal([]byte(input), &decoded))
		if err := decoded.Validate(); want == "" {
			require.NoError(t, err, input)
		} else {
			require.ErrorContains(t, err, want, input)
		}
	}
}
