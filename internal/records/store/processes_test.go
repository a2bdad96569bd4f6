package store_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/records/store"
	"github.com/claudeops/claudeops/internal/systemtest/postgrestest"
)

const (
	// storesByProcess is the number of Stores in each process of TestAdmissionsOfTwoProcesses. Each Store has its own
	// connections.
	storesByProcess = 5
	// admissionsByProcess is the number of sessions that each process opens at the same time.
	admissionsByProcess = 100
)

// scarce returns a policy whose day budget is enough for 34.5 sessions.
func scarce() escalation.Policy {
	policy := lenient()
	policy.Tiers[0].BudgetUSD, policy.DayBudgetUSD = 0.5, 17.25
	return policy
}

// admitAtOnce reports on the standard output that it is ready, and waits for a line on the standard input. Then it
// opens many sessions at the same time.
func admitAtOnce(place string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	stores := make([]*store.Store, storesByProcess)
	for i := range stores {
		opened, err := openPlace(ctx, place)
		if err != nil {
			return err
		}
		stores[i] = opened
	}
	fmt.Println("ready")
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	for i := range admissionsByProcess {
		group.Go(func() error {
			name := fmt.Sprintf("process %d session %d", os.Getpid(), i)
			for {
				_, err := stores[i%storesByProcess].OpenSession(ctx, opening(name, name, 0), escalation.AdmissionRequest{}, scarce())
				if err == nil || !store.IsTransient(err) || ctx.Err() != nil {
					return err
				}
				// SQLite has no queue of writers, so some writers wait for too long. Try again, as workers do.
			}
		})
	}
	return group.Wait()
}

// TestAdmissionsOfTwoProcesses lets two processes open 100 sessions each at the same time. The budgets of the admitted
// sessions must use up the day's budget, and must not exceed it.
func TestAdmissionsOfTwoProcesses(t *testing.T) {
	t.Parallel()
	for name, place := range map[string]func(t *testing.T) string{
		"SQLite":     func(t *testing.T) string { return filepath.Join(t.TempDir(), "ops.db") },
		"PostgreSQL": func(t *testing.T) string { return postgrestest.Database(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database := place(t)
			s, err := openPlace(bounded(t), database)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, s.Close()) })
			var begin []io.Writer
			var end []func() error
			for range 2 {
				process := again(t, admittedVariable, database)
				process.Stderr = os.Stderr
				input, err := process.StdinPipe()
				require.NoError(t, err)
				output, err := process.StdoutPipe()
				require.NoError(t, err)
				require.NoError(t, process.Start())
				ready, err := bufio.NewReader(output).ReadString('\n')
				require.NoError(t, err)
				require.Equal(t, "ready\n", ready)
				begin, end = append(begin, input), append(end, process.Wait)
			}
			_, err = io.WriteString(io.MultiWriter(begin...), "go\n")
			require.NoError(t, err)
			for _, wait := range end {
				require.NoError(t, wait())
			}
			admitted, err := s.Running(bounded(t))
			require.NoError(t, err)
			var reserved float64
			for _, session := range admitted {
				reserved += session.BudgetUSD
			}
			require.InDelta(t, scarce().DayBudgetUSD, reserved, 1e-9)
			require.Len(t, admitted, 35)
		})
	}
}
