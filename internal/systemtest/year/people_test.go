package year

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/desk/web"
	"github.com/claudeops/claudeops/internal/desk/web/access"
	"github.com/claudeops/claudeops/internal/desk/web/api"
	"github.com/claudeops/claudeops/internal/desk/web/completions"
	"github.com/claudeops/claudeops/internal/desk/web/pages"
	"github.com/claudeops/claudeops/internal/desk/web/stream"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/program"
)

// people gets the notifications.
type people struct{ i *installation }

// ID implements activities.NotifyTarget.
func (people) ID() string { return "people" }

// Send implements activities.NotifyTarget. In half of the cases, a person reacts to a chain that asks.
func (p people) Send(_ context.Context, told escalation.Notification) error {
	p.i.mu.Lock()
	p.i.told = append(p.i.told, told)
	number := len(p.i.told)
	p.i.mu.Unlock()
	asks := told.Kind == escalation.NotifyNeedsHuman || told.Kind == escalation.NotifyBlocked
	if asks && p.i.in(50, told.ChainID, "a person") {
		after := p.i.between(10*time.Minute, 20*time.Hour, told.ChainID, "answers after")
		p.i.later(after, func(ctx context.Context) { p.i.answer(ctx, told.ChainID, number) })
	}
	return nil
}

// pager gets the notifications, too. Now and then it takes none for a while.
type pager struct{ i *installation }

// ID implements activities.NotifyTarget.
func (pager) ID() string { return "pager" }

// Send implements activities.NotifyTarget.
func (p pager) Send(_ context.Context, told escalation.Notification) error {
	if _, deaf := during(p.i.deaf, time.Now()); deaf {
		return errors.New("pager: it takes nothing")
	}
	p.i.mu.Lock()
	defer p.i.mu.Unlock()
	p.i.paged[told.Key]++
	return nil
}

// later calls a function after some time, unless the life has ended.
func (i *installation) later(after time.Duration, do func(ctx context.Context)) {
	i.background.Go(func() {
		select {
		case <-time.After(after):
			do(i.ctx)
		case <-i.ctx.Done():
		}
	})
}

// answer answers the gate of a chain, or repairs the services and closes the incident.
func (i *installation) answer(ctx context.Context, chainID string, number int) {
	var gate escalation.Gate
	if status, body := i.ask(ctx, "ada", http.MethodGet, "/api/v1/chains/"+chainID+"/gate", nil); status != http.StatusOK ||
		json.Unmarshal(body, &gate) != nil || gate.ID == "" {
		return // it has closed
	}
	if chain, err := i.does.Chains.Get(ctx, chainID); err == nil && i.in(30, chainID, number, "closes") {
		if own := chain.Chain.OwnIncidents(); len(own) > 0 {
			i.closeIncident(ctx, own[0])
			return
		}
	}
	action := gate.Options[i.draw(len(gate.Options), chainID, number, "action")]
	if i.in(50, chainID, number, "by a command") {
		args := []string{"gate", chainID, "--gate", gate.ID, "--action", string(action), "--actor", "ada"}
		if action == escalation.GateFix || action == escalation.GateContinue {
			args = append(args, "--guidance", "do this")
		}
		code, _, complaint := i.command(ctx, []time.Duration{-24 * time.Hour, 0, 24 * time.Hour}[i.draw(3, chainID, number, "laptop")], args...)
		if code == program.ExitUsage {
			i.problem("claudeops %v: %s", args, complaint)
		}
		i.agents.count(i.agents.ran, "answers")
		return
	}
	said := map[string]any{"gate_id": gate.ID, "action": action}
	if action == escalation.GateFix || action == escalation.GateContinue {
		said["guidance"] = "do this"
	}
	status, body := i.ask(ctx, "ada", http.MethodPost, "/api/v1/chains/"+chainID+"/gate", said)
	if status != http.StatusOK && status != http.StatusConflict && status != http.StatusNotFound {
		i.problem("an answer at the gate of %s: %d %s", chainID, status, body)
	}
	i.agents.count(i.agents.ran, "answers")
}

func (i *installation) closeIncident(ctx context.Context, id string) {
	incident, err := i.records.Incident(ctx, id)
	if isUnknown(err) {
		return
	}
	for _, service := range firstNames(incident.Services) {
		i.mend(service, time.Now(), "")
	}
	i.agents.count(i.agents.ran, "closed")
	if i.in(50, id, "by a command") {
		ahead := []time.Duration{-24 * time.Hour, 0, 24 * time.Hour}[i.draw(3, id, "laptop")]
		i.command(ctx, ahead, "incidents", "close", id, "--reason", "repaired by hand", "--actor", "ada")
		return
	}
	status, body := i.ask(ctx, "ada", http.MethodPost, "/api/v1/incidents/"+id+"/close", map[string]any{"reason": "repaired by hand"})
	if status != http.StatusOK && status != http.StatusConflict && status != http.StatusNotFound {
		i.problem("closing %s: %d %s", id, status, body)
	}
}

// serve makes the web server, and the tokens of its people.
func (i *installation) serve() {
	logger := slog.New(slog.DiscardHandler)
	tokens := access.OpenTokens(filepath.Join(i.home, "tokens"))
	i.tokens = map[string]string{}
	for _, name := range []string{"ada", "José", "Josè", "sam", "sam@phone", "carl", "chat"} {
		roles := []access.Role{access.View, access.Talk}
		if name == "ada" {
			roles = append(roles, access.Answer, access.Operate)
		}
		secret, err := tokens.Create(access.Token{Name: name, Roles: roles})
		require.NoError(i.t, err)
		i.tokens[name] = secret
	}
	who, err := access.New(access.Options{Tokens: tokens, KeyFile: filepath.Join(i.home, "key"), Logger: logger})
	require.NoError(i.t, err)
	hub := stream.NewHub(func() stream.Source { return i.does.Feed.Watch() }, logger)
	shown, err := pages.New(i.does, pages.Options{Clock: func() time.Time { return time.Now().In(i.zone) }})
	require.NoError(i.t, err)
	i.server, err = web.New(web.Options{
		Access: who, Hosts: []string{"127.0.0.1"}, Logger: logger,
		Parts: []web.Part{shown, api.New(i.does, hub, "test"), completions.New(i.does.Conversations, completions.Options{})},
	})
	require.NoError(i.t, err)
}

// ask sends a request of a person.
func (i *installation) ask(ctx context.Context, person, method, path string, body any) (status int, answer []byte) {
	data := []byte{}
	if body != nil {
		var err error
		data, err = json.Marshal(body)
		require.NoError(i.t, err)
	}
	request := httptest.NewRequestWithContext(ctx, method, "http://127.0.0.1"+path, bytes.NewReader(data))
	request.Header.Set("Authorization", "Bearer "+i.tokens[person])
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	recorder := httptest.NewRecorder()
	begin := realTime()
	waits := time.Now()
	i.server.ServeHTTP(recorder, request)
	shown := i.mangle(path, recorder.Body.Bytes())
	if time.Since(waits) == 0 { // it waited for nothing but its own work
		i.took(method+" "+strings.Split(path, "?")[0], realTime()-begin)
	}
	return recorder.Code, shown
}

// took notes how long an operation took. Of each operation the second longest time counts: the collector can have gone
// through the gigabyte that the SDK's environment keeps, during one of them.
func (i *installation) took(name string, used time.Duration) {
	i.mu.Lock()
	defer i.mu.Unlock()
	longest, second := i.seen.longest[name][0], i.seen.longest[name][1]
	longest, second = max(longest, used), max(second, min(longest, used))
	i.seen.longest[name] = [2]time.Duration{longest, second}
	if second > i.figures.slowest {
		i.figures.slowest, i.figures.slowestName = second, name
	}
}

// said is a message that a person has sent.
type said struct {
	person, text string
	sent, ended  time.Time
	turn         int
	reply        string
}

// reply is what the agent answers: what it was asked, and when. A session that is asked for its reply once more
// remembers what it was asked first.
func (i *installation) reply(run activities.AgentRun, prompt string) escalation.TalkReply {
	i.mu.Lock()
	defer i.mu.Unlock()
	asked := i.seen.asked[run.SessionID]
	if from, to := strings.LastIndex(prompt, "«"), strings.LastIndex(prompt, "»"); from >= 0 && to > from {
		asked = strings.Clone(prompt[from : to+len("»")]) // it must not keep the prompt
	}
	i.seen.asked[run.SessionID] = asked
	return escalation.TalkReply{Reply: fmt.Sprintf("You asked %s at %s.", asked, time.Now().UTC().Format(time.RFC3339))}
}

// talk lets people talk until the life ends.
func (i *installation) talk() {
	for _, person := range []string{"ada", "José", "Josè", "carl"} {
		i.regularly(person, 9*time.Hour, func(ctx context.Context, n int) { i.message(ctx, person, n) })
	}
	for _, person := range []string{"sam", "sam@phone"} { // the same question each day
		i.regularly(person, 24*time.Hour, func(ctx context.Context, _ int) {
			i.chat(ctx, person, []string{"«how are the disks?»"})
		})
	}
	i.regularly("chat", 30*time.Hour, i.chatOn)
}

// work lets people start what is no talk.
func (i *installation) work() {
	i.regularly("planner", 6*24*time.Hour, i.plan)
	i.regularly("gardener", 4*24*time.Hour, i.tend)
}

// regularly lets a person do something again and again.
func (i *installation) regularly(person string, each time.Duration, do func(ctx context.Context, n int)) {
	i.background.Go(func() {
		last := i.begin.Add(time.Duration(i.days)*24*time.Hour - quiet/2)
		for n := 0; ; n++ {
			pause := i.slowly(i.between(each/2, 3*each/2, person, n, "talks"))
			if time.Now().Add(pause).After(last) {
				return
			}
			select {
			case <-time.After(pause):
				do(i.ctx, n)
			case <-i.ctx.Done():
				return
			}
		}
	})
}

// message sends a message through the API, as often as it needs to arrive, and waits for its answer.
func (i *installation) message(ctx context.Context, person string, n int) {
	text := fmt.Sprintf("«%s asks for the %d. time»", person, n)
	one := &said{person: person, text: text, sent: time.Now()}
	body := map[string]any{"message_id": fmt.Sprintf("m-%d", n), "text": text}
	if i.in(10, person, n, "twice") {
		i.later(time.Second, func(ctx context.Context) {
			i.ask(ctx, person, http.MethodPost, "/api/v1/conversations/@me/messages", body)
		})
	}
	for ctx.Err() == nil {
		var sent struct{ Turn int }
		status, answer := i.ask(ctx, person, http.MethodPost, "/api/v1/conversations/@me/messages", body)
		if status == http.StatusOK && json.Unmarshal(answer, &sent) == nil {
			one.turn = sent.Turn
			break
		}
		if status < http.StatusInternalServerError && status != http.StatusConflict {
			i.problem("%s could not send: %d %s", person, status, answer)
			return
		}
		time.Sleep(time.Minute)
	}
	if i.in(5, person, n, "stops") {
		time.Sleep(5 * time.Second)
		i.ask(ctx, person, http.MethodPost, "/api/v1/conversations/@me/stop", nil) // it may have ended
	}
	for pause := 20 * time.Second; ctx.Err() == nil; pause = min(2*pause, 10*time.Minute) {
		var turn escalation.TalkTurn
		status, answer := i.ask(ctx, person, http.MethodGet, fmt.Sprintf("/api/v1/conversations/@me/turns/%d?wait=true", one.turn), nil)
		if status == http.StatusOK && json.Unmarshal(answer, &turn) == nil && turn.State.Final() {
			i.heard(one, turn)
			return
		}
		if *verbose && status != http.StatusOK {
			fmt.Println("WAIT", person, status, string(answer))
		}
		if time.Since(one.sent) > waitsAtMost {
			i.problem("the message %s of %s has no answer after %s: %d %s", text, person, waitsAtMost, status, answer)
			return
		}
		time.Sleep(pause)
	}
}

// waitsAtMost is longer than outages of the database and of the provider are, together.
const waitsAtMost = 9 * time.Hour

// heard checks what a person gets for a message.
func (i *installation) heard(one *said, turn escalation.TalkTurn) {
	one.ended, one.reply = turn.EndedAt, turn.Reply
	i.heardBy(one)
	i.agents.count(i.agents.ran, "turns "+string(turn.State))
	if *verbose && turn.State == escalation.TalkFailed {
		fmt.Println("FAILED", one.person, one.text, turn.Failure, turn.Note)
	}
	switch {
	case turn.Text != one.text:
		i.problem("%s sent %s, and turn %d has %s", one.person, one.text, one.turn, turn.Text)
	case turn.State == escalation.TalkAnswered && !strings.Contains(turn.Reply, one.text):
		i.problem("%s asked %s, and heard %s", one.person, one.text, turn.Reply)
	case turn.State != escalation.TalkAnswered && turn.Failure == "":
		i.problem("%s asked %s, and the turn ended %s without a sentence", one.person, one.text, turn.State)
	}
	i.mu.Lock()
	before := i.seen.turns[one.person]
	i.seen.turns[one.person] = one.turn
	i.mu.Unlock()
	if one.turn <= before {
		i.problem("%s: turn %d follows turn %d", one.person, one.turn, before)
	}
}

// chat sends the messages of a chat as its client does, the last one new, and returns the answer. A client that waits
// too long sends them again.
func (i *installation) chat(ctx context.Context, person string, messages []string) (answer string, answered bool) {
	var list []map[string]any
	for n, text := range messages {
		list = append(list, map[string]any{"role": []string{"user", "assistant"}[n%2], "content": text})
	}
	asked := time.Now()
	for pause := 10 * time.Second; ctx.Err() == nil && time.Since(asked) < waitsAtMost; pause = min(2*pause, 20*time.Minute) {
		patience := i.between(4*time.Second, 100*time.Second, person, asked, time.Now(), "patience")
		waiting, cancel := context.WithTimeout(ctx, patience)
		status, body := i.ask(waiting, person, http.MethodPost, "/v1/chat/completions", map[string]any{"model": "claudeops", "messages": list})
		cancel()
		var got struct {
			Choices []struct{ Message struct{ Content string } }
		}
		if status == http.StatusOK && json.Unmarshal(body, &got) == nil && len(got.Choices) == 1 {
			i.checkChat(person, messages[len(messages)-1], got.Choices[0].Message.Content, asked)
			return got.Choices[0].Message.Content, true
		}
		if status == http.StatusUnprocessableEntity { // no client repeats it
			i.agents.count(i.agents.ran, "chats without an answer")
			return "", false
		}
		if status < http.StatusInternalServerError && status != http.StatusOK && status != http.StatusConflict && status != http.StatusTooManyRequests {
			i.problem("%s chats: %d %s", person, status, body)
			return "", false
		}
		time.Sleep(pause)
	}
	return "", false
}

// checkChat checks that the answer is that to the question, and of today.
func (i *installation) checkChat(person, asked, answer string, at time.Time) {
	i.agents.count(i.agents.ran, "chats")
	if !strings.Contains(answer, asked) {
		i.problem("%s asked %s in a chat, and heard %s", person, asked, answer)
		return
	}
	_, when, _ := strings.Cut(answer, " at ")
	answered, err := time.Parse(time.RFC3339, strings.TrimSuffix(strings.Fields(when + " ?")[0], "."))
	if err != nil || answered.Before(at.Add(-time.Second)) {
		i.problem("%s asked %s at %s, and heard an old answer: %s", person, asked, at.UTC().Format(time.RFC3339), answer)
	}
}

// chatOn continues a chat for some messages. Now and then the person edits an earlier message.
func (i *installation) chatOn(ctx context.Context, n int) {
	var messages []string
	for turn := range 2 + i.draw(4, "chat", n) {
		if turn > 1 && i.in(25, "chat", n, turn, "edits") {
			messages = messages[:len(messages)-2]
		}
		messages = append(messages, fmt.Sprintf("«chat %d, message %d»", n, turn))
		answer, answered := i.chat(ctx, "chat", messages)
		if !answered {
			return
		}
		messages = append(messages, answer)
		time.Sleep(i.between(10*time.Second, 2*time.Hour, "chat", n, turn, "reads"))
	}
}

// archive has the archived conversations.
type archive struct{ i *installation }

// Remove implements reconcile.Conversations.
func (a archive) Remove(_ context.Context, sessionID string) error {
	a.i.agents.mu.Lock()
	defer a.i.agents.mu.Unlock()
	delete(a.i.agents.conversations, sessionID)
	return nil
}
