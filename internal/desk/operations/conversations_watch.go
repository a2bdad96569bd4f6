package operations

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/claudeops/claudeops/internal/escalation"
)

// TalkNews is news about one turn of a conversation.
type TalkNews struct {
	// Number is the number of the turn; 0 for TalkNobody.
	Number int `json:"number,omitempty"`

	TalkEvent
}

// Watch reports what happens in a conversation until ctx ends, beginning with the turns that are open. For TalkEnded it
// does not report the turn itself. The function see gets the news; if it returns an error, Watch returns that error.
// Nothing happens in a conversation that nobody has begun.
func (c Conversations) Watch(ctx context.Context, name string, see func(TalkNews) error) error {
	if err := escalation.CheckConversationName(name); err != nil {
		return Invalid(err)
	}
	connection, _, err := c.connect(ctx)
	if err != nil {
		return err
	}
	ticker := time.NewTicker(connection.watchInterval())
	defer ticker.Stop()
	watch := talkWatch{open: map[int]*turnEvents{}}
	for {
		now, err := c.Get(ctx, name)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		for _, news := range watch.next(now, err) {
			if err := see(news); err != nil {
				return err
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// talkWatch turns looks at a conversation into news.
type talkWatch struct {
	// open holds the turns that had not ended at the look before, and latest is the highest number of a turn.
	open   map[int]*turnEvents
	latest int
	// begun reports whether there was a look. away reports whether nobody answered the look before.
	begun, away bool
}

// next returns the news since the look before. The argument err is the error of the look.
func (w *talkWatch) next(now LiveConversation, err error) (news []TalkNews) {
	if err != nil && KindOf(err) != KindNotFound {
		if !w.away {
			news = append(news, TalkNews{TalkEvent: TalkEvent{Kind: TalkNobody}})
		}
		w.away = true
		return news
	}
	shown := map[int]bool{}
	for _, turn := range now.Turns {
		if turn.State.Final() {
			if w.open[turn.Turn] == nil && w.begun && turn.Turn > w.latest {
				w.open[turn.Turn] = new(turnEvents) // it has begun and ended since
			}
			continue
		}
		if w.open[turn.Turn] == nil {
			w.open[turn.Turn] = new(turnEvents)
		}
		shown[turn.Turn] = true
		for _, event := range w.open[turn.Turn].next(now, nil, turn.Turn) {
			news = append(news, TalkNews{turn.Turn, event})
		}
	}
	for _, number := range slices.Sorted(maps.Keys(w.open)) {
		if !shown[number] {
			news = append(news, TalkNews{number, TalkEvent{Kind: TalkEnded}})
			delete(w.open, number)
		}
	}
	for _, turn := range now.Turns {
		w.latest = max(w.latest, turn.Turn)
	}
	w.begun, w.away = true, false
	return news
}
