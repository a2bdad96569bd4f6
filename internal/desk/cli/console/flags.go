package console

import (
	"encoding/csv"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plaintext"
	"github.com/claudeops/claudeops/internal/plant/program"
)

// flagProblem explains an invalid value of a flag, in the words in which package config explains an invalid variable.
func flagProblem(_ *cobra.Command, err error) error {
	invalid, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return err
	}
	flag := invalid.GetFlag()
	return fmt.Errorf("--%s is %q; it must %s", flag.Name, invalid.GetValue(), demand(flag.Value, invalid.Unwrap()))
}

// NameFlag names the flag in an error about a field of the input.
func NameFlag(err error) error {
	if field, ok := errors.AsType[*operations.FieldError](err); ok {
		return fmt.Errorf("--%s %s", strings.ReplaceAll(field.Field, "_", "-"), field.Problem)
	}
	return err
}

// CheckLimit checks the value of --limit. The parameter row names what the flag counts.
func CheckLimit(limit int, row string) error {
	if limit < 1 {
		return program.Misuse(fmt.Errorf("--limit %d is less than one %s", limit, row))
	}
	return nil
}

// demand returns the part of an error message that follows "it must". The errors of this project's flag types already
// have this form.
func demand(value pflag.Value, err error) string {
	switch value.Type() {
	case "bool":
		return "be true or false"
	case "int":
		return "be a whole number"
	case "duration":
		return "be a duration with its unit, such as 90s, 15m or 1h30m"
	case "stringToString":
		return "be a tier, = and a model, such as tier2=opus"
	default:
		return err.Error()
	}
}

// TierFlag is a flag whose value is one of several allowed tiers.
type TierFlag struct {
	Tier    *escalation.Tier
	Allowed []escalation.Tier
}

var _ pflag.Value = TierFlag{}

// String implements pflag.Value.
func (f TierFlag) String() string {
	if f.Tier == nil || *f.Tier == 0 {
		return ""
	}
	return strconv.Itoa(int(*f.Tier))
}

// Type implements pflag.Value.
func (f TierFlag) Type() string { return strings.Join(f.names(), "|") }

// Set implements pflag.Value.
func (f TierFlag) Set(value string) error {
	number, err := strconv.Atoi(value)
	if err != nil || !slices.Contains(f.Allowed, escalation.Tier(number)) {
		return errors.New("be " + plaintext.Or(f.names()))
	}
	*f.Tier = escalation.Tier(number)
	return nil
}

func (f TierFlag) names() []string {
	names := make([]string, len(f.Allowed))
	for i, tier := range f.Allowed {
		names[i] = strconv.Itoa(int(tier))
	}
	return names
}

// ServicesFlag is a flag whose value is a list of service names. Commas separate the names. Unlike pflag's own type,
// ServicesFlag keeps an empty name, so that validation refuses the list. If an empty name were dropped, the list could
// become empty, and the chain would cover all services.
type ServicesFlag []string

var _ pflag.Value = (*ServicesFlag)(nil)

// String implements pflag.Value.
func (f *ServicesFlag) String() string { return strings.Join(*f, ",") }

// Type implements pflag.Value.
func (f *ServicesFlag) Type() string { return "names" }

// Set implements pflag.Value.
func (f *ServicesFlag) Set(value string) error {
	names := []string{value}
	if value != "" {
		var err error
		if names, err = csv.NewReader(strings.NewReader(value)).Read(); err != nil {
			return errors.New("be names, separated by commas")
		}
	}
	*f = append(*f, names...)
	return nil
}
