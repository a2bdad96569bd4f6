package console

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/claudeops/claudeops/internal/config"
	"github.com/claudeops/claudeops/internal/store"
	"github.com/claudeops/claudeops/internal/supervisor"
)

// OpenRecords opens the database of records that this host uses. If the database file is missing, OpenRecords does not create one.
func (c *Console) OpenRecords(ctx context.Context) (*store.Store, config.Config, error) {
	cfg, err := config.Load(c.Environ)
	if err != nil {
		return nil, cfg, err
	}
	file := cfg.State.DatabaseFile()
	if _, err := os.Stat(file); file != "" && errors.Is(err, os.ErrNotExist) {
		return nil, cfg, fmt.Errorf("there are no records: %s does not exist; run this where the worker keeps them, "+
			"with the same %sSTATE_DIR and %sDATABASE_URL", file, config.Prefix, config.Prefix)
	}
	opened, err := supervisor.OpenStore(ctx, cfg)
	return opened, cfg, err
}
