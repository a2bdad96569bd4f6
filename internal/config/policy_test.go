package config

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLoadPolicy(t *testing.T) {
	t.Parallel()
	builtIn, err := load(t).Guard.LoadPolicy()
	require.NoError(t, err)
	require.Contains(t, builtIn.Programs, "docker")

	file := filepath.Join(t.TempDir(), "policy.yaml")
	require.NoError(t, os.WriteFile(file, []byte("version: 1\ntiers: {1: {}, 2: {}, 3: {}}\nprograms: {cat: {tier: 1}}\n"), 0o600))
	own, err := load(t, "CLAUDEOPS_POLICY_FILE="+file).Guard.LoadPolicy()
	require.NoError(t, err)
	require.Contains(t, own.Programs, "cat")
	require.NotContains(t, own.Programs, "docker")

	require.NoError(t, os.Remove(file))
	_, err = Guard{PolicyFile: file}.LoadPolicy()
	require.ErrorIs(t, err, os.ErrNotExist)
}

// BenchmarkLoadPolicy measures the loading of the built-in policy. Every process that starts a guard does this once.
func BenchmarkLoadPolicy(b *testing.B) {
	for b.Loop() {
		if _, err := (Guard{}).LoadPolicy(); err != nil {
			b.Fatal(err)
		}
	}
}
