package store

import (
	"database/sql"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/lib/pq"
	"github.com/lib/pq/pqerror"
	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/systemtest/postgrestest"
)

// BenchmarkAdmission compares two ways to separate admissions on PostgreSQL: the lock, and serializable transactions
// that are repeated after a conflict. Each worker has its own Store, like a worker on another host. The results are in
// docs/decisions.
func BenchmarkAdmission(b *testing.B) {
	serializable := postgresDialect
	serializable.lock, serializable.writing = "SELECT 1", &sql.TxOptions{Isolation: sql.LevelSerializable}
	for _, workers := range []int{1, 8, 32} {
		for name, d := range map[string]dialect{"lock": postgresDialect, "serializable": serializable} {
			b.Run(fmt.Sprintf("%s/%d", name, workers), func(b *testing.B) { benchmarkAdmission(b, workers, d) })
		}
	}
}

func benchmarkAdmission(b *testing.B, workers int, d dialect) {
	b.Helper()
	database := postgrestest.Database(b)
	stores := make(chan *Store, workers)
	for range workers {
		s, err := OpenPostgres(b.Context(), database, 2)
		require.NoError(b, err)
		b.Cleanup(func() { require.NoError(b, s.Close()) })
		s.dialect = d
		stores <- s
	}
	var admitted, repeated atomic.Int64
	b.ResetTimer()
	running := make(chan error, workers)
	for range workers {
		go func() {
			s := <-stores
			for {
				number := admitted.Add(1)
				if number > int64(b.N) {
					running <- nil
					return
				}
				one := session(fmt.Sprint(number))
				one.ChainID = one.SessionID
				_, err := s.OpenSession(b.Context(), one, escalation.AdmissionRequest{}, lenient)
				for pq.As(err, pqerror.TRSerializationFailure) != nil {
					repeated.Add(1)
					_, err = s.OpenSession(b.Context(), one, escalation.AdmissionRequest{}, lenient)
				}
				if err != nil {
					running <- err
					return
				}
			}
		}()
	}
	for range workers {
		require.NoError(b, <-running)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "admissions/s")
	b.ReportMetric(float64(repeated.Load())/float64(b.N), "repeats/op")
}
