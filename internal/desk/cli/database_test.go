package cli

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/program"
	"github.com/claudeops/claudeops/internal/systemtest/clitest"
	"github.com/claudeops/claudeops/internal/systemtest/postgrestest"
)

// TestDatabaseThatTakesNoWrites moves the name of the database from the primary to a real standby while `up` runs.
// Everybody who looks reads the name of the database and what to do: doctor, `run` with and without --wait, the chain
// and its page. The chain goes on once the name leads to the primary again. `up` does not start on a standby, nor on a
// list of servers without a primary.
func TestDatabaseThatTakesNoWrites(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts Temporal servers and PostgreSQL; not with -short")
	}
	primary := postgrestest.Start(t)
	line := postgrestest.StartLine(t, primary.URL("postgres"))
	claude, err := claudesim.Install(t.TempDir(), claudesim.Play(
		claudesim.Always(claudesim.Conclude(escalation.Verdict{Status: escalation.VerdictHealthy, Summary: "all is well"}))))
	require.NoError(t, err)
	with := func(database string) []string {
		return clitest.Environment(t, "CLAUDEOPS_CLAUDE="+claude, "PATH="+os.Getenv("PATH"), "CLAUDEOPS_DATABASE_URL="+database)
	}
	environ := with(line.URL())
	up := startUp(t, environ)
	standby := primary.StartStandby(t)
	const (
		refuses = "/postgres takes no writes, because the server is a standby or read-only: let CLAUDEOPS_DATABASE_URL name the primary, or all servers"
		noneOf  = "/postgres takes no writes, because each of its servers that answers is a standby or read-only"
	)
	environ = append(environ, "TEMPORAL_ADDRESS="+up.Temporal)
	require.Contains(t, starter(t, environ, "doctor").Stdout, "open, schema up to date, takes writes")

	line.Redirect(t, standby.URL("postgres"))
	require.Contains(t, starter(t, environ, "doctor", "-o", "json").Stdout, refuses)
	waits := onScreen(t, environ, 500, 30, "run", "--id", "first", "--wait", "--yes")
	waits.Sees("waits for OpenSession, which is tried again: open the record of session ")
	waits.Sees(refuses)
	require.Contains(t, starter(t, environ, "chain", "first").Stdout, refuses)
	require.Contains(t, pageOf(t, environ, up, "/chains/first"), refuses)
	began := starter(t, environ, "run", "--id", "second", "--yes")
	require.Equal(t, program.ExitOK, began.Code, began.Stderr)
	t.Log(began.Stdout)

	line.Redirect(t, primary.URL("postgres"))
	require.Equal(t, program.ExitOK, waits.Ends(), waits.Text())
	t.Log(waits.Text())
	waits.Sees("Outcome: healthy")
	up.interrupt(t)

	for database, want := range map[string]string{
		standby.URL("postgres"):          refuses,
		standby.URL("postgres", standby): noneOf,
	} {
		refused := starter(t, with(database), "up", "--port", "0", "--ui-port", "0", "--web-port", "0")
		require.Equal(t, program.ExitFailure, refused.Code)
		require.Contains(t, refused.Stderr, want)
		require.Contains(t, starter(t, with(database), "doctor", "-o", "json").Stdout, want)
		t.Log(refused.Stderr)
	}
}
