package local

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/config"
	"github.com/claudeops/claudeops/internal/plant/supervisor"
	"github.com/claudeops/claudeops/internal/redact"
)

// maxLog is the size in bytes at which a new file of the log begins. One older file is kept.
const maxLog = 10 << 20

// logFile is the log of an `up` on a terminal.
type logFile struct {
	path string
	file *os.File
	size int64
}

// openLog opens a log to continue it.
func openLog(path string) (*logFile, error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600) //nolint:gosec // in the state directory
	if err != nil {
		return nil, fmt.Errorf("open the log: %w", err)
	}
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("open the log: %w", err)
	}
	return &logFile{path, file, info.Size()}, nil
}

// Write implements io.Writer, for one caller at a time.
func (l *logFile) Write(line []byte) (int, error) {
	if l.size > 0 && l.size+int64(len(line)) > maxLog {
		if err := os.Rename(l.path, l.path+".old"); err != nil {
			return 0, err
		}
		next, err := openLog(l.path)
		if err != nil {
			return 0, err
		}
		_ = l.file.Close()
		*l = *next
	}
	n, err := l.file.Write(line)
	l.size += int64(n)
	return n, err
}

// Close closes the file.
func (l *logFile) Close() error { return l.file.Close() }

// upLogger returns the logger of `up`, and its file. On a terminal the log goes to the file, and the terminal gets
// warnings. Elsewhere, as under systemd, the log goes to stderr, and the file is nil.
func (a *app) upLogger(ctx context.Context, cfg config.Config) (*slog.Logger, *logFile, error) {
	mask := redact.New(a.Environ)
	if !a.OnTerminal() || !console.IsTerminal(a.Stderr) {
		return supervisor.NewLogger(a.Stderr, cfg.Log, mask), nil, nil
	}
	if err := cfg.MakeDirs(); err != nil {
		return nil, nil, err
	}
	file, err := openLog(filepath.Join(cfg.State.Dir, "up.log"))
	if err != nil {
		return nil, nil, err
	}
	kept := supervisor.NewLogger(file, cfg.Log, mask).Handler()
	shown := a.quietLogger(ctx, slog.LevelWarn).Handler()
	return slog.New(slog.NewMultiHandler(kept, shown)), file, nil
}

// chainsShownEvery is the time between two looks for chains that the terminal shows.
const chainsShownEvery = 2 * time.Second

// showChains prints a line for each chain that ends or asks a person, until ctx ends.
func (a *app) showChains(ctx context.Context, watch *operations.Watch) {
	for ctx.Err() == nil {
		changes, _ := watch.Next(ctx, operations.Interest{}) // after an error the next look continues there
		for _, change := range changes {
			if line := lineOf(change); line != "" {
				a.Say("%s  %s", a.Clock.TimeOfDay(change.At), line)
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(chainsShownEvery):
		}
	}
}

// lineOf describes a chain that has ended or asks a person; "" for other changes.
func lineOf(change operations.Change) string {
	news, _ := change.Data.(operations.EventNews)
	id := console.PrintableID(change.ChainID)
	switch news.Event { //nolint:exhaustive // the log has the others
	case escalation.EventChainEnded:
		return fmt.Sprintf("chain %s %s", id, strings.TrimPrefix(news.Message, "chain "))
	case escalation.EventGateOpened:
		return fmt.Sprintf("chain %s waits for you: %s", id, console.AnswerCommand(change.ChainID))
	}
	return ""
}
