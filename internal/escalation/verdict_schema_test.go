package escalation

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// schema holds the JSON schema keywords used by VerdictSchema.
type schema struct {
	Description          string            `json:"description"`
	Type                 string            `json:"type"`
	Enum                 []string          `json:"enum"`
	Items                *schema           `json:"items"`
	Properties           map[string]schema `json:"properties"`
	Required             []string          `json:"required"`
	AdditionalProperties *bool             `json:"additionalProperties"`
	MinLength            *int              `json:"minLength"`
	MaxLength            *int              `json:"maxLength"`
	MaxItems             *int              `json:"maxItems"`
	Minimum              *float64          `json:"minimum"`
	Maximum              *float64          `json:"maximum"`
}

func decodedSchema(t *testing.T) schema {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(VerdictSchema))
	decoder.DisallowUnknownFields()
	var parsed schema
	require.NoError(t, decoder.Decode(&parsed))
	return parsed
}

func TestVerdictSchemaDescribesVerdict(t *testing.T) {
	t.Parallel()
	services := decodedSchema(t).Properties["services_affected"]
	require.Equal(t, MaxServices, *services.MaxItems)
	require.Equal(t, MaxServiceName, *services.Items.MaxLength)
	require.Equal(t, MaxServiceName, *decodedSchema(t).Properties["actions"].Items.Properties["service"].MaxLength)
	issues := decodedSchema(t).Properties["issues"]
	require.Equal(t, MaxIssues, *issues.MaxItems)
	require.Equal(t, maxKind, *issues.Items.Properties["kind"].MaxLength)
	known := decodedSchema(t).Properties["known_incidents"]
	require.Equal(t, MaxKnownIncidents, *known.MaxItems)
	require.Equal(t, maxNote, *known.Items.Properties["note"].MaxLength)
	memories := decodedSchema(t).Properties["memories"]
	require.Equal(t, MaxMemories, *memories.MaxItems)
	require.Equal(t, MaxServiceName, *memories.Items.Properties["service"].MaxLength)
	require.Equal(t, MaxMemorySubject, *memories.Items.Properties["subject"].MaxLength)
	require.Equal(t, MaxMemoryText, *memories.Items.Properties["text"].MaxLength)
	require.Equal(t, MaxServices, *issues.Items.Properties["services"].MaxItems)
	requireSame(t, "verdict", reflect.TypeFor[Verdict](), decodedSchema(t))
}

// requireSame checks that described has the same properties and types as the Go type, and requires exactly the
// fields that the Go type always writes.
func requireSame(t *testing.T, path string, goType reflect.Type, described schema) {
	t.Helper()
	switch goType.Kind() {
	case reflect.Struct:
		requireSameFields(t, path, goType, described)
	case reflect.Slice:
		require.Equal(t, "array", described.Type, path)
		require.NotNil(t, described.Items, path)
		requireSame(t, path+"[]", goType.Elem(), *described.Items)
	case reflect.String:
		if goType != reflect.TypeFor[string]() {
			require.Equal(t, "string", described.Type, path)
			require.ElementsMatch(t, constantsOf(t, goType.Name()), described.Enum, path)
			return
		}
		require.Equal(t, "string", described.Type, path)
	case reflect.Int:
		require.Equal(t, "integer", described.Type, path)
	case reflect.Float64:
		require.Equal(t, "number", described.Type, path)
	case reflect.Bool:
		require.Equal(t, "boolean", described.Type, path)
	default:
		require.Failf(t, "unexpected kind", "%s is a %s", path, goType.Kind())
	}
}

func requireSameFields(t *testing.T, path string, goType reflect.Type, described schema) {
	t.Helper()
	require.Equal(t, "object", described.Type, path)
	require.NotNil(t, described.AdditionalProperties, path)
	require.False(t, *described.AdditionalProperties, path)
	var names, required []string
	for field := range goType.Fields() {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		names = append(names, name)
		if options != "omitempty" {
			required = append(required, name)
		}
		requireSame(t, path+"."+name, field.Type, described.Properties[name])
	}
	require.ElementsMatch(t, names, slices.Collect(maps.Keys(described.Properties)), path)
	require.ElementsMatch(t, required, described.Required, path)
}

// constantsOf parses the source for the values of a string type's constants, so that a new constant cannot be
// forgotten.
func constantsOf(t *testing.T, typeName string) []string {
	t.Helper()
	var values []string
	collect := func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if name, ok := spec.Type.(*ast.Ident); ok && name.Name == typeName {
			value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			require.NoError(t, err)
			values = append(values, value)
		}
		return true
	}
	for _, name := range []string{"verdict.go", "event.go", "sighting.go"} {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		require.NoError(t, err)
		ast.Inspect(file, collect)
	}
	require.NotEmpty(t, values, typeName)
	return values
}

func TestEveryEnumOfTheSchemaIsDecoded(t *testing.T) {
	t.Parallel()
	described := decodedSchema(t).Properties
	for _, status := range described["status"].Enum {
		require.True(t, knownVerdictStatus(VerdictStatus(status)), status)
	}
	for _, status := range described["check_results"].Items.Properties["status"].Enum {
		require.True(t, knownCheckStatus(CheckStatus(status)), status)
	}
	for _, kind := range described["actions"].Items.Properties["kind"].Enum {
		require.True(t, knownActionKind(ActionKind(kind)), kind)
	}
	for _, severity := range described["issues"].Items.Properties["severity"].Enum {
		require.True(t, knownSeverity(Severity(severity)), severity)
	}
	for _, news := range described["known_incidents"].Items.Properties["status"].Enum {
		require.True(t, knownNews(IncidentNews(news)), news)
	}
	for _, kind := range described["memories"].Items.Properties["kind"].Enum {
		require.True(t, knownMemoryKind(MemoryKind(kind)), kind)
	}
	tier := described["recommended_tier"]
	require.InDelta(t, 0, *tier.Minimum, 0)
	require.InDelta(t, int(TierFullRepair), *tier.Maximum, 0)
}

func TestVerdictSchemaIsCompact(t *testing.T) {
	t.Parallel()
	require.Less(t, len(VerdictSchema), 4096, "it is sent with every launch")
}
