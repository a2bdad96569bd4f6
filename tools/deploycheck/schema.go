package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"sigs.k8s.io/kustomize/kyaml/openapi"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// newer lists fields that the schemas in kustomize do not contain. These schemas are for Kubernetes 1.21, and the
// fields were added later.
var newer = []string{"PodDisruptionBudget.spec.unhealthyPodEvictionPolicy"}

// checkObject validates an object against the schema of its kind. It reports unknown fields, missing fields and wrong
// types.
func checkObject(object map[string]any) []string {
	kind := yaml.TypeMeta{APIVersion: fmt.Sprint(object["apiVersion"]), Kind: fmt.Sprint(object["kind"])}
	if kind.Kind == "ScaledObject" {
		return checkScaledObject(object)
	}
	schema := openapi.SchemaForResourceType(kind)
	if schema == nil {
		return []string{"there is no schema for " + kind.APIVersion}
	}
	v := validator{}
	v.validate(schema, object, kind.Kind)
	return v.found
}

// validator collects the findings about one object.
type validator struct{ found []string }

func (v *validator) report(path, format string, arguments ...any) {
	v.found = append(v.found, path+" "+fmt.Sprintf(format, arguments...))
}

// validate compares value with its schema. The argument path is the location of value in the object.
func (v *validator) validate(schema *openapi.ResourceSchema, value any, path string) {
	kind := "object"
	if len(schema.Schema.Type) > 0 {
		kind = schema.Schema.Type[0]
	}
	switch value := value.(type) {
	case map[string]any:
		if kind == "object" {
			v.validateObject(schema, value, path)
			return
		}
	case []any:
		if kind == "array" {
			for i, element := range value {
				v.validate(schema.Elements(), element, fmt.Sprintf("%s[%d]", path, i))
			}
			return
		}
	case string:
		if kind == "string" {
			return
		}
	case bool:
		if kind == "boolean" {
			return
		}
	case int, int64, float64:
		if kind == "integer" || kind == "number" || schema.Schema.Format == "int-or-string" {
			return
		}
	}
	v.report(path, "is %v; it must be of type %s", value, kind)
}

func (v *validator) validateObject(schema *openapi.ResourceSchema, object map[string]any, path string) {
	for _, name := range schema.Schema.Required {
		if _, there := object[name]; !there {
			v.report(path, "lacks %s", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		below := path + "." + name
		field := schema.Field(name)
		switch {
		case field != nil:
			v.validate(field, object[name], below)
		case len(schema.Schema.Properties) > 0 && !slices.Contains(newer, below):
			v.report(below, "is unknown")
		}
	}
}

// scaledObject holds the fields of KEDA's ScaledObject that this project uses. KEDA's own module would take minutes to
// compile.
type scaledObject struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Metadata   map[string]any `json:"metadata"`
	Spec       struct {
		ScaleTargetRef  struct{ APIVersion, Kind, Name string } `json:"scaleTargetRef"`
		MinReplicaCount int                                     `json:"minReplicaCount"`
		MaxReplicaCount int                                     `json:"maxReplicaCount"`
		PollingInterval int                                     `json:"pollingInterval"`
		Triggers        []scaleTrigger                          `json:"triggers"`
		Fallback        struct {
			FailureThreshold int    `json:"failureThreshold"`
			Replicas         int    `json:"replicas"`
			Behavior         string `json:"behavior"`
		} `json:"fallback"`
		Advanced struct {
			ScalingModifiers struct {
				Formula    string `json:"formula"`
				MetricType string `json:"metricType"`
				Target     string `json:"target"`
			} `json:"scalingModifiers"`
			HorizontalPodAutoscalerConfig struct {
				Behavior map[string]scaleRules `json:"behavior"`
			} `json:"horizontalPodAutoscalerConfig"`
		} `json:"advanced"`
	} `json:"spec"`
}

type scaleTrigger struct {
	Type              string            `json:"type"`
	Name              string            `json:"name"`
	Metadata          map[string]string `json:"metadata"`
	AuthenticationRef *struct {
		Name string `json:"name"`
	} `json:"authenticationRef"`
}

type scaleRules struct {
	StabilizationWindowSeconds int    `json:"stabilizationWindowSeconds"`
	SelectPolicy               string `json:"selectPolicy"`
	Policies                   []struct {
		Type          string `json:"type"`
		Value         int    `json:"value"`
		PeriodSeconds int    `json:"periodSeconds"`
	} `json:"policies"`
}

// triggerKeys lists the metadata keys of the KEDA scalers that this project uses, from KEDA 2.22. The value true marks
// a required key.
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

// checkScaledObject checks the fields and the triggers of a ScaledObject. Unknown fields are errors.
func checkScaledObject(object map[string]any) (found []string) {
	encoded, err := json.Marshal(object)
	if err != nil {
		return []string{err.Error()}
	}
	decoder := json.NewDecoder(bytes.NewReader(encoded))
	decoder.DisallowUnknownFields()
	var scaled scaledObject
	if err := decoder.Decode(&scaled); err != nil {
		return []string{err.Error()}
	}
	if scaled.APIVersion != "keda.sh/v1alpha1" {
		found = append(found, "apiVersion is "+scaled.APIVersion)
	}
	for _, trigger := range scaled.Spec.Triggers {
		known := triggerKeys[trigger.Type]
		for key := range trigger.Metadata {
			if _, there := known[key]; !there {
				found = append(found, fmt.Sprintf("trigger %s: %s is unknown", trigger.Type, key))
			}
		}
		for key, required := range known {
			if required && trigger.Metadata[key] == "" {
				found = append(found, fmt.Sprintf("trigger %s lacks %s", trigger.Type, key))
			}
		}
	}
	return found
}
