package config

import (
	"fmt"
	"reflect"
	"strconv"
	"time"

	"github.com/claudeops/claudeops/internal/escalation"
)

// Setting describes one variable and its current value.
type Setting struct {
	// Name is the variable's full name.
	Name string `json:"name"`
	// Group is the heading above the setting in lists.
	Group string `json:"group"`
	// Value is the current value, in the syntax of the variable. Secrets are masked.
	Value string `json:"value"`
	// Default is the value of the setting if the variable is unset, or a description of that value.
	Default string `json:"default"`
	// Meaning describes the setting's effect and its allowed values.
	Meaning string `json:"meaning"`
	// Secret reports whether the value can contain credentials. If so, Value is masked, unless it is the plain URL of a
	// database file.
	Secret bool `json:"secret"`
	// Source says where the value comes from: SourceDefault, SourceEnvironment, or the file of settings and the line,
	// such as /etc/claudeops/claudeops.env:3.
	Source string `json:"source"`
}

// databaseVariable is a secret variable whose value is shown if it is the plain URL of a file. The values of other
// secret variables are never shown.
const databaseVariable = Prefix + "DATABASE_URL"

// secretVariables lists the variables whose values can contain credentials. A test compares this list with the settings
// that have the tag secret.
var secretVariables = []string{databaseVariable, Prefix + "NOTIFY_URLS", TokenVariable}

// Settings returns all settings of c in the order of declaration.
func (c Config) Settings() []Setting {
	builtIn := leaves(defaults())
	settings := make([]Setting, 0, len(builtIn))
	for i, leaf := range leaves(c) {
		setting := Setting{
			Name:    leaf.name,
			Group:   leaf.group,
			Value:   format(leaf.value),
			Default: format(builtIn[i].value),
			Meaning: leaf.tag.Get("desc"),
			Secret:  leaf.tag.Get("secret") == "true",
			Source:  c.source(leaf.name),
		}
		if derived := leaf.tag.Get("default"); derived != "" {
			setting.Default = derived
		}
		if leaf.name == databaseVariable {
			setting.Value = mask(c.State)
		}
		settings = append(settings, setting)
	}
	return settings
}

// The values of Setting.Source that name no file.
const (
	SourceDefault     = "default"
	SourceEnvironment = "environment"
)

func (c Config) source(variable string) string {
	switch {
	case !c.given[variable]:
		return SourceDefault
	case c.lines[variable] > 0:
		return fmt.Sprintf("%s:%d", c.State.EnvFile, c.lines[variable])
	default:
		return SourceEnvironment
	}
}

// SaysMaxTier reports whether the environment or the file of settings says which tiers may run.
func (c Config) SaysMaxTier() bool { return c.given[Prefix+"MAX_TIER"] }

// leaf is a field that holds a setting.
type leaf struct {
	name  string // full name of the variable
	group string
	tag   reflect.StructTag
	value reflect.Value
}

// leaves returns the fields of cfg that hold settings, in the order of declaration. It interprets the tags in the same
// way as the env package. A test checks that leaves and the env package find the same variables.
func leaves(cfg Config) []leaf {
	var found []leaf
	var walk func(value reflect.Value, prefix, group string)
	walk = func(value reflect.Value, prefix, group string) {
		for i := range value.NumField() {
			field := value.Type().Field(i)
			name := field.Tag.Get("env")
			switch {
			case !field.IsExported() || name == "-":
			case name != "":
				found = append(found, leaf{prefix + name, group, field.Tag, value.Field(i)})
			default:
				heading := group
				if own := field.Tag.Get("group"); own != "" {
					heading = own
				}
				walk(value.Field(i), prefix+field.Tag.Get("envPrefix"), heading)
			}
		}
	}
	walk(reflect.ValueOf(cfg), Prefix, "")
	return found
}

// format formats a setting's value in the syntax of its variable.
func format(value reflect.Value) string {
	switch typed := value.Interface().(type) {
	case time.Duration:
		return escalation.ShortDuration(typed)
	case ToolList:
		return typed.String()
	case PassList:
		return typed.String()
	case PathList:
		return typed.String()
	case Overrides:
		return typed.String()
	case Limit:
		return typed.String()
	case PersonList:
		return typed.String()
	case DurationList:
		return typed.String()
	case SecretList:
		return typed.String()
	case NetworkList:
		return typed.String()
	case GroupRoles:
		return typed.String()
	}
	switch value.Kind() {
	case reflect.Bool:
		return strconv.FormatBool(value.Bool())
	case reflect.Int:
		return strconv.FormatInt(value.Int(), 10)
	case reflect.Float64:
		return strconv.FormatFloat(value.Float(), 'f', -1, 64)
	default:
		return value.String()
	}
}

// mask returns the database URL if it is the plain URL of a file. Any other URL can contain credentials, so mask
// returns a placeholder instead.
func mask(state State) string {
	if state.DatabaseFile() == "" {
		return "(not shown)"
	}
	return state.DatabaseURL
}
