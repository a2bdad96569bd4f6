package console

import (
	"context"
	"time"

	"github.com/claudeops/claudeops/internal/desk/proposal"
	"github.com/claudeops/claudeops/internal/records/store"
)

// looksFor limits how far back recorded looks count.
const looksFor = 30 * 24 * time.Hour

// MeasuredLooks returns what looks that found nothing wrong have cost; zero if the records cannot say it.
func MeasuredLooks(ctx context.Context, records *store.Store) proposal.Measured {
	looks, err := records.HealthyLooks(ctx, time.Now().Add(-looksFor))
	if err != nil {
		return proposal.Measured{}
	}
	return proposal.Measured{Looks: looks.Count, MedianUSD: looks.MedianUSD, First: looks.First, Last: looks.Last}
}
