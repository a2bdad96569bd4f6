package config

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caarlos0/env/v11"

	"github.com/claudeops/claudeops/internal/escalation"
)

// parse converts the values in p.vars and stores them in the fields of cfg. It records a problem for each value that
// cannot be parsed. If a variable is unset or empty, its field keeps its value.
func parse(cfg *Config, p *problems) {
	// An error of the env library names the Go field, but not the variable. The field alone is ambiguous: each field of
	// Tier has one variable for each of the three tiers. So the hook OnSet stores the name of the variable in current.
	// The library calls OnSet just before it parses the value of that variable.
	current := ""
	err := env.ParseWithOptions(cfg, env.Options{
		Prefix:      Prefix,
		Environment: p.vars,
		OnSet:       func(variable string, _ any, _ bool) { current = variable },
		FuncMap: parsers(func(value string, err error) error {
			return &valueError{variable: current, sentence: mustSentence(current, value, err.Error())}
		}),
	})
	var all env.AggregateError
	if !errors.As(err, &all) {
		return
	}
	for _, err := range all.Errors {
		var field env.ParseError
		var value *valueError
		if !errors.As(err, &field) || !errors.As(field.Err, &value) {
			// an error of the library itself; none of our types causes one
			value = &valueError{variable: current, sentence: err.Error()}
		}
		p.add(strings.TrimPrefix(value.variable, Prefix), value.sentence)
	}
}

// valueError describes a problem with the value of a variable. The env library wraps a valueError in its own error
// type.
type valueError struct {
	variable, sentence string
}

func (e *valueError) Error() string { return e.sentence }

// parsers returns a parser for each type of setting. Functions such as parseInt return an error whose text continues
// the phrase "it must ...". The function explain converts this error to a full sentence.
func parsers(explain func(value string, err error) error) map[reflect.Type]env.ParserFunc {
	of := func(parse env.ParserFunc) env.ParserFunc {
		return func(value string) (any, error) {
			parsed, err := parse(value)
			if err != nil {
				return nil, explain(value, err)
			}
			return parsed, nil
		}
	}
	return map[reflect.Type]env.ParserFunc{
		reflect.TypeFor[string]():        of(func(v string) (any, error) { return v, nil }),
		reflect.TypeFor[bool]():          of(parseBool),
		reflect.TypeFor[int]():           of(parseInt),
		reflect.TypeFor[float64]():       of(parseFloat),
		reflect.TypeFor[time.Duration](): of(parseDuration),
		reflect.TypeFor[ToolList]():      of(list(parseTools)),
		reflect.TypeFor[PassList]():      of(list(parsePassed)),
		reflect.TypeFor[PathList]():      of(list(parsePaths)),
		reflect.TypeFor[PersonList]():    of(list(parsePeople)),
		reflect.TypeFor[DurationList]():  of(list(parseDurations)),
		reflect.TypeFor[SecretList]():    of(list(parseSecrets)),
		reflect.TypeFor[Overrides]():     of(list(parseOverrides)),
		reflect.TypeFor[Limit]():         of(parseLimit),
		reflect.TypeFor[NetworkList]():   of(list(parseNetworks)),
		reflect.TypeFor[GroupRoles]():    of(list(parseGroupRoles)),

		reflect.TypeFor[escalation.Tier](): of(parseTier),
		reflect.TypeFor[escalation.ContinuityMode](): of(
			oneOf(escalation.ContinuityAuto, escalation.ContinuityHandoffOnly)),
		reflect.TypeFor[escalation.HealedAction](): of(oneOf(escalation.HealedClose, escalation.HealedKeep)),
		reflect.TypeFor[escalation.GateAction]():   of(oneOf(escalation.GateAbort, escalation.GateFix)),
		reflect.TypeFor[Containment](): of(
			oneOf(ContainmentAuto, ContainmentNamespace, ContainmentSubreaper, ContainmentGroup)),
		reflect.TypeFor[Sandbox](): of(oneOf(SandboxAuto, SandboxRequire, SandboxRequireKernel, SandboxRequireFull,
			SandboxOff)),
		reflect.TypeFor[escalation.ReviewMode](): of(
			oneOf(escalation.ReviewNone, escalation.ReviewAdvisory, escalation.ReviewRequired)),
		reflect.TypeFor[Worktrees](): of(oneOf(WorktreesAuto, WorktreesOff)),
		reflect.TypeFor[LogLevel]():  of(oneOf(LogDebug, LogInfo, LogWarn, LogError)),
		reflect.TypeFor[LogFormat](): of(oneOf(LogText, LogJSON)),
	}
}

func parseBool(value string) (any, error) {
	parsed, err := strconv.ParseBool(strings.ToLower(value))
	if err != nil {
		return nil, errors.New("be true or false")
	}
	return parsed, nil
}

// noItems is the text of an empty list, for every setting that is a list.
const noItems = "none"

// list returns a parser that accepts noItems as well. A setting whose list must have items says so when it is
// validated.
func list[T any](parse func(text string) (T, error)) env.ParserFunc {
	return func(value string) (any, error) {
		if strings.TrimSpace(value) == noItems {
			var empty T
			return empty, nil
		}
		return parse(value)
	}
}

// The largest values of numbers and durations. Products and sums of several settings stay far from an overflow.
const (
	maxNumber   = 1_000_000_000
	maxDuration = escalation.LongestDuration
)

func parseInt(value string) (any, error) {
	parsed, err := strconv.Atoi(value)
	switch {
	case errors.Is(err, strconv.ErrRange), err == nil && (parsed > maxNumber || parsed < -maxNumber):
		return nil, fmt.Errorf("be at most %d", maxNumber)
	case err != nil:
		return nil, errors.New("be a whole number")
	}
	return parsed, nil
}

func parseFloat(value string) (any, error) {
	parsed, err := strconv.ParseFloat(value, 64)
	switch {
	case errors.Is(err, strconv.ErrRange), math.Abs(parsed) > maxNumber && !math.IsInf(parsed, 0):
		return nil, fmt.Errorf("be at most %d", maxNumber)
	case err != nil:
		return nil, errors.New("be a number such as 0.8")
	}
	return parsed, nil
}

func parseDuration(value string) (any, error) {
	parsed, err := time.ParseDuration(value)
	switch {
	case err != nil:
		return nil, errors.New("be a duration with its unit, such as 90s, 15m or 1h30m")
	case parsed > maxDuration || parsed < -maxDuration:
		return nil, errors.New("be at most 87600h (ten years)")
	}
	return parsed, nil
}

func parseTier(value string) (any, error) {
	number, err := strconv.Atoi(value)
	if tier := escalation.Tier(number); err == nil && tier.Valid() {
		return tier, nil
	}
	return nil, errors.New("be 1, 2 or 3")
}

// oneOf returns a parser that accepts only the values in allowed.
func oneOf[T ~string](allowed ...T) env.ParserFunc {
	return func(value string) (any, error) {
		if parsed := T(value); slices.Contains(allowed, parsed) {
			return parsed, nil
		}
		names := make([]string, len(allowed))
		for i, name := range allowed {
			names[i] = string(name)
		}
		last := len(names) - 1
		return nil, fmt.Errorf("be %s or %s", strings.Join(names[:last], ", "), names[last])
	}
}
