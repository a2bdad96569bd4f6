//go:build clouds

package transcripts

import (
	"testing"

	"github.com/stretchr/testify/require"
	"gocloud.dev/blob"
)

func TestCloudsAreKnown(t *testing.T) {
	t.Parallel()
	for _, scheme := range []string{"s3", "gs", "azblob"} {
		require.True(t, blob.DefaultURLMux().ValidBucketScheme(scheme), scheme)
	}
	archive, err := Open(t.Context(), "s3://bucket?region=eu-west-1&prefix=a/") // does not connect
	require.NoError(t, err)
	require.NoError(t, archive.Close())
}
