package simtest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

type run struct {
	Exit    int
	Stderr  string
	Events  []string
	Results []result
	Files   map[string]string
	Models  map[string]model
	Status  *int
	hidden  int
}

type result struct {
	Reason string
	Turns  int
}

type model struct{ Cost float64 }

func TestCompare(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		expected, got run
		want          []string
	}{
		"nothing": {
			expected: run{Exit: 1, Events: []string{"a"}, Results: []result{{"x", 1}}, Models: map[string]model{"m": {1}}, Status: new(401), hidden: 1},
			got:      run{Exit: 1, Events: []string{"a"}, Results: []result{{"x", 1}}, Models: map[string]model{"m": {1}}, Status: new(401), hidden: 2},
		},
		"plain fields": {
			expected: run{Exit: 1, Stderr: "Error: a"}, got: run{Stderr: "Error: b"},
			want: []string{`Exit: expected 1, got 0`, `Stderr: expected "Error: a", got "Error: b"`},
		},
		"a nil list is an empty one": {expected: run{Events: []string{}}, got: run{}},
		"one element": {
			expected: run{Events: []string{"a", "b", "c"}}, got: run{Events: []string{"a", "x", "c"}},
			want: []string{`Events[1]: expected "b", got "x"`},
		},
		"an element more": {
			expected: run{Events: []string{"a", "c"}}, got: run{Events: []string{"a", "b", "c"}},
			want: []string{`Events[1]: expected nothing, got "b"`},
		},
		"an element less, twice": {
			expected: run{Events: []string{"a", "b", "b", "b", "c"}}, got: run{Events: []string{"a", "b", "c"}},
			want: []string{`Events[2:]: expected "b", "b", got nothing`},
		},
		"the rest": {
			expected: run{Events: []string{"a", "b"}}, got: run{Events: []string{"c", "d", "e"}},
			want: []string{`Events[0:]: expected "a", "b", got "c", "d", "e"`},
		},
		"elements of as many structs": {
			expected: run{Results: []result{{"x", 1}, {"y", 2}}}, got: run{Results: []result{{"z", 1}, {"y", 3}}},
			want: []string{`Results[0].Reason: expected "x", got "z"`, `Results[1].Turns: expected 2, got 3`},
		},
		"the first of more structs": {
			expected: run{Results: []result{{"x", 1}}}, got: run{Results: []result{{"y", 2}, {"x", 1}, {"z", 1}}},
			want: []string{`Results: expected 1 entry, got 3 entries`, `Results[0].Reason: expected "x", got "y"`, `Results[0].Turns: expected 1, got 2`},
		},
		"only the first that differs of more structs": {
			expected: run{Results: []result{{"x", 1}, {"y", 1}}}, got: run{Results: []result{{"y", 1}, {"z", 1}, {"x", 1}}},
			want: []string{`Results: expected 2 entries, got 3 entries`, `Results[0].Reason: expected "x", got "y"`},
		},
		"maps, sorted": {
			expected: run{Files: map[string]string{"b": "created", "c": "same", "d": "gone"}, Models: map[string]model{"haiku": {1.5}}},
			got:      run{Files: map[string]string{"a": "created", "b": "appended", "c": "same"}, Models: map[string]model{"haiku": {2}}},
			want: []string{
				`Files[a]: expected nothing, got "created"`, `Files[b]: expected "created", got "appended"`,
				`Files[d]: expected "gone", got nothing`, `Models[haiku].Cost: expected 1.5, got 2`,
			},
		},
		"pointers": {
			expected: run{Status: new(529)}, got: run{}, want: []string{`Status: expected 529, got nothing`},
		},
		"what pointers point to": {
			expected: run{Status: new(529)}, got: run{Status: new(500)}, want: []string{`Status: expected 529, got 500`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, differences(c.expected, c.got))
		})
	}
}

func TestCompareValues(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{`value: expected "a", got "b"`}, differences("a", "b"))
	require.Equal(t, []string{`x: expected 1, got nothing`}, differences(map[string]int{"x": 1}, nil))
}
