package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/claudeops/claudeops/internal/escalation"
)

// flagProblem says what is wrong with the value of a flag in the words in which the configuration says
// it of a variable.
func flagProblem(_ *cobra.Command, err error) error {
	invalid, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return err
	}
	flag := invalid.GetFlag()
	return fmt.Errorf("--%s is %q; it must %s", flag.Name, invalid.GetValue(), demand(flag.Value, invalid.Unwrap()))
}

// demand completes "it must". The errors of our own types of flags do that themselves.
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

// tierFlag is a flag whose value is a tier.
type tierFlag struct {
	tier    *escalation.Tier
	allowed []escalation.Tier
}

var _ pflag.Value = tierFlag{}

// String implements pflag.Value.
func (f tierFlag) String() string {
	if f.tier == nil || *f.tier == 0 {
		return ""
	}
	return strconv.Itoa(int(*f.tier))
}

// Type implements pflag.Value.
func (f tierFlag) Type() string { return strings.Join(f.names(), "|") }

// Set implements pflag.Value.
func (f tierFlag) Set(value string) error {
	number, err := strconv.Atoi(value)
	if err != nil || !slices.Contains(f.allowed, escalation.Tier(number)) {
		return errors.New("be " + orList(f.names()))
	}
	*f.tier = escalation.Tier(number)
	return nil
}

func (f tierFlag) names() []string {
	names := make([]string, len(f.allowed))
	for i, tier := range f.allowed {
		names[i] = strconv.Itoa(int(tier))
	}
	return names
}

// orList is names as a sentence lists them: a, b or c.
func orList(names []string) string {
	last := len(names) - 1
	if last == 0 {
		return names[0]
	}
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// servicesFlag is a flag whose values are names of services, separated by commas. Unlike pflag's own
// type it keeps an empty name, so that it is refused and does not lift the limit to a service.
type servicesFlag []string

var _ pflag.Value = (*servicesFlag)(nil)

// String implements pflag.Value.
func (f *servicesFlag) String() string { return strings.Join(*f, ",") }

// Type implements pflag.Value.
func (f *servicesFlag) Type() string { return "names" }

// Set implements pflag.Value.
func (f *servicesFlag) Set(value string) error {
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

// idPattern is what the ID of a schedule or a chain that people choose may look like: it becomes a part
// of workflow IDs, and people type it.
var idPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]{0,199}$`)

// checkID reports what is wrong with an ID, which is called what.
func checkID(what, id string) error {
	if !idPattern.MatchString(id) {
		return fmt.Errorf("%s %q must begin with a letter or digit and consist of at most 200 letters, digits and . _ : -", what, id)
	}
	return nil
}
