package deploy_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/claudeops/claudeops/deploy"
	"github.com/claudeops/claudeops/internal/cell/guard"
)

const schemaFile = "policy.schema.json"

// validate validates a policy against its schema.
func validate(t *testing.T, text []byte) error {
	t.Helper()
	return validateAgainst(t, schemaFile, text)
}

// validateAgainst validates a document in YAML against the schema in a file.
func validateAgainst(t *testing.T, file string, text []byte) error {
	t.Helper()
	schema, err := jsonschema.NewCompiler().Compile(file)
	require.NoError(t, err)
	asJSON, err := yaml.YAMLToJSON(text)
	require.NoError(t, err)
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(asJSON))
	require.NoError(t, err)
	return schema.Validate(document)
}

func TestPolicyIsValid(t *testing.T) {
	t.Parallel()
	require.NoError(t, validate(t, deploy.Policy))
	_, err := guard.ParsePolicy(deploy.Policy)
	require.NoError(t, err)
	first, _, _ := strings.Cut(string(deploy.Policy), "\n")
	require.Equal(t, "# yaml-language-server: $schema="+schemaFile, first)
}

// TestSchemaOfAnExtension checks that the schema and the guard agree on policies that extend the built-in one.
func TestSchemaOfAnExtension(t *testing.T) {
	t.Parallel()
	const head = "version: 1\nextends: default\n"
	for text, valid := range map[string]bool{
		head: true,
		head + "programs: {docker: {commands: {stop: {tier: 2, args: SERVICE+}}}}\ntiers: {2: {hosts: [nas.lan]}}\n": true,
		head + "without: {programs: [curl, docker exec], tiers: {1: {hosts: ['**']}}}\n":                             true,
		"version: 1\nextends: other\n":                                            false,
		head + "without: {never: [rm]}\n":                                         false,
		head + "without: {secrets: [/etc/x]}\n":                                   false,
		head + "tiers: {4: {read: [/srv]}}\n":                                     false,
		head + "programs: {x: {tier: 1, arg: FILE}}\n":                            false,
		"version: 1\nwithout: {programs: [curl]}\ntiers: {1: {}, 2: {}, 3: {}}\n": false,
	} {
		_, err := guard.ParsePolicyOver(deploy.Policy, []byte(text))
		if valid {
			require.NoError(t, err, text)
			require.NoError(t, validate(t, []byte(text)), text)
		} else {
			require.Error(t, err, text)
			require.Error(t, validate(t, []byte(text)), text)
		}
	}
}

// TestSchemaRefuses checks that the schema and the guard refuse the same invalid policies.
func TestSchemaRefuses(t *testing.T) {
	t.Parallel()
	const head = "version: 1\ntiers: {1: {}, 2: {}, 3: {anything: true}}\n"
	require.NoError(t, validate(t, []byte(head)))
	for name, text := range map[string]string{
		"another version":         strings.Replace(head, "version: 1", "version: 2", 1),
		"no version":              "tiers: {1: {}, 2: {}, 3: {}}\n",
		"two tiers":               "version: 1\ntiers: {1: {}, 2: {}}\n",
		"a key that is none":      head + "nevr: []\n",
		"a limit that is none":    "version: 1\ntiers: {1: {raed: [.]}, 2: {}, 3: {}}\n",
		"a text for a list":       head + "branches: main\n",
		"a key of a use":          head + "programs: {cat: {tier: 1, arg: FILE}}\n",
		"a key of a use in lists": head + "programs: {cat: [{tier: 1}, {tier: 1, flag: -v}]}\n",
		"a key of a subcommand":   head + "programs: {docker: {commands: {ps: {arg: FILE}}}}\n",
		"a style":                 head + "programs: {cat: {tier: 1, style: bsd}}\n",
		"an action":               head + "programs: {cat: {tier: 1, action: reboot}}\n",
		"a place":                 head + "programs: {cat: {tier: 1, in: home}}\n",
		"never without why":       head + "never: [{program: rm}]\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Error(t, validate(t, []byte(text)))
			_, err := guard.ParsePolicy([]byte(text))
			require.Error(t, err)
		})
	}
	for name, text := range map[string]string{ // only the schema refuses these
		"tier 4":                 head + "programs: {cat: {tier: 4}}\n",
		"what a program prints":  head + "programs: {cat: {tier: 1, prints: words}}\n",
		"where services come of": head + "programs: {cat: {tier: 1, services: swarm}}\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Error(t, validate(t, []byte(text)))
		})
	}
}

// TestSchemaHasEveryKey compares the keys of the schema with the keys that the guard reads.
func TestSchemaHasEveryKey(t *testing.T) {
	t.Parallel()
	type object struct {
		Properties map[string]struct {
			Description string `json:"description"`
			Ref         string `json:"$ref"`
		} `json:"properties"`
	}
	var schema struct {
		object
		Defs map[string]object `json:"$defs"`
	}
	text, err := os.ReadFile(schemaFile)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &schema))
	for name, tt := range map[string]struct {
		schema object
		read   reflect.Type
	}{
		"policy": {schema.object, reflect.TypeFor[guard.Policy]()},
		"limits": {schema.Defs["limits"], reflect.TypeFor[guard.Limits]()},
		"use":    {schema.Defs["use"], reflect.TypeFor[guard.Use]()},
		"never":  {schema.Defs["never"], reflect.TypeFor[guard.Never]()},
	} {
		var keys []string
		for field := range tt.read.Fields() {
			if key := field.Tag.Get("yaml"); key != "" {
				keys = append(keys, key)
			}
		}
		require.NotEmpty(t, keys)
		require.ElementsMatch(t, keys, slices.Collect(maps.Keys(tt.schema.Properties)), name)
		for key, property := range tt.schema.Properties {
			require.NotEmpty(t, property.Description+property.Ref, "%s: %s", name, key)
		}
	}
}

// TestExampleOfAPlan checks that the policy permits an author of Tier 2 to change the file that the example of
// docs/repositories.md names.
func TestExampleOfAPlan(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/repositories.md")
	require.NoError(t, err)
	named := regexp.MustCompile(`(?m)^- \[ \] (\S+/\S+) `).FindStringSubmatch(string(page))
	require.NotNil(t, named, "the example names a file")
	policy, err := guard.ParsePolicy(deploy.Policy)
	require.NoError(t, err)
	work := t.TempDir()
	permits := func(name string) bool {
		place := guard.Place{Dir: work, Work: []string{work}}
		return guard.New(policy, guard.Host{}).Open(2, place, filepath.Join(work, name), true).Allowed
	}
	require.True(t, permits(named[1]), named[1])
	require.False(t, permits("compose.yaml"))
}
