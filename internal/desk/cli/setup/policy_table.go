package setup

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/cell/guard"
	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/plant/program"
)

func (a *app) testTableCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "test FILE",
		Short: "Say which calls of a table are decided otherwise than it expects; nothing is run",
		Long: "Test reads a table of calls (- is standard input), a JSON object a line with the fields tier, command " +
			"and allowed,\nfor other tools than Bash with tool and input instead of command, and perhaps a note. " +
			"Blank lines and lines that begin\nwith # count for nothing. A call that is decided while it runs " +
			"differs from no expectation. It ends with 0 if all calls\nare decided as expected, with 3 if some are " +
			"not, and with 2 if the table cannot be read.",
		Example: `  echo '{"tier":1,"command":"docker restart web","allowed":false}' | claudeops policy test -`,
		Args:    console.OneArgument,
		RunE:    func(_ *cobra.Command, args []string) error { return a.testTable(args[0], dir) },
	}
	addDirFlag(cmd, &dir)
	return cmd
}

// tableRow is a row of a table of calls.
type tableRow struct {
	operations.Call

	Allowed *bool  `json:"allowed"`
	Note    string `json:"note"`
	line    int
}

// testResult is the result of `policy test`.
type testResult struct {
	Calls int `json:"calls"`
	// AtRun counts the calls on which the rest is decided while they run. They differ from no expectation.
	AtRun  int          `json:"at_run"`
	Differ []difference `json:"differ"`
}

// difference is a call for which the guard's decision differs from the expected decision.
type difference struct {
	operations.Call

	Line     int    `json:"line"`
	Note     string `json:"note,omitempty"`
	Expected bool   `json:"expected"`
	Allowed  bool   `json:"allowed"`
	Rule     string `json:"rule"`
	Reason   string `json:"reason"`
}

func (a *app) testTable(file, dir string) error {
	rows, err := a.readTable(file)
	if err != nil {
		return program.Misuse(err)
	}
	checker, err := a.Operations.Policy.Checker(dir)
	if err != nil {
		return err
	}
	result := testResult{Calls: len(rows), Differ: []difference{}}
	for _, row := range rows {
		got, err := checker.Decide(row.Call)
		if err != nil {
			return err
		}
		if got.Verdict() == guard.AtRun {
			result.AtRun++
			continue
		}
		if got.Allowed != *row.Allowed {
			result.Differ = append(result.Differ, difference{
				row.Call, row.line, row.Note, *row.Allowed, got.Allowed, got.Rule, got.Reason,
			})
		}
	}
	if err := a.Print(result, func(w io.Writer) { writeTestResult(w, result) }); err != nil {
		return err
	}
	if differ := len(result.Differ); differ > 0 {
		return program.WithCode(console.ExitDenied, fmt.Errorf("%d of %d calls are not decided as expected", differ,
			result.Calls))
	}
	return nil
}

// readTable reads a table of calls. An error names the line of the table.
func (a *app) readTable(file string) (_ []tableRow, err error) {
	from, name := a.Stdin, "standard input"
	if file != "-" {
		opened, err := os.Open(file) //nolint:gosec // the operator names it
		if err != nil {
			return nil, fmt.Errorf("read the table: %w", err)
		}
		defer func() { _ = opened.Close() }()
		from, name = opened, file
	}
	var rows []tableRow
	lines := bufio.NewReader(from)
	for number := 1; ; number++ {
		line, err := lines.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("read the table %s: %w", name, err)
		}
		if text := bytes.TrimSpace(line); len(text) > 0 && text[0] != '#' {
			read, problem := readRow(text)
			if problem != nil {
				return nil, fmt.Errorf("%s, line %d: %w", name, number, problem)
			}
			read.line = number
			rows = append(rows, read)
		}
		if err != nil {
			break
		}
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("%s has no call in it", name)
	}
	return rows, nil
}

// readRow decodes one line of a table. A field with an unknown name is an error, because the name can be a misspelling.
func readRow(text []byte) (tableRow, error) {
	var r tableRow
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&r); err != nil {
		return r, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return r, errors.New("there is more than one JSON object")
	}
	if r.Allowed == nil {
		return r, errors.New("allowed is missing: say true or false")
	}
	var err error
	r.Call, err = r.Complete()
	return r, err
}

func writeTestResult(w io.Writer, result testResult) {
	verdict := map[bool]string{true: "allowed", false: "denied"}
	for _, d := range result.Differ {
		call := cmp.Or(d.Command, strings.TrimSpace(d.Tool+" "+string(d.Input)))
		_, _ = fmt.Fprintf(w, "line %d, tier %d: %s\n", d.Line, int(d.Tier), console.Printable(call, longLine))
		if d.Note != "" {
			_, _ = fmt.Fprintf(w, "  note: %s\n", console.Printable(d.Note, longLine))
		}
		_, _ = fmt.Fprintf(w, "  %s, and should be %s\n", verdict[d.Allowed], verdict[d.Expected])
		_, _ = fmt.Fprintf(w, "  by: %s\n", console.Printable(d.Rule, longLine))
		if d.Reason != "" {
			_, _ = fmt.Fprintf(w, "  because: %s\n", console.Printable(d.Reason, longLine))
		}
	}
	_, _ = fmt.Fprintf(w, "%d of %d calls are decided as expected", result.Calls-len(result.Differ), result.Calls)
	if result.AtRun > 0 {
		_, _ = fmt.Fprintf(w, ", %d of them only when they run: try these with `claudeops policy run`", result.AtRun)
	}
	_, _ = fmt.Fprintln(w, ".")
}
