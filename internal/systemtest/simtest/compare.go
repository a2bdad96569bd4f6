package simtest

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// The keys of the attributes that contract tests set with testing.T.Attr. tools/contract.sh lists their values.
const (
	differenceAttribute = "contract-difference"
	// subjectAttribute describes the tested real CLI.
	subjectAttribute = "contract-subject"
)

// Compare reports a test error for every exported field in which got differs from expected. launch is the number of the
// CLI's run within the test, from 1; 0 means the whole test.
func Compare[T any](t testing.TB, launch int, expected, got T) {
	t.Helper()
	for _, difference := range differences(expected, got) {
		if launch > 0 {
			difference = fmt.Sprintf("launch %d: %s", launch, difference)
		}
		t.Attr(differenceAttribute, strings.ReplaceAll(difference, "\n", " "))
		t.Errorf("%s", difference)
	}
}

// nothing is the text for a missing value.
const nothing = "nothing"

// differences describes the differences between the exported fields of expected and got, in the order in which the
// fields are declared.
func differences[T any](expected, got T) []string {
	var c comparison
	c.values("", reflect.ValueOf(expected), reflect.ValueOf(got))
	return c.found
}

// comparison collects differences.
type comparison struct{ found []string }

func (c *comparison) add(path, expected, got string) {
	if path == "" {
		path = "value"
	}
	c.found = append(c.found, fmt.Sprintf("%s: expected %s, got %s", path, expected, got))
}

// values compares two values of the same type.
func (c *comparison) values(path string, expected, got reflect.Value) {
	switch expected.Kind() {
	case reflect.Pointer:
		if expected.IsNil() || got.IsNil() {
			c.whole(path, expected, got)
			return
		}
		c.values(path, expected.Elem(), got.Elem())
	case reflect.Struct:
		for i := range expected.NumField() {
			if field := expected.Type().Field(i); field.IsExported() {
				c.values(strings.TrimPrefix(path+"."+field.Name, "."), expected.Field(i), got.Field(i))
			}
		}
	case reflect.Map:
		c.maps(path, expected, got)
	case reflect.Slice:
		c.slices(path, expected, got)
	default:
		c.whole(path, expected, got)
	}
}

// whole compares two values with reflect.DeepEqual. It reports at most one difference.
func (c *comparison) whole(path string, expected, got reflect.Value) {
	if !reflect.DeepEqual(expected.Interface(), got.Interface()) {
		c.add(path, text(expected), text(got))
	}
}

func (c *comparison) maps(path string, expected, got reflect.Value) {
	keys := map[string]reflect.Value{}
	for _, key := range slices.Concat(expected.MapKeys(), got.MapKeys()) {
		keys[fmt.Sprint(key.Interface())] = key
	}
	for _, name := range slices.Sorted(maps.Keys(keys)) {
		place := name
		if path != "" {
			place = fmt.Sprintf("%s[%s]", path, name)
		}
		before, after := expected.MapIndex(keys[name]), got.MapIndex(keys[name])
		if before.IsValid() && after.IsValid() {
			c.values(place, before, after)
			continue
		}
		c.add(place, text(before), text(after))
	}
}

// slices compares lists. For lists of plain values it reports the differing section as one difference. Without this
// rule, an insertion or a deletion would make all later elements differ. For other lists it reports the lengths and the
// first differing element.
func (c *comparison) slices(path string, expected, got reflect.Value) {
	if isPlain(expected.Type().Elem().Kind()) {
		c.plainSlices(path, expected, got)
		return
	}
	before, after := expected.Len(), got.Len()
	if before != after {
		c.add(path, entries(before), entries(after))
	}
	for i := range min(before, after) {
		found := len(c.found)
		c.values(fmt.Sprintf("%s[%d]", path, i), expected.Index(i), got.Index(i))
		if before != after && len(c.found) > found {
			return
		}
	}
}

func (c *comparison) plainSlices(path string, expected, got reflect.Value) {
	equal := func(i, j int) bool { return expected.Index(i).Equal(got.Index(j)) }
	before, after, start := expected.Len(), got.Len(), 0
	for start < min(before, after) && equal(start, start) {
		start++
	}
	for before > start && after > start && equal(before-1, after-1) {
		before, after = before-1, after-1
	}
	switch {
	case before == start && after == start:
	case max(before, after) == start+1: // one element
		c.add(fmt.Sprintf("%s[%d]", path, start), part(expected, start, before), part(got, start, after))
	default:
		c.add(fmt.Sprintf("%s[%d:]", path, start), part(expected, start, before), part(got, start, after))
	}
}

// part returns the elements from start to end, formatted for people.
func part(list reflect.Value, start, end int) string {
	var texts []string
	for i := start; i < end; i++ {
		texts = append(texts, text(list.Index(i)))
	}
	if len(texts) == 0 {
		return nothing
	}
	return strings.Join(texts, ", ")
}

func isPlain(kind reflect.Kind) bool {
	return kind == reflect.String || kind == reflect.Bool || kind >= reflect.Int && kind <= reflect.Float64
}

func entries(n int) string {
	if n == 1 {
		return "1 entry"
	}
	return fmt.Sprintf("%d entries", n)
}

// text returns a value, formatted for people.
func text(v reflect.Value) string {
	switch {
	case !v.IsValid():
		return nothing
	case v.Kind() == reflect.String:
		return fmt.Sprintf("%q", v.String())
	case v.Kind() == reflect.Pointer && v.IsNil():
		return nothing
	case v.Kind() == reflect.Pointer:
		return text(v.Elem())
	default:
		return fmt.Sprintf("%+v", v.Interface())
	}
}
