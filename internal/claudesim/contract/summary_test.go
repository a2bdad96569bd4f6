package contract_test

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/claudesim/contract"
)

const pkg = "example.org/ops/internal/claudesim"

// events builds output of `go test -json`.
type events struct{ text strings.Builder }

func (e *events) add(fields map[string]any) {
	line, _ := json.Marshal(fields) // plain values always encode
	e.text.Write(append(line, '\n'))
}

// test adds a test that prints output and ends with action. If action is empty, the test does not end.
func (e *events) test(name, action string, output ...string) {
	e.add(map[string]any{"Action": "run", "Package": pkg, "Test": name})
	for _, line := range output {
		e.add(map[string]any{"Action": "output", "Package": pkg, "Test": name, "Output": line + "\n"})
	}
	if action != "" {
		e.add(map[string]any{"Action": action, "Package": pkg, "Test": name, "Elapsed": 1.5})
	}
}

func (e *events) attribute(test, key, value string) {
	e.add(map[string]any{"Action": "attr", "Package": pkg, "Test": test, "Key": key, "Value": value})
}

// held adds the attribute with the CLI that a test ran.
func (e *events) held(test, subject string) { e.attribute(test, contract.SubjectAttribute, subject) }

func (e *events) differ(test string, d contract.Difference) {
	e.attribute(test, contract.Attribute, d.Encode())
}

// end adds the end of the package.
func (e *events) end(action string) {
	e.add(map[string]any{"Action": action, "Package": pkg, "Elapsed": 9})
}

// list returns the list, the progress lines and the log that result from the events.
func (e *events) list(t *testing.T) (list, progress, log string, same bool) {
	t.Helper()
	var printed, during, said strings.Builder
	summary, err := contract.Read(strings.NewReader(e.text.String()), &during, &said)
	require.NoError(t, err)
	same, err = summary.Print(&printed)
	require.NoError(t, err)
	var lines []string
	for line := range strings.Lines(printed.String()) {
		lines = append(lines, strings.TrimRight(line, " \n"))
	}
	return strings.Join(lines, "\n"), during.String(), said.String(), same
}

func TestNothingDiffers(t *testing.T) {
	t.Parallel()
	var e events
	for _, version := range []string{"2.1.197", "2.1.330"} {
		name := "TestContract/" + version + "/fork"
		e.test(name+"/stand-in", "pass")
		e.held(name+"/real", "claude "+version)
		e.test(name+"/real", "pass", "=== RUN")
		e.test(name, "pass")
	}
	e.test("TestContract", "pass")
	e.end("pass")
	list, progress, log, same := e.list(t)
	require.True(t, same)
	require.Equal(t, "\nheld to the contract: claude 2.1.197, claude 2.1.330\n0 of 2 cases differ", list)
	require.Equal(t, "ok      claudesim: 2.1.197/fork\nok      claudesim: 2.1.330/fork\n", progress)
	require.Equal(t, "=== RUN\n=== RUN\n", log)
}

// TestTheList checks the complete output for a run with differences.
func TestTheList(t *testing.T) {
	t.Parallel()
	source := filepath.Join(t.TempDir(), "x_test.go")
	require.NoError(t, os.WriteFile(source, []byte("package x\n\n\t\trequire.Positive(t, result.Cost, \"of %s\", model)\n"), 0o600))
	var e events
	e.held("TestContract/2.1.400/resume/real", "claude 2.1.400, by what 2.1.330 does")
	e.differ("TestContract/2.1.400/resume", contract.Difference{Launch: 2, Field: "Results[0].Cost", Expected: "2", Got: "1"})
	e.differ("TestContract/2.1.400/resume", contract.Difference{Launch: 1, Field: "Results[1].Cost", Expected: "1", Got: "0"})
	e.differ("TestContract/2.1.400/resume", contract.Difference{Launch: 1, Field: "Events[3]", Expected: `"a b"`, Got: "nothing"})
	e.test("TestContract/2.1.400/resume/real", "fail", "    x_test.go:9: follows from the above")
	e.test("TestContract/2.1.400/resume", "fail")
	e.differ("TestContract/2.1.400/fork", contract.Difference{Launch: 1, Field: "Results[0].Cost", Expected: "1\n\t2", Got: "0"})
	e.test("TestContract/2.1.400/fork", "fail")
	e.test("TestContract/2.1.400/budget/real", "fail", "    x_test.go:2: a log", "    x_test.go:3: ", "        \tError Trace:\t"+source+":3",
		"        \t            \t\t\t\tanother.go:7", "        \tError:      \t\"0\" is not positive", "        \tTest:       \tTestContract",
		"        \tMessages:   \tof haiku", "--- FAIL: TestContract (0.00s)")
	e.test("TestContract/2.1.400/budget", "fail")
	e.test("TestContract/2.1.400/kept", "pass")
	e.test("TestContract/2.1.400/git", "skip", "    x_test.go:5: needs git")
	e.test("TestContract", "fail")
	e.test("TestContractWriting/2.1.400", "fail", "    gone_test.go:4: ", "        \tError Trace:\t/gone_test.go:4", "        \tError:      \tNot equal: ",
		"        \t            \texpected: 1", "        \t            \tactual  : 2", "        \t            \t", "        \tTest:       \tTestContractWriting")
	e.test("TestContractWriting", "fail")
	e.test("TestContractRules/2.1.400", "fail", "    gone_test.go:5: ", "        \tError:      \tShould be false", "        \tMessages:   \tis estimated")
	e.test("TestContractRules", "fail")
	e.end("fail")
	list, progress, _, same := e.list(t)
	require.False(t, same)
	require.Equal(t, `
CASE                LAUNCH  FIELD                                              EXPECTED  GOT
claudesim: Rules    -       gone_test.go:5                                     false     true (is estimated)
claudesim: Writing  -       gone_test.go:4                                     1         2
claudesim: budget   -       x_test.go:3 Positive(result.Cost, "of %s", model)  -         "0" is not positive (of haiku)
claudesim: fork     1       Results[0].Cost                                    1 2       0
claudesim: resume   1       Events[3]                                          "a b"     nothing
claudesim: resume   1       Results[1].Cost                                    1         0
claudesim: resume   2       Results[0].Cost                                    2         1

CASES  DIFFER IN
2      Results[].Cost
1      Events[]
1      gone_test.go:4
1      gone_test.go:5
1      x_test.go:3 Positive(result.Cost, "of %s", model)

skipped claudesim: git: needs git
held to the contract: claude 2.1.400, by what 2.1.330 does
5 of 6 cases differ`, list)
	require.Equal(t, `DIFFERS claudesim: 2.1.400/resume
DIFFERS claudesim: 2.1.400/fork
DIFFERS claudesim: 2.1.400/budget
ok      claudesim: 2.1.400/kept
skipped claudesim: 2.1.400/git
DIFFERS claudesim: Writing/2.1.400
DIFFERS claudesim: Rules/2.1.400
`, progress)
}

func TestTheStandInThatIsWrong(t *testing.T) {
	t.Parallel()
	var e events
	e.test("TestContract/2.1.330/fork/stand-in", "fail", "    x_test.go:5: gone")
	e.held("TestContract/2.1.330/fork/real", "claude 2.1.330")
	e.test("TestContract/2.1.330/fork/real", "pass")
	e.test("TestContract/2.1.330/fork", "fail")
	list, _, _, same := e.list(t)
	require.False(t, same)
	require.Contains(t, list, "claudesim: fork (stand-in)  -       x_test.go:5  -         gone\n")
	require.Contains(t, list, "1 of 1 cases differ")
}

// TestWhatCannotBeTold covers runs that must not count as a success, because they tested no real CLI or did not
// complete.
func TestWhatCannotBeTold(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		make func(e *events)
		want []string
	}{
		"nothing ran":                  {func(*events) {}, []string{"no real CLI", "0 of 0 cases differ"}},
		"every case was skipped":       {func(e *events) { e.test("TestContract/a", "skip", "    x.go:1: not installed") }, []string{"skipped claudesim: a: not installed", "0 of 0"}},
		"only the stand-in was played": {func(e *events) { e.test("TestContract/a/stand-in", "pass"); e.test("TestContract/a", "pass") }, []string{"no real CLI", "0 of 1"}},
		"a package that does not build": {func(e *events) {
			e.held("TestContract/a", "claude 1")
			e.test("TestContract/a", "pass")
			e.end("pass")
			e.add(map[string]any{"Action": "build-output", "ImportPath": "example.org/b [b.test]", "Output": "# example.org/b\nb.go:3:1: undefined: x\n"})
			e.add(map[string]any{"Action": "build-fail", "ImportPath": "example.org/b [b.test]"})
			e.add(map[string]any{"Action": "output", "Package": "example.org/b", "Output": "FAIL\texample.org/b [build failed]\n"})
			e.add(map[string]any{"Action": "fail", "Package": "example.org/b", "FailedBuild": "example.org/b [b.test]"})
		}, []string{"b.go:3:1: undefined: x", "1 of 2 cases differ"}},
		"a test that never ended": {func(e *events) {
			e.held("TestContract/a", "claude 1")
			e.test("TestContract/a", "", "panic: test timed out after 20m0s", "", "goroutine 7 [running]:")
			e.test("TestContract/b", "pass")
			e.end("fail")
		}, []string{"claudesim: a  -       -      an end    panic: test timed out after 20m0s", "1 of 2 cases differ"}},
		"a test that says nothing": {func(e *events) {
			e.held("TestContract/a", "claude 1")
			e.test("TestContract/a", "fail")
		}, []string{"a failure without a reason", "1 of 1"}},
		"a parent that fails by itself": {func(e *events) {
			e.held("TestContract/a", "claude 1")
			e.test("TestContract/a", "pass")
			e.test("TestContract", "fail", "    x_test.go:2: no server")
		}, []string{"no server", "1 of 2"}},
		"a line of go itself": {func(e *events) { e.text.WriteString("go: cannot find module\n") }, []string{"0 of 0"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var e events
			c.make(&e)
			list, _, _, same := e.list(t)
			require.False(t, same)
			for _, want := range c.want {
				require.Contains(t, list, want)
			}
		})
	}
}

// TestLongValuesAreCutToWhereTheyDiffer covers long values such as prompts and paths.
func TestLongValuesAreCutToWhereTheyDiffer(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("0123456789", 20)
	var e events
	e.held("TestContract/a", "claude 1")
	e.differ("TestContract/a", contract.Difference{Field: "Stderr", Expected: long + "old" + long, Got: long + "new" + long})
	e.differ("TestContract/a", contract.Difference{Field: "Text", Expected: long, Got: "short"})
	e.test("TestContract/a", "fail")
	list, _, _, _ := e.list(t)
	require.Contains(t, list, "…4567890123456789old0123456789012345678901234567890123456789012…")
	require.Contains(t, list, "…4567890123456789new0123456789012345678901234567890123456789012…")
	require.Contains(t, list, "01234567890123456789012345678901234567890123456789012345678901…   short")
}

func TestReadAndPrintTellWhatFails(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	_, err := contract.Read(io.MultiReader(strings.NewReader("{}\n"), failing{broken}), io.Discard, io.Discard)
	require.ErrorIs(t, err, broken)
	_, err = contract.Read(strings.NewReader(`{"Output":"x"}`), io.Discard, failing{broken})
	require.ErrorIs(t, err, broken)
	summary, err := contract.Read(strings.NewReader(""), io.Discard, io.Discard)
	require.NoError(t, err)
	_, err = summary.Print(failing{broken})
	require.ErrorIs(t, err, broken)
}

// failing is a reader and writer that fails.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error)  { return 0, f.err }
func (f failing) Write([]byte) (int, error) { return 0, f.err }
