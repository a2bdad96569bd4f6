package operations

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/memory"
	"github.com/claudeops/claudeops/internal/plaintext"
	"github.com/claudeops/claudeops/internal/records/store"
)

// Memories lists, shows and changes memories. The records answer. A person who adds, confirms or edits a memory vouches
// for it, so agents are told of it.
type Memories struct{ *backend }

// MemoryFilter selects memories. If all fields are empty, it selects candidates and confirmed memories.
type MemoryFilter struct {
	// Status and Kind are empty for all; deleted memories are listed only with the status deleted.
	Status, Kind string
	Service      string
	// Search selects the memories that have all words of this text.
	Search string
	// Limit is the maximum number of memories in a list; 0 means all.
	Limit int
}

// Check returns an error of KindInvalid if no memory can match the filter.
func (f MemoryFilter) Check() error {
	if f.Status != "" && !slices.Contains(memory.Statuses(), memory.Status(f.Status)) {
		return invalidField("status", "is %q; it must be %s", line(f.Status, 60),
			plaintext.Or(asTexts(memory.Statuses())))
	}
	if f.Kind != "" && !slices.Contains(memory.Kinds(), escalation.MemoryKind(f.Kind)) {
		return invalidField("kind", "is %q; it must be %s", line(f.Kind, 60), plaintext.Or(asTexts(memory.Kinds())))
	}
	return nil
}

// asTexts converts constants to strings.
func asTexts[T ~string](constants []T) []string {
	texts := make([]string, len(constants))
	for i, constant := range constants {
		texts[i] = string(constant)
	}
	return texts
}

// List returns the memories that the filter selects: those first that wait for a person, and then the newest first.
func (m Memories) List(ctx context.Context, f MemoryFilter) ([]memory.Memory, error) {
	page, err := m.Page(ctx, f, "")
	return page.Memories, err
}

// MemoryPage is a part of a list of memories, and the key of the next part; empty if this is the last.
type MemoryPage struct {
	Memories []memory.Memory `json:"memories"`
	Next     string          `json:"next,omitempty"`
	// Total counts the memories of the whole list.
	Total int `json:"-"`
}

// Page returns the part of a list after the given key, with at most f.Limit memories. If after is empty, the part is
// the first.
func (m Memories) Page(ctx context.Context, f MemoryFilter, after string) (MemoryPage, error) {
	page := MemoryPage{Memories: []memory.Memory{}} // an empty list is [] in JSON
	from, err := readListKey(after, func(id string) error { _, err := memoryID(id); return err })
	if err == nil {
		err = f.Check()
	}
	if err != nil {
		return page, err
	}
	records, cfg, err := m.openRecords(ctx)
	if err != nil {
		return page, err
	}
	found, err := records.MemoryPage(ctx, store.MemoryFilter{
		Status: memory.Status(f.Status), Kind: escalation.MemoryKind(f.Kind), Search: f.Search,
		Service: cfg.Services.Catalog.Canonical(f.Service), After: from, Limit: f.Limit,
	})
	if err != nil {
		return page, err
	}
	for _, one := range found.Memories {
		page.Memories = append(page.Memories, m.maskedMemory(one))
	}
	if page.Total = found.Total; found.More {
		page.Next = listKey(found.Last)
	}
	return page, nil
}

// Get returns one memory, named by its ID or its number, with its sources and its latest uses.
func (m Memories) Get(ctx context.Context, given string) (memory.Memory, error) {
	id, err := memoryID(given)
	if err != nil {
		return memory.Memory{}, err
	}
	records, _, err := m.openRecords(ctx)
	if err != nil {
		return memory.Memory{}, err
	}
	found, err := records.Memory(ctx, id)
	return m.maskedMemory(found), unknownMemory(id, err)
}

// Add records a memory of the person actor, and returns it. If a candidate says the same, Add confirms it. If a
// confirmed memory says the same, Add returns that one with an error of KindConflict.
func (m Memories) Add(ctx context.Context, content escalation.MemoryProposal, actor string) (memory.Memory, error) {
	content, err := m.checkMemory(content)
	if err != nil {
		return memory.Memory{}, err
	}
	return m.act(ctx, "", actor, func(records *store.Store, by store.MemoryAct) (memory.Memory, error) {
		return records.AddMemory(ctx, content, by)
	})
}

// SeenMemory is a memory on which a person decides.
type SeenMemory struct {
	// Given is its ID or its number.
	Given string
	// Revision is the one that the person has read. If the memory has another one, the decision changes nothing, and
	// its error is of KindConflict. 0 means the present one.
	Revision int
}

// Confirm records that the person actor vouches for a memory. If a person has confirmed or deleted it already, Confirm
// returns it unchanged with an error of KindConflict.
func (m Memories) Confirm(ctx context.Context, seen SeenMemory, actor string) (memory.Memory, error) {
	return m.decide(ctx, seen, actor, (*store.Store).ConfirmMemory)
}

// MemoryEdit changes fields of a memory; nil for no change.
type MemoryEdit struct {
	Kind *escalation.MemoryKind `json:"kind,omitempty"`
	// Service is empty for a memory about all services.
	Service *string `json:"service,omitempty"`
	Subject *string `json:"subject,omitempty"`
	Text    *string `json:"text,omitempty"`
}

// IsEmpty reports whether the edit changes nothing.
func (e MemoryEdit) IsEmpty() bool { return e == MemoryEdit{} }

func (e MemoryEdit) apply(content escalation.MemoryProposal) escalation.MemoryProposal {
	set(&content.Kind, e.Kind)
	set(&content.Service, e.Service)
	set(&content.Subject, e.Subject)
	set(&content.Text, e.Text)
	return content
}

// set copies value to field, unless value is nil.
func set[T any](field, value *T) {
	if value != nil {
		*field = *value
	}
}

// Edit changes a memory on behalf of the person actor, which confirms the memory. If it is deleted, or another memory
// says the same, Edit returns it unchanged with an error of KindConflict.
func (m Memories) Edit(ctx context.Context, seen SeenMemory, edit MemoryEdit, actor string) (memory.Memory, error) {
	id, err := memoryID(seen.Given)
	if err == nil && edit.IsEmpty() {
		err = Invalid(errors.New("nothing to change: give a kind, a service, a subject or a text"))
	}
	if err != nil {
		return memory.Memory{}, err
	}
	return m.act(ctx, id, actor, func(records *store.Store, by store.MemoryAct) (memory.Memory, error) {
		current, err := records.Memory(ctx, id)
		if err != nil {
			return memory.Memory{}, err
		}
		content, err := m.checkMemory(edit.apply(current.Proposal()))
		if err != nil {
			return current, err
		}
		by.Seen = cmp.Or(seen.Revision, current.Revision) // what the edit leaves as it is comes from this one
		return records.EditMemory(ctx, id, content, by)
	})
}

// Delete takes a memory out of all prompts, on behalf of the person actor. If it is deleted already, Delete returns it
// unchanged with an error of KindConflict.
func (m Memories) Delete(ctx context.Context, seen SeenMemory, actor string) (memory.Memory, error) {
	return m.decide(ctx, seen, actor, (*store.Store).DeleteMemory)
}

// decide has a person confirm or delete a memory.
func (m Memories) decide(
	ctx context.Context, seen SeenMemory, actor string,
	decision func(records *store.Store, ctx context.Context, id string, by store.MemoryAct) (memory.Memory, error),
) (memory.Memory, error) {
	id, err := memoryID(seen.Given)
	if err != nil {
		return memory.Memory{}, err
	}
	return m.act(ctx, id, actor, func(records *store.Store, by store.MemoryAct) (memory.Memory, error) {
		by.Seen = seen.Revision
		return decision(records, ctx, id, by)
	})
}

// act changes a memory on behalf of a person, now.
func (m Memories) act(
	ctx context.Context, id, actor string, change func(*store.Store, store.MemoryAct) (memory.Memory, error),
) (memory.Memory, error) {
	if err := Invalid(escalation.CheckActor(actor)); err != nil {
		return memory.Memory{}, err
	}
	records, _, err := m.openRecords(ctx)
	if err != nil {
		return memory.Memory{}, err
	}
	now, err := records.Now(ctx, m.Clock())
	if err != nil {
		return memory.Memory{}, err
	}
	changed, err := change(records, store.MemoryAct{
		Actor: m.maskInput(actor),
		At:    now.UTC().Truncate(time.Millisecond),
	})
	changed = m.maskedMemory(changed)
	if conflict, ok := errors.AsType[*store.MemoryConflictError](err); ok {
		reason := line(m.mask.Text(conflict.Reason), maxError)
		return changed, withKind(KindConflict, fmt.Errorf("%s; nothing was changed", reason))
	}
	return changed, unknownMemory(id, err)
}

// checkMemory returns content in the form in which it is stored: with the service's canonical name and without secrets.
func (m Memories) checkMemory(content escalation.MemoryProposal) (escalation.MemoryProposal, error) {
	cfg, err := m.config()
	if err != nil {
		return content, err
	}
	masked := content
	masked.Service, masked.Subject, masked.Text = m.mask.Text(content.Service), m.mask.Text(content.Subject),
		m.mask.Text(content.Text)
	if masked != content {
		m.Masked()
	}
	masked.Service = cfg.Services.Catalog.Canonical(masked.Service)
	clean, err := memory.Check(masked)
	return clean, Invalid(err)
}

// memoryID returns the ID of a memory. A person has typed this ID or only its number.
func memoryID(given string) (string, error) {
	number := strings.TrimPrefix(given, "memory-")
	if n, err := strconv.ParseUint(number, 10, 63); err != nil || n == 0 {
		return "", Invalid(fmt.Errorf("%q is no memory: write its ID, such as memory-7, or its number",
			line(given, 60)))
	}
	return "memory-" + number, nil
}

// unknownMemory converts an error of the store about a memory to an error for people.
func unknownMemory(id string, err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return withKind(KindNotFound, fmt.Errorf("there is no %s; `claudeops memory list` lists those that are", id))
	}
	return err
}

// maskedMemory returns the memory with the secrets in its texts masked.
func (b *backend) maskedMemory(m memory.Memory) memory.Memory {
	m.Service, m.Subject, m.Text = b.mask.Text(m.Service), b.mask.Text(m.Subject), b.mask.Text(m.Text)
	m.DecidedBy = b.mask.Text(m.DecidedBy)
	sources := make([]memory.Source, len(m.Sources)) // an empty list is [] in JSON
	for i, source := range m.Sources {
		source.Person, source.Text = b.mask.Text(source.Person), b.mask.Text(source.Text)
		sources[i] = source
	}
	m.Sources = sources
	return m
}
