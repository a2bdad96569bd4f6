package claudesim

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
)

// schema is the supported part of JSON Schema: types, required properties, enumerations, properties and items. Other
// keywords are ignored.
type schema struct {
	Type       schemaType         `json:"type"`
	Required   []string           `json:"required"`
	Properties map[string]*schema `json:"properties"`
	Items      *schema            `json:"items"`
	Enum       []any              `json:"enum"`
	// Additional is false if the schema forbids properties that it does not list.
	Additional *additional `json:"additionalProperties"`
}

// schemaType is one type name, or several.
type schemaType []string

// UnmarshalJSON implements json.Unmarshaler. It accepts one name or a list of names, and validates the names.
func (t *schemaType) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*t = schemaType{one}
	} else if err := json.Unmarshal(data, (*[]string)(t)); err != nil {
		return fmt.Errorf("data/type must be a string or an array: %w", err)
	}
	known := []string{"object", "array", "string", "number", "integer", "boolean", "null"}
	for _, name := range *t {
		if !slices.Contains(known, name) {
			return fmt.Errorf("data/type must be equal to one of the allowed values")
		}
	}
	return nil
}

// additional is the value of additionalProperties. Any value except false counts as true.
type additional bool

// UnmarshalJSON implements json.Unmarshaler.
func (a *additional) UnmarshalJSON(data []byte) error {
	*a = additional(string(data) != "false")
	return nil
}

func parseSchema(data []byte) (*schema, error) {
	var s schema
	if err := json.Unmarshal(data, &s); err != nil {
		return nil, fmt.Errorf("parse schema: %w", err)
	}
	return &s, nil
}

// check returns the first violation of the schema in the JSON document data, in the CLI's words. If there is no
// violation, check returns "".
func (s *schema) check(data []byte) string {
	var value any
	if err := json.Unmarshal(data, &value); err != nil {
		return "root: " + err.Error()
	}
	return s.checkValue("root", value)
}

func (s *schema) checkValue(place string, value any) string {
	if s == nil {
		return ""
	}
	if len(s.Type) > 0 && !slices.ContainsFunc(s.Type, func(name string) bool { return hasType(name, value) }) {
		return fmt.Sprintf("%s: must be %s", place, s.Type[0])
	}
	if s.Enum != nil && !slices.ContainsFunc(s.Enum, func(e any) bool { return reflect.DeepEqual(e, value) }) {
		return place + ": must be equal to one of the allowed values"
	}
	switch v := value.(type) {
	case map[string]any:
		return s.checkObject(place, v)
	case []any:
		for i, item := range v {
			if problem := s.Items.checkValue(child(place, fmt.Sprint(i)), item); problem != "" {
				return problem
			}
		}
	}
	return ""
}

func (s *schema) checkObject(place string, object map[string]any) string {
	for _, name := range s.Required {
		if _, ok := object[name]; !ok {
			return fmt.Sprintf("%s: must have required property '%s'", place, name)
		}
	}
	for name, value := range object {
		property, known := s.Properties[name]
		if !known && s.Additional != nil && !bool(*s.Additional) {
			return place + ": must NOT have additional properties"
		}
		if problem := property.checkValue(child(place, name), value); problem != "" {
			return problem
		}
	}
	return ""
}

func child(place, name string) string {
	if place == "root" {
		place = ""
	}
	return place + "/" + name
}

func hasType(name string, value any) bool {
	switch v := value.(type) {
	case nil:
		return name == "null"
	case bool:
		return name == "boolean"
	case string:
		return name == "string"
	case float64:
		return name == "number" || (name == "integer" && v == float64(int64(v)))
	case []any:
		return name == "array"
	default:
		return name == "object"
	}
}
