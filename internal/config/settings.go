package config

import (
	"reflect"
	"strconv"
	"time"

	"github.com/claudeops/claudeops/internal/escalation"
)

// Setting describes one variable: what it is for, and what it is now.
type Setting struct {
	// Name is the variable's full name.
	Name string `json:"name"`
	// Group is the heading that it belongs under.
	Group string `json:"group"`
	// Value is the value in force, in the spelling that the variable takes. Secrets are masked.
	Value string `json:"value"`
	// Default is what holds when the variable is unset: a value, or how it is derived.
	Default string `json:"default"`
	// Meaning says what the setting does, and which values it takes.
	Meaning string `json:"meaning"`
	// Secret says that Value may hide something.
	Secret bool `json:"secret"`
	// FromEnv says that the environment sets the variable.
	FromEnv bool `json:"from_env"`
}

// databaseVariable is the one secret whose value may be harmless.
const databaseVariable = Prefix + "DATABASE_URL"

// secretVariables are the variables whose values may hold credentials. A test holds them to
// the secret tags.
var secretVariables = []string{databaseVariable, Prefix + "NOTIFY_URLS"}

// Settings lists every setting of c, in the order in which they are declared.
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
			FromEnv: c.given[leaf.name],
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

// leaf is one field that holds a setting.
type leaf struct {
	name  string // the variable's, in full
	group string
	tag   reflect.StructTag
	value reflect.Value
}

// leaves lists the settings of cfg in the order of their declaration. It reads the
// tags as the env package does; a test holds the two to the same names.
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

// format spells a setting's value as its variable takes it.
func format(value reflect.Value) string {
	switch typed := value.Interface().(type) {
	case time.Duration:
		return escalation.ShortDuration(typed)
	case RuleList:
		return typed.String()
	case NameList:
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

// mask hides what could be a credential in the URL of a database: all of it, unless it is
// the plain URL of a file.
func mask(state State) string {
	if state.DatabaseFile() == "" {
		return "(not shown)"
	}
	return state.DatabaseURL
}
