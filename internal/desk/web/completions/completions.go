package completions

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"time"

	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/desk/web/access"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plaintext"
)

const (
	// prefix begins the paths of this package.
	prefix = access.CompletionsPrefix

	// model is the name of the only model.
	model = "claudeops"
	// pingInterval is the time after which a client that waits gets a comment, so that nothing on the way closes the
	// connection.
	pingInterval = 15 * time.Second
	// maxRequests limits the requests of one person at the same time.
	maxRequests = 50
)

// Talks are the conversations.
type Talks interface {
	// Send sends a message, and returns its turn. A message with a known ID keeps its turn.
	Send(ctx context.Context, name, about string, message escalation.TalkMessage) (int, error)
	// Follow reports what happens in a turn until its end, and returns the turn.
	Follow(ctx context.Context, name string, turn int, see func(operations.TalkEvent) error) (escalation.TalkTurn,
		error)
	// TurnsOf calls see with the turns whose messages have a key, the latest first, until see returns false.
	TurnsOf(ctx context.Context, name, key string, see func(escalation.TalkTurn) bool) error
	// History returns the latest turns of a conversation, oldest first, at most limit.
	History(ctx context.Context, name string, limit int) ([]escalation.TalkTurn, error)
	// MessageTurn returns the turn of the message with an ID. The error is operations.KindNotFound if there is none.
	MessageTurn(ctx context.Context, messageID string) (escalation.TalkTurn, error)
	// Tokens returns the tokens that a turn has used.
	Tokens(ctx context.Context, turn escalation.TalkTurn) (escalation.TokenUsage, error)
	// FailsAgain reports whether a turn has failed for a reason that the same message would meet again.
	FailsAgain(ctx context.Context, turn escalation.TalkTurn) (bool, error)
}

var _ Talks = operations.Conversations{}

// Options describe a server.
type Options struct {
	// Progress passes on what sessions do, as lines before the answer.
	Progress bool
	// Ping is the time after which a client that waits gets a comment; 0 means 15 seconds.
	Ping time.Duration
	// Clock returns the current time; nil means time.Now.
	Clock func() time.Time
}

// Server is a part of the web server.
type Server struct {
	talks   Talks
	options Options
	clock   func() time.Time
	running access.Crowd
	told    told
	recent  recent
}

// New returns a server of these conversations.
func New(talks Talks, options Options) *Server {
	if options.Ping == 0 {
		options.Ping = pingInterval
	}
	if options.Clock == nil {
		options.Clock = time.Now
	}
	return &Server{
		talks: talks, options: options, clock: options.Clock, running: access.NewCrowd(maxRequests),
		told: told{turns: map[string]time.Time{}},
	}
}

// Register adds the routes.
func (s *Server) Register(router *access.Router) {
	router.Handle(access.Talk, "POST "+prefix+"chat/completions", http.HandlerFunc(s.complete))
	router.Handle(access.Talk, "GET "+prefix+"models", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = writeJSON(w, modelList{"list", []modelInfo{ownModel}}) // an error means that the client has gone
	}))
	router.Handle(access.Talk, "GET "+prefix+"models/{model}",
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if name := r.PathValue("model"); name != model {
				message := fmt.Sprintf("there is no model %q, and only %s", plaintext.Cut(name, maxLine), model)
				access.NewCompletionError(http.StatusNotFound, message, "model", "model_not_found").Write(w)
				return
			}
			_ = writeJSON(w, ownModel) // an error means that the client has gone
		}))
	unknown := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		message := "there is nothing at this address: the server has " + prefix + "chat/completions and " + prefix +
			"models"
		access.NewCompletionError(http.StatusNotFound, message, "", "").Write(w)
	})
	router.Handle(access.Talk, "GET "+prefix, unknown)
	router.Handle(access.Talk, "POST "+prefix, unknown)
}

// complete answers a message.
func (s *Server) complete(w http.ResponseWriter, r *http.Request) {
	person, _ := access.PersonOf(r.Context())
	if err := s.running.Enter(person.Name); err != nil {
		fail(w, err)
		return
	}
	defer s.running.Leave(person.Name)
	asked, d, err := readRequest(r)
	if err != nil {
		fail(w, err)
		return
	}
	out := &writer{response: w, usage: asked.StreamOptions.IncludeUsage ||
		!asked.Stream, streams: asked.Stream, created: s.clock().Unix()}
	from := senderOf(r, person.Name)
	if canned, ok := s.canned(asked, from, d); ok {
		out.id = "chatcmpl-" + hash(canned)
		out.begin()
		_ = out.finish(canned, escalation.TokenUsage{}) // an error means that the client has gone
		return
	}
	if d.continues {
		out.lead = continued
	}
	if err := s.answer(r, out, from, d); err != nil {
		out.fail(err)
	}
}

// confirms matches a message that confirms a proposal elsewhere.
var confirms = regexp.MustCompile(`^/yes( |$)`)

// confirmations explains why a message such as /yes 1 confirms nothing.
const confirmations = "Proposals cannot be confirmed here. Use the command below the proposal, or the pages."

// canned returns the answer to a message that needs no session.
func (s *Server) canned(asked request, from sender, d dialogue) (string, bool) {
	if confirms.MatchString(d.text) {
		return confirmations, true
	}
	if answer, is := taskAnswer(d); is {
		return answer, true
	}
	return s.noConversation(asked, from, d)
}

// answer sends the message, and passes on what comes of it. When the client has gone, it returns: the turn continues.
func (s *Server) answer(r *http.Request, out *writer, from sender, d dialogue) error {
	ctx := r.Context()
	p, err := s.find(ctx, from, d)
	if err == nil && !p.known {
		err = access.MayStart(ctx)
	}
	if err != nil {
		return err
	}
	turn := p.ended
	if turn == 0 {
		if turn, err = s.talks.Send(ctx, p.name, "", p.message); err != nil {
			return err
		}
	}
	out.id = fmt.Sprintf("chatcmpl-%s-%d", p.name, turn)
	out.begin()
	ended, err := s.pass(ctx, out, p.name, turn)
	if err != nil {
		return err
	}
	if ended.State != escalation.TalkAnswered {
		again, err := s.talks.FailsAgain(ctx, ended)
		return &noAnswerError{ended, again && err == nil}
	}
	ended.ConversationID = escalation.ConversationPrefix + p.name
	s.recent.add(exchange{from.owner(), canonical(d.text), head(render(ended)), s.clock(), out.streams})
	var used escalation.TokenUsage
	if out.usage {
		used, _ = s.talks.Tokens(ctx, ended) // the answer counts, also without a figure
	}
	if out.finish(out.parts.end(ended), used) == nil {
		s.told.add(p.name, turn, s.clock())
	}
	return nil
}

// pass passes on the parts of an answer until its turn has ended, with a comment from time to time.
func (s *Server) pass(ctx context.Context, out *writer, name string, turn int) (escalation.TalkTurn, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	type end struct {
		turn escalation.TalkTurn
		err  error
	}
	events, ended := make(chan operations.TalkEvent), make(chan end, 1)
	go func() {
		turn, err := s.talks.Follow(ctx, name, turn, func(event operations.TalkEvent) error {
			select {
			case events <- event:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		ended <- end{turn, err}
	}()
	pings := time.NewTicker(s.options.Ping)
	defer pings.Stop()
	for {
		var written error
		select {
		case end := <-ended:
			return end.turn, end.err
		case event := <-events:
			written = s.show(out, event)
		case <-pings.C:
			if written = errRevoked; access.StillKnown(ctx) {
				written = out.ping()
			}
		}
		if written != nil {
			stop()
			<-ended
			return escalation.TalkTurn{}, written
		}
	}
}

// errRevoked ends the answer to a client whose token was revoked since its request. The turn continues.
var errRevoked = errors.New("your token is no longer valid")

// show passes on an event of a turn.
func (s *Server) show(out *writer, event operations.TalkEvent) error {
	switch event.Kind {
	case operations.TalkText:
		return out.text(out.parts.add(event.Text, event.Again))
	case operations.TalkWorks:
		return s.progress(out, event.Doing)
	case operations.TalkWaits:
		return s.progress(out, fmt.Sprintf("waits for %d earlier messages", event.Ahead))
	case operations.TalkNobody:
		return s.progress(out, "no worker answers")
	case operations.TalkEnded:
	}
	return nil
}

// progress passes on a line about the session, if the server is set so, and if the answer has not begun.
func (s *Server) progress(out *writer, line string) error {
	if !s.options.Progress || line == "" || out.parts.sent != "" {
		return nil
	}
	return out.text(progressMark + oneLine(line) + "\n\n")
}
