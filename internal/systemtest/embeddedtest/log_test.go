package embeddedtest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/systemtest/embeddedtest"
)

func TestWithoutStalls(t *testing.T) {
	t.Parallel()
	const others = `level=WARN msg="Fail to process task" component=temporal shard-id=1 error="disk full"
level=ERROR msg="asked in vain" chain=a error="context deadline exceeded"
`
	const late = `level=WARN msg="Fail to process task" component=temporal shard-id=1 error="context deadline exceeded" attempt=2
level=WARN msg="Slow gRPC call" component=temporal duration=5.3s
`
	require.Equal(t, others, embeddedtest.WithoutStalls(late+others+late))
	require.Empty(t, embeddedtest.WithoutStalls(late))
}
