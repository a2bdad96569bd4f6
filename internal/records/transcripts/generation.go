package transcripts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
)

// version identifies an archived copy by its generation and its writer. Only this writer writes the copy, so the
// storage need not resolve conflicts. The zero value means that there is no copy.
type version struct {
	// generation counts from 1. If two writers take over the session at the same moment, their versions have the same
	// generation. At most one of these writers was entitled to take over.
	generation int
	writer     string
}

// versionName matches the last part of an object's key.
var versionName = regexp.MustCompile(`^(\d{8})-([0-9a-f-]{36})\.jsonl\.zst$`)

func (c *Copy) key(v version) string {
	return fmt.Sprintf("%s/%08d-%s.jsonl.zst", c.sessionID, v.generation, v.writer)
}

// versions lists the archived copies, latest first. Within a generation, the copy with more lines counts as later.
func (c *Copy) versions(ctx context.Context) ([]version, error) {
	found, err := c.list(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the archived copies of conversation %s: %w", c.sessionID, err)
	}
	count := make(map[int]int)
	for _, v := range found {
		count[v.generation]++
	}
	lines := make(map[version]int64)
	for _, v := range found {
		if count[v.generation] == 1 {
			continue // the usual case
		}
		h, err := c.header(ctx, v)
		if err != nil && !errors.Is(err, errDamaged) {
			return nil, err
		}
		lines[v] = h.Lines
	}
	slices.SortFunc(found, func(a, b version) int {
		return cmp.Or(
			cmp.Compare(b.generation, a.generation), cmp.Compare(lines[b], lines[a]), cmp.Compare(a.writer, b.writer))
	})
	return found, nil
}

func (c *Copy) list(ctx context.Context) ([]version, error) {
	names, err := c.archive.list(ctx, c.sessionID+"/")
	if err != nil {
		return nil, err
	}
	var found []version
	for _, name := range names {
		parts := versionName.FindStringSubmatch(name)
		if parts == nil {
			continue // such as another writer's temporary file
		}
		number, err := strconv.Atoi(parts[1])
		if err != nil {
			return nil, err
		}
		found = append(found, version{generation: number, writer: parts[2]})
	}
	return found, nil
}

// header reads the header of v. If the header is unusable, the error wraps errDamaged.
func (c *Copy) header(ctx context.Context, v version) (header, error) {
	object, err := c.archive.bucket.NewRangeReader(ctx, c.key(v), 0, maxHeader, nil)
	if err != nil {
		return header{}, fmt.Errorf("read the archived copy %s: %w", c.key(v), err)
	}
	defer func() { _ = object.Close() }()
	h, err := decodeHeader(&source{Reader: object}, c.sessionID)
	if err != nil {
		return header{}, fmt.Errorf("archived copy %s: %w", c.key(v), err)
	}
	return h, nil
}

// latest returns the latest version and its extent. If there is no version, both results are zero. If the latest
// version is damaged, its extent is zero.
func (c *Copy) latest(ctx context.Context) (version, extent, error) {
	all, err := c.versions(ctx)
	if err != nil || len(all) == 0 {
		return version{}, extent{}, err
	}
	h, err := c.header(ctx, all[0])
	if err != nil && !errors.Is(err, errDamaged) {
		return version{}, extent{}, err
	}
	return all[0], h.extent, nil
}
