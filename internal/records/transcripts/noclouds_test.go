//go:build !clouds

package transcripts

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWithoutCloudsABucketIsRefused(t *testing.T) {
	t.Parallel()
	_, err := Open(t.Context(), "s3://bucket?region=eu-west-1")
	require.ErrorContains(t, err, "this program was built without a driver for s3")
}
