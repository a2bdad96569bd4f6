package pages

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"

	"github.com/google/uuid"

	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/desk/web/access"
	"github.com/claudeops/claudeops/internal/escalation"
)

const talkPath = "/talk"

const (
	// shownTurns limits the turns on a page, and shownConversations the other conversations.
	shownTurns, shownConversations = 50, 50
)

// talkPage is the data of the page of a conversation.
type talkPage struct {
	Name string
	// About is the chain from whose last session a new conversation begins; empty if it begins from nothing.
	About string
	// Turns lists the latest turns, the latest first. More reports whether there can be earlier ones.
	Turns []turnCard
	More  bool
	// Others lists the other conversations that the person may use, from a place in their list. Next is the place after
	// them; empty if there are no more.
	Others []operations.ConversationRow
	Next   string
	// MessageID is the ID of the message in the form: a form that is sent twice is one message.
	MessageID string
	// Draft and Problem are a message that was not taken, and why.
	Draft, Problem string
	// MayTalk reports whether the person may write here, and not only read.
	MayTalk bool
	// Away says why it is not known what the open turn does.
	Away string
}

// turnCard is a turn on a page.
type turnCard struct {
	escalation.TalkTurn

	// Doing and SoFar are what the running session does, and the beginning of its reply. CostSoFar is its estimated
	// cost.
	Doing, SoFar string
	CostSoFar    float64
	Proposed     []proposalCard
	// MayTalk reports whether the person may stop the turn.
	MayTalk bool
}

// Open reports whether the turn has not ended.
func (t turnCard) Open() bool { return !t.State.Final() }

// proposalCard is a proposal on a page.
type proposalCard struct {
	escalation.Proposal

	Number int
	// Done is the confirmation; nil if nobody has confirmed the proposal.
	Done *escalation.Confirmation
	// Refusal says why the person may not confirm it; empty if the person may.
	Refusal string
}

// showTalk shows a conversation: the person's own, unless the path names another one.
func (p *Pages) showTalk(w http.ResponseWriter, r *http.Request) error {
	person, _ := access.PersonOf(r.Context())
	name := cmp.Or(r.PathValue("name"), person.Conversation())
	about := r.URL.Query().Get("about")
	if err := checkAbout(about); err != nil {
		return err
	}
	return p.writeTalk(w, r, talkPage{Name: name, About: about}, 0)
}

// maxAbout is the length of the longest workflow ID in Temporal, in bytes.
const maxAbout = 1_000

// checkAbout returns an error if a parameter cannot be the ID of a chain.
func checkAbout(about string) error {
	if len(about) > maxAbout {
		return operations.Invalid(fmt.Errorf("about is longer than %d bytes, and so not the ID of a chain", maxAbout))
	}
	return nil
}

// writeTalk shows a conversation with the given name, draft and problem.
func (p *Pages) writeTalk(w http.ResponseWriter, r *http.Request, page talkPage, status int) error {
	person, _ := access.PersonOf(r.Context())
	if err := person.CheckRead(page.Name); err != nil {
		return err
	}
	page.MayTalk = person.MayTalkIn(page.Name)
	turns, err := p.talks.History(r.Context(), page.Name, shownTurns)
	if err != nil {
		return err
	}
	page.More = len(turns) == shownTurns
	for _, turn := range slices.Backward(turns) {
		page.Turns = append(page.Turns, turnCard{
			TalkTurn: turn, Proposed: proposalsOf(turn, person, page.MayTalk), MayTalk: page.MayTalk,
		})
	}
	p.addProgress(r.Context(), &page)
	page.MessageID = cmp.Or(page.MessageID, uuid.NewString())
	if partOf(r) == "" {
		others := func(name string) bool { return name != page.Name && person.MayRead(name) }
		page.Others, page.Next, err = p.talks.List(r.Context(), others, r.URL.Query().Get("others"), shownConversations)
		if err != nil {
			return err
		}
	}
	return p.show(w, r, view{
		template: "talk", title: "Talk: " + page.Name, section: talkPath, parts: []string{"turns"},
		events: p.talkEvents(page.Name), status: status, data: page,
	})
}

// addProgress adds what the running session does, if a turn is open.
func (p *Pages) addProgress(ctx context.Context, page *talkPage) {
	if !slices.ContainsFunc(page.Turns, turnCard.Open) {
		return
	}
	now, err := p.talks.Get(ctx, page.Name)
	if err != nil {
		page.Away = err.Error()
		return
	}
	for i := range page.Turns {
		turn := &page.Turns[i]
		if turn.State == escalation.TalkRunning {
			turn.Doing = now.Doing()
			if now.Progress != nil {
				turn.SoFar, turn.CostSoFar = now.Progress.Now.Text, now.Progress.Total().CostUSD
			}
		}
	}
}

// proposalsOf returns the proposals of a turn, as the person may confirm them.
func proposalsOf(turn escalation.TalkTurn, person access.Person, mayTalk bool) []proposalCard {
	var cards []proposalCard
	for i, proposal := range turn.Proposals {
		card := proposalCard{Proposal: proposal, Number: i + 1}
		for _, confirmed := range turn.Confirmed {
			if confirmed.Proposal == card.Number {
				card.Done = &confirmed
			}
		}
		if err := person.CheckProposal(proposal); err != nil {
			card.Refusal = err.Error()
		} else if !mayTalk {
			card.Refusal = "you may read here, and not have this done"
		}
		cards = append(cards, card)
	}
	return cards
}

// talkEvents returns the URL of the event stream of a conversation; empty if there is none.
func (p *Pages) talkEvents(name string) string {
	if p.Events == "" {
		return ""
	}
	return path.Join(path.Dir(p.Events), "conversations", url.PathEscape(name), "events")
}

// sendMessage sends the message of a form.
func (p *Pages) sendMessage(w http.ResponseWriter, r *http.Request) error {
	person, name, err := talker(r)
	if err != nil {
		return err
	}
	message := escalation.TalkMessage{
		MessageID: r.PostFormValue("message_id"), Text: r.PostFormValue("text"),
		Actor: person.Name,
	}
	about, turn := r.PostFormValue("about"), 0
	if err := checkAbout(about); err != nil {
		return err
	}
	if err = access.MayStart(r.Context()); err == nil {
		turn, err = p.talks.Send(r.Context(), name, about, message)
	}
	if err != nil {
		page := talkPage{
			Name: name, About: about, MessageID: message.MessageID, Draft: message.Text,
			Problem: err.Error(),
		}
		if errors.Is(err, operations.ErrOtherMessage) { // the form was sent before, and its text was changed
			page.MessageID = ""
		}
		return p.writeTalk(w, r, page, problemOf(err).Status)
	}
	w.Header().Set("Location", fmt.Sprintf("%s/%s#turn-%d", talkPath, url.PathEscape(name), turn))
	w.WriteHeader(http.StatusSeeOther)
	return nil
}

// talker returns the person and the name of the conversation that the path names, if the person may use it.
func talker(r *http.Request) (access.Person, string, error) {
	person, _ := access.PersonOf(r.Context())
	name := r.PathValue("name")
	return person, name, person.CheckTalk(name)
}

// stopTurn stops a turn.
func (p *Pages) stopTurn(w http.ResponseWriter, r *http.Request) error {
	person, name, err := talker(r)
	if err != nil {
		return err
	}
	turn, _ := strconv.Atoi(r.PathValue("turn"))
	if turn == 0 {
		turn = -1 // 0 would stop the running turn, whichever it is; there is no turn -1
	}
	if _, err := p.talks.Stop(r.Context(), name, turn, person.Name); err != nil {
		return err
	}
	return done(w, r, talkPath+"/"+url.PathEscape(name), flash{Text: fmt.Sprintf("Turn %d is being stopped.", turn)})
}

// confirmProposal has a proposal carried out in the name of the person.
func (p *Pages) confirmProposal(w http.ResponseWriter, r *http.Request) error {
	person, name, err := talker(r)
	if err != nil {
		return err
	}
	turn, _ := strconv.Atoi(r.PathValue("turn"))     // there is no turn 0
	number, _ := strconv.Atoi(r.PathValue("number")) // nor a proposal 0
	actor := operations.Actor{Name: person.Name, Verified: true, May: person.CheckProposal}
	result, err := p.talks.Confirm(r.Context(), name, turn, number, actor)
	if err != nil {
		return err
	}
	return done(w, r, fmt.Sprintf("%s/%s#turn-%d", talkPath, url.PathEscape(name), turn),
		flash{Text: "Done in your name: " + result})
}
