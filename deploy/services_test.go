package deploy_test

import (
	"encoding/json"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/alert"
	"github.com/claudeops/claudeops/internal/plant/config"
)

const servicesSchema = "services.schema.json"

func TestServicesExampleIsValid(t *testing.T) {
	t.Parallel()
	example, err := os.ReadFile("services.example.yaml")
	require.NoError(t, err)
	require.NoError(t, validateAgainst(t, servicesSchema, example))
	catalog, err := config.ParseServices(example, ".")
	require.NoError(t, err)
	require.Equal(t, "shop", catalog.Canonical(" Shop-Web-1"))
	first, _, _ := strings.Cut(string(example), "\n")
	require.Equal(t, "# yaml-language-server: $schema="+servicesSchema, first)
}

// TestServicesSchemaRefuses checks that the schema and the program refuse the same invalid files.
func TestServicesSchemaRefuses(t *testing.T) {
	t.Parallel()
	const head = "version: 1\nservices:\n"
	require.NoError(t, validateAgainst(t, servicesSchema, []byte(head+"- name: web\n")))
	for name, text := range map[string]string{
		"another version":      "version: 2\nservices: [{name: web}]\n",
		"no version":           "services: [{name: web}]\n",
		"no services":          "version: 1\n",
		"an empty list":        "version: 1\nservices: []\n",
		"a key that is none":   head + "- {name: web, alias: [www]}\n",
		"a text for a list":    head + "- {name: web, aliases: www}\n",
		"no name":              head + "- {look: there}\n",
		"a blank name":         head + "- {name: ' '}\n",
		"a blank alias":        head + "- {name: web, aliases: ['']}\n",
		"a long name":          head + "- {name: " + strings.Repeat("x", escalation.MaxServiceName+1) + "}\n",
		"a criticality":        head + "- {name: web, criticality: urgent}\n",
		"a long text":          head + "- {name: web, look: " + strings.Repeat("x", 1_001) + "}\n",
		"too many aliases":     head + "- {name: web, aliases: [" + strings.Join(numbered(51), ", ") + "]}\n",
		"too many services":    head + "- name: " + strings.Join(numbered(1_001), "\n- name: ") + "\n",
		"a list for a text":    head + "- {name: web, owner: [anna]}\n",
		"a service as a text":  head + "- web\n",
		"services as mappings": "version: 1\nservices: {web: {}}\n",
		"a key of alerts":      head + "- name: web\nalerts: {delay: 30s}\n",
		"a kind of source":     head + "- name: web\nalerts: {sources: [{name: a, kind: nagios}]}\n",
		"a path of a template": head + "- name: web\nalerts: {sources: [{name: a, kind: template, template: {identity: [id], title: x}}]}\n",
		"a tier of a severity": head + "- name: web\nalerts: {max_tier: {info: 4}}\n",
		"an empty matcher":     head + "- {name: web, alerts: [{}]}\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Error(t, validateAgainst(t, servicesSchema, []byte(text)))
			_, err := config.ParseServices([]byte(text), ".")
			require.Error(t, err)
		})
	}
}

// numbered returns as many different names.
func numbered(count int) []string {
	names := make([]string, count)
	for i := range names {
		names[i] = "n" + strings.Repeat("i", i%50) + strings.Repeat("v", i/50)
	}
	return names
}

// TestServicesSchemaHasEveryKey compares the keys of the schema with the keys that the program reads.
func TestServicesSchemaHasEveryKey(t *testing.T) {
	t.Parallel()
	var schema struct {
		Defs map[string]struct {
			Properties map[string]struct {
				Description string `json:"description"`
			} `json:"properties"`
		} `json:"$defs"`
	}
	text, err := os.ReadFile(servicesSchema)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &schema))
	var keys []string
	for field := range reflect.TypeFor[escalation.Service]().Fields() {
		keys = append(keys, field.Tag.Get("yaml"))
	}
	properties := schema.Defs["service"].Properties
	require.ElementsMatch(t, keys, slices.Collect(maps.Keys(properties)))
	for key, property := range properties {
		require.NotEmpty(t, property.Description, key)
	}
	for name, of := range map[string]reflect.Type{
		"alerts": reflect.TypeFor[alert.Rules](), "source": reflect.TypeFor[alert.Source](),
		"template": reflect.TypeFor[alert.Template](),
	} {
		var keys []string
		for field := range of.Fields() {
			keys = append(keys, field.Tag.Get("yaml"))
		}
		require.ElementsMatch(t, keys, slices.Collect(maps.Keys(schema.Defs[name].Properties)), name)
	}
}
