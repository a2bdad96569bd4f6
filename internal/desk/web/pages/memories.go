package pages

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/desk/web/access"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/memory"
)

// maxMemories limits the memories on a page.
const maxMemories = 200

// memoryList is the data of the page with the list of memories.
type memoryList struct {
	Service, Status, Search string
	Statuses                []memory.Status
	Memories                []memory.Memory
	More                    int // how many others match
	Problem                 string
}

// Kinds returns the kinds of memory, for the form that adds one.
func (memoryList) Kinds() []escalation.MemoryKind { return memory.Kinds() }

// showMemories lists memories, candidates first. The URL holds the filter.
func (p *Pages) showMemories(w http.ResponseWriter, r *http.Request) error {
	form := r.URL.Query()
	list := memoryList{
		Service: strings.TrimSpace(form.Get("service")), Status: form.Get("status"),
		Search: strings.TrimSpace(form.Get("search")), Statuses: memory.Statuses(),
	}
	v := view{template: "memories", title: "Memories", section: memoriesPath}
	page, err := p.memories.Page(r.Context(), operations.MemoryFilter{
		Service: list.Service, Status: list.Status, Search: list.Search, Limit: maxMemories,
	}, "")
	if err != nil {
		if operations.KindOf(err) != operations.KindInvalid {
			return err
		}
		list.Problem, v.status = err.Error(), http.StatusUnprocessableEntity
	}
	list.Memories, list.More = page.Memories, page.Total-len(page.Memories)
	v.data = list
	return p.show(w, r, v)
}

const memoriesPath = "/memories"

// memoryPage is the data of the page of a memory.
type memoryPage struct {
	memory.Memory

	Kinds []escalation.MemoryKind
	// Open reports that a person can still confirm the memory.
	Open bool
	// Form is what the form for a change has: the memory's content, or a change that was not taken, for the reason
	// Problem.
	Form    escalation.MemoryProposal
	Problem string
}

// showMemory shows a memory.
func (p *Pages) showMemory(w http.ResponseWriter, r *http.Request) error {
	found, err := p.memories.Get(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	return p.writeMemory(w, r, memoryPage{Memory: found, Form: found.Proposal()}, 0)
}

func (p *Pages) writeMemory(w http.ResponseWriter, r *http.Request, page memoryPage, status int) error {
	page.Kinds, page.Open = memory.Kinds(), page.DecidedBy == ""
	return p.show(w, r, view{template: "memory", title: page.ID, section: memoriesPath, status: status, data: page})
}

// seenMemory returns the memory that the path names, in the revision of the form.
func seenMemory(r *http.Request) operations.SeenMemory {
	revision, err := strconv.Atoi(r.PostFormValue("revision"))
	if err != nil || revision < 1 {
		revision = -1 // no memory has it: a form without a revision may show anything
	}
	return operations.SeenMemory{Given: r.PathValue("id"), Revision: revision}
}

// addMemory adds a memory of the person.
func (p *Pages) addMemory(w http.ResponseWriter, r *http.Request) error {
	person, _ := access.PersonOf(r.Context())
	added, err := p.memories.Add(r.Context(), memoryOf(r), person.Name)
	if err != nil {
		return err
	}
	return done(w, r, memoriesPath, flash{Text: added.ID + " is added. Agents get it from now on."})
}

// confirmMemory confirms a memory.
func (p *Pages) confirmMemory(w http.ResponseWriter, r *http.Request) error {
	person, _ := access.PersonOf(r.Context())
	if _, err := p.memories.Confirm(r.Context(), seenMemory(r), person.Name); err != nil {
		return err
	}
	return done(w, r, backTo(r, memoriesPath), flash{Text: "Confirmed. Agents get it from now on."})
}

// editMemory changes a memory. A change that is not taken is shown again, beside the memory as it is now.
func (p *Pages) editMemory(w http.ResponseWriter, r *http.Request) error {
	person, _ := access.PersonOf(r.Context())
	content := memoryOf(r)
	edit := operations.MemoryEdit{
		Kind: &content.Kind, Service: &content.Service, Subject: &content.Subject,
		Text: &content.Text,
	}
	edited, err := p.memories.Edit(r.Context(), seenMemory(r), edit, person.Name)
	if err != nil {
		now, gone := p.memories.Get(r.Context(), r.PathValue("id"))
		if gone != nil || now.Status == memory.StatusDeleted {
			return err
		}
		return p.writeMemory(w, r, memoryPage{Memory: now, Form: content, Problem: err.Error()}, problemOf(err).Status)
	}
	return done(w, r, memoriesPath+"/"+edited.ID, flash{Text: edited.ID + " is changed, and confirmed."})
}

// deleteMemory deletes a memory.
func (p *Pages) deleteMemory(w http.ResponseWriter, r *http.Request) error {
	person, _ := access.PersonOf(r.Context())
	if _, err := p.memories.Delete(r.Context(), seenMemory(r), person.Name); err != nil {
		return err
	}
	return done(w, r, backTo(r, memoriesPath), flash{Text: "Deleted. Agents do not get it any more."})
}

// memoryOf reads the content of a memory from a form.
func memoryOf(r *http.Request) escalation.MemoryProposal {
	return escalation.MemoryProposal{
		Kind: escalation.MemoryKind(r.PostFormValue("kind")), Service: strings.TrimSpace(r.PostFormValue("service")),
		Subject: strings.TrimSpace(r.PostFormValue("subject")), Text: strings.TrimSpace(r.PostFormValue("text")),
	}
}
