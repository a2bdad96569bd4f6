package store_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkSession measures the recording of one session, which takes two transactions. SQLite syncs each transaction
// to disk. A PostgreSQL cluster for tests does not sync.
func BenchmarkSession(b *testing.B) {
	for name, database := range map[string]backend{"SQLite": sqliteBackend, "PostgreSQL": postgresBackend} {
		b.Run(name, func(b *testing.B) {
			s := database(b)()
			ctx := b.Context()
			for i := 0; b.Loop(); i++ {
				name := fmt.Sprint(i)
				_, err := openSession(ctx, s, opening(fmt.Sprint(i/3), name, 0))
				require.NoError(b, err)
				require.NoError(b, s.CloseSession(ctx, name, completed(0.01), noon))
			}
		})
	}
}
