package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// line returns an event as `go test -json` prints it.
func line(action, test, output string) string {
	return `{"Action":"` + action + `","Package":"example.org/p","Test":"` + test + `","Output":"` + output + `"}` + "\n"
}

func TestRun(t *testing.T) {
	t.Parallel()
	passes := line("run", "TestPasses", "") + line("output", "TestPasses", "fine") + line("pass", "TestPasses", "")
	subtestFails := line("run", "TestRow", "") + line("run", "TestRow/one", "") + line("output", "TestRow/one", "lost a race") +
		line("fail", "TestRow/one", "") + line("fail", "TestRow", "")
	subtestPasses := line("run", "TestRow", "") + line("run", "TestRow/one", "") + line("output", "TestRow/one", "won it") +
		line("pass", "TestRow/one", "") + line("pass", "TestRow", "")
	alwaysFails := strings.Repeat(line("run", "TestBroken", "")+line("fail", "TestBroken", ""), 3)
	failsLast := line("run", "TestWorse", "") + line("fail", "TestWorse", "") + line("pass", "TestWorse", "") + line("fail", "TestWorse", "")
	for name, tt := range map[string]struct{ events, printed, reported string }{
		"nothing failed":               {"not JSON\n" + passes, "", ""},
		"failed, then passed":          {passes + subtestFails + subtestPasses, "FLAKY example.org/p.TestRow/one\n", "=== example.org/p.TestRow/one failed first with\nlost a race\n"},
		"failed every time":            {passes + alwaysFails, "", ""},
		"failed last":                  {failsLast, "", ""},
		"first failure of two is kept": {subtestFails + strings.ReplaceAll(subtestFails, "lost", "lost again") + subtestPasses, "FLAKY example.org/p.TestRow/one\n", "=== example.org/p.TestRow/one failed first with\nlost a race\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			events, report := filepath.Join(dir, "events.json"), filepath.Join(dir, "flaky.txt")
			if err := os.WriteFile(events, []byte(tt.events), 0o600); err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			if err := run([]string{report, events}, &out); err != nil {
				t.Fatal(err)
			}
			reported, err := os.ReadFile(report)
			if err != nil {
				t.Fatal(err)
			}
			if out.String() != tt.printed || string(reported) != tt.reported {
				t.Errorf("printed %q, want %q; reported %q, want %q", out.String(), tt.printed, reported, tt.reported)
			}
		})
	}
}

func TestRunRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, args := range [][]string{nil, {"report"}, {"report", filepath.Join(dir, "missing.json")}} {
		if err := run(args, &bytes.Buffer{}); err == nil {
			t.Errorf("%q was accepted", args)
		}
	}
}
