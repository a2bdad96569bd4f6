package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/yannh/kubeconform/pkg/resource"
	"github.com/yannh/kubeconform/pkg/validator"
	"sigs.k8s.io/yaml"
)

// schemas validates objects with kubeconform, which rejects unknown fields. It holds the schemas of the Kubernetes and
// the KEDA in tools/kubernetes/go.mod.
type schemas struct{ validator.Validator }

// newSchemas reads the schemas from the modules, which it downloads if they are missing. It needs the directory
// temporary until the last object is validated.
func newSchemas(temporary string) (schemas, error) {
	kubernetes, err := module("k8s.io/kubernetes")
	if err != nil {
		return schemas{}, err
	}
	keda, err := module("github.com/kedacore/keda/v2")
	if err != nil {
		return schemas{}, err
	}
	if err := writeBuiltIn(temporary, filepath.Join(kubernetes, "api", "openapi-spec", "swagger.json")); err != nil {
		return schemas{}, err
	}
	if err := writeCustom(temporary, filepath.Join(keda, "config", "crd", "bases", "keda.sh_scaledobjects.yaml")); err != nil {
		return schemas{}, err
	}
	kubeconform, err := validator.New([]string{filepath.Join(temporary, "{{.ResourceKind}}{{.KindSuffix}}.json")},
		validator.Opts{Strict: true})
	return schemas{kubeconform}, err
}

// module returns the directory of a module that tools/kubernetes/go.mod pins. Go compares its contents with go.sum.
func module(path string) (string, error) {
	download := exec.Command("go", "mod", "download", "-json", path)
	// In a test, the working directory is below that of the command.
	for _, directory := range []string{"tools/kubernetes", "../kubernetes"} {
		if _, err := os.Stat(directory); err == nil {
			download.Dir = directory
		}
	}
	download.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off")
	out, err := download.Output()
	var found struct{ Dir, Error string }
	if decoded := json.Unmarshal(out, &found); err == nil {
		err = decoded
	}
	if found.Error != "" {
		err = errors.New(found.Error)
	}
	if err != nil {
		return "", fmt.Errorf("schemas of %s: %w", path, err)
	}
	return found.Dir, nil
}

// writeBuiltIn writes a schema for each kind of Kubernetes's API. Kinds share one file of definitions.
func writeBuiltIn(directory, swagger string) error {
	content, err := os.ReadFile(swagger)
	if err != nil {
		return err
	}
	var api struct {
		Definitions map[string]map[string]any `json:"definitions"`
	}
	if err := json.Unmarshal(content, &api); err != nil {
		return err
	}
	for name, definition := range api.Definitions {
		strict(definition)
		kinds, _ := definition["x-kubernetes-group-version-kind"].([]any)
		if len(kinds) != 1 {
			continue // a part of an object, or an object of all groups, such as DeleteOptions
		}
		reference := map[string]any{"$ref": "definitions.json#/definitions/" + name}
		group, version, kind := text(kinds[0], "group"), text(kinds[0], "version"), text(kinds[0], "kind")
		if err := writeSchema(directory, group, version, kind, reference); err != nil {
			return err
		}
	}
	encoded, err := json.Marshal(api)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(directory, "definitions.json"), encoded, 0o600)
}

// writeCustom writes a schema for each version of a CustomResourceDefinition.
func writeCustom(directory, path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var definition struct {
		Spec struct {
			Group string                `json:"group"`
			Names struct{ Kind string } `json:"names"`

			Versions []struct {
				Name   string `json:"name"`
				Schema struct {
					OpenAPIV3Schema map[string]any `json:"openAPIV3Schema"`
				} `json:"schema"`
			} `json:"versions"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(content, &definition); err != nil {
		return err
	}
	for _, version := range definition.Spec.Versions {
		schema := version.Schema.OpenAPIV3Schema
		strict(schema)
		if err := writeSchema(directory, definition.Spec.Group, version.Name, definition.Spec.Names.Kind, schema); err != nil {
			return err
		}
	}
	return nil
}

// writeSchema writes a schema where kubeconform looks for it: {{.ResourceKind}}{{.KindSuffix}}.json. The suffix is the
// first word of the group, if there is one, and the version.
func writeSchema(directory, group, version, kind string, schema any) error {
	words := []string{kind, version}
	if group != "" {
		first, _, _ := strings.Cut(group, ".")
		words = []string{kind, first, version}
	}
	encoded, err := json.Marshal(schema)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(directory, strings.ToLower(strings.Join(words, "-"))+".json"), encoded, 0o600)
}

// strict turns a schema of OpenAPI into one of JSON that permits no unknown fields. OpenAPI has words of its own for a
// number or a text.
func strict(schema any) {
	switch schema := schema.(type) {
	case []any:
		for _, element := range schema {
			strict(element)
		}
	case map[string]any:
		for _, value := range schema {
			strict(value)
		}
		if schema["format"] == "int-or-string" || schema["x-kubernetes-int-or-string"] == true {
			schema["type"] = []string{"integer", "string"}
		}
		_, fields := schema["properties"].(map[string]any)
		if fields && schema["additionalProperties"] == nil && schema["x-kubernetes-preserve-unknown-fields"] == nil {
			schema["additionalProperties"] = false
		}
	}
}

// check validates an object against the schema of its kind.
func (s schemas) check(object map[string]any) []string {
	encoded, err := json.Marshal(object)
	if err != nil {
		return []string{err.Error()}
	}
	result := s.ValidateResource(resource.Resource{Bytes: encoded})
	if result.Status == validator.Valid {
		return checkTriggers(object)
	}
	return []string{result.Err.Error()}
}

// triggerKeys lists the metadata keys of the KEDA scalers that this project uses, from KEDA 2.18. The schema of a
// ScaledObject permits every key. The value true marks a required key.
var triggerKeys = map[string]map[string]bool{
	"temporal": {
		"endpoint": true, "taskQueue": true, "namespace": false, "targetQueueSize": false,
		"activationTargetQueueSize": false, "queueTypes": false, "workerDeploymentName": false,
		"workerDeploymentBuildId": false, "includeRunningWorkflowCount": false, "minConnectTimeout": false,
		"unsafeSsl": false, "tlsServerName": false,
	},
	"prometheus": {
		"serverAddress": true, "query": true, "threshold": true, "activationThreshold": false, "namespace": false,
		"customHeaders": false, "ignoreNullValues": false, "queryParameters": false, "unsafeSsl": false,
		"timeout": false,
	},
}

// checkTriggers checks the metadata of the triggers of a ScaledObject.
func checkTriggers(object map[string]any) (found []string) {
	triggers, _ := at(object, "spec", "triggers").([]any)
	for _, trigger := range triggers {
		kind := text(trigger, "type")
		metadata, _ := at(trigger, "metadata").(map[string]any)
		known := triggerKeys[kind]
		for key := range metadata {
			if _, there := known[key]; !there {
				found = append(found, fmt.Sprintf("trigger %s: %s is unknown", kind, key))
			}
		}
		for key, required := range known {
			if required && metadata[key] == nil {
				found = append(found, fmt.Sprintf("trigger %s lacks %s", kind, key))
			}
		}
	}
	return found
}
