package api

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/desk/web/stream"
	"github.com/claudeops/claudeops/internal/escalation"
)

const (
	// retryAfter is the time after which Follow opens a stream that has ended again, and retryFor the time for which it
	// tries.
	retryAfter, retryFor = time.Second, time.Minute
	// silence is the time without any line after which a stream counts as lost. Comments come every 15 seconds.
	silence = time.Minute
)

// Follow reports snapshots of a chain to observer until the chain has ended, and returns the chain. If the connection
// is lost, Follow tries for a minute to get another one.
func (c Chains) Follow(ctx context.Context, id string, observer operations.Observer) (escalation.Chain, error) {
	f := follower{observer: observer}
	heard := time.Now()
	for {
		err := f.read(ctx, c.client, id)
		switch {
		case ctx.Err() != nil:
			return escalation.Chain{}, ctx.Err()
		case f.end != nil:
			return f.conclude()
		case f.heard:
			heard = time.Now()
		case operations.KindOf(err) != operations.KindFailure, time.Since(heard) > retryFor, f.before == nil &&
			err != nil:
			return escalation.Chain{}, err
		}
		select {
		case <-ctx.Done():
			return escalation.Chain{}, ctx.Err()
		case <-time.After(retryAfter):
		}
	}
}

// follower reads streams of one chain, one after the other.
type follower struct {
	observer operations.Observer
	// before is the last snapshot that the observer has seen, encoded; nil if it has seen none.
	before []byte
	// heard reports whether the last stream has had an event.
	heard bool
	// end is the last event; nil before it.
	end *end
}

// end is stream.End, as a client reads it.
type end struct {
	Snapshot json.RawMessage `json:"snapshot"`
	Problem  *said           `json:"problem"`
}

// conclude reports the last snapshot, and returns the ended chain.
func (f *follower) conclude() (escalation.Chain, error) {
	if f.end.Problem != nil {
		return escalation.Chain{}, f.end.Problem.err()
	}
	now, err := f.saw(f.end.Snapshot)
	return now.Chain, err
}

// saw reports a snapshot, unless the observer has seen it.
func (f *follower) saw(encoded []byte) (now operations.Snapshot, err error) {
	if err := json.Unmarshal(encoded, &now); err != nil {
		return now, err
	}
	if !bytes.Equal(f.before, encoded) {
		f.before = bytes.Clone(encoded)
		f.observer.Saw(now)
	}
	return now, nil
}

// read reads a stream until it ends.
func (f *follower) read(ctx context.Context, client *Client, id string) error {
	f.heard = false
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watch := time.AfterFunc(silence, cancel)
	defer watch.Stop()
	response, err := client.send(ctx, http.MethodGet, prefix+"/chains/"+url.PathEscape(id)+"/follow", nil)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	lines := bufio.NewReader(io.LimitReader(response.Body, maxAnswer))
	kind := ""
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return client.unreachable(err)
		}
		watch.Reset(silence)
		line = bytes.TrimSuffix(line, []byte("\n"))
		if name, ok := bytes.CutPrefix(line, []byte("event: ")); ok {
			kind = string(name)
		} else if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok {
			f.heard = true
			if err := f.receive(kind, data); err != nil || f.end != nil {
				return err
			}
		}
	}
}

func (f *follower) receive(kind string, data []byte) error {
	switch kind {
	case stream.SnapshotEvent:
		_, err := f.saw(data)
		return err
	case stream.NobodyEvent:
		f.observer.SawNobody()
	case stream.EndEvent:
		f.end = &end{}
		if err := json.Unmarshal(data, f.end); err != nil {
			return err
		}
		if f.end.Problem == nil && f.end.Snapshot == nil {
			return errors.New("the server did not say how the chain ended")
		}
	}
	return nil
}
