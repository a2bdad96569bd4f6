package notify

import (
	"context"
	"fmt"
	"net/url"

	"github.com/nicholas-fedor/shoutrrr/pkg/services/chat/matrix"
)

// matrixServer is a homeserver, https://spec.matrix.org/latest/client-server-api/.
type matrixServer struct {
	config *matrix.Config
	token  string
}

// matrixRooms returns a sender for each room of the URL, or one for all rooms that the user has joined.
func matrixRooms(config *matrix.Config) []sender {
	rooms := config.Rooms
	if len(rooms) == 0 {
		rooms = []string{""}
	}
	var senders []sender
	for _, room := range rooms {
		senders = append(senders, sender{host: config.Host, send: func(ctx context.Context, m Message) error {
			server := matrixServer{config: config}
			return server.send(ctx, room, m)
		}})
	}
	return senders
}

func (s *matrixServer) send(ctx context.Context, room string, m Message) error {
	if err := s.logIn(ctx); err != nil {
		return err
	}
	rooms, err := s.join(ctx, room)
	if err != nil {
		return err
	}
	for _, id := range rooms {
		body := map[string]any{"msgtype": "m.text", "body": m.oneText()}
		if _, err := s.call(ctx, "rooms/"+url.PathEscape(id)+"/send/m.room.message", body, "event_id"); err != nil {
			return err
		}
	}
	return nil
}

// logIn gets an access token. Without a user, the password is the token.
func (s *matrixServer) logIn(ctx context.Context) error {
	if s.config.User == "" {
		s.token = s.config.Password
		return nil
	}
	got, err := s.call(ctx, "login", map[string]any{
		"type": "m.login.password", "password": s.config.Password,
		"identifier": map[string]any{"type": "m.id.user", "user": s.config.User},
	}, "access_token")
	if err != nil {
		return err
	}
	s.token, _ = got.json["access_token"].(string)
	return nil
}

// join joins a room, and returns its ID. For no room it returns the joined ones.
func (s *matrixServer) join(ctx context.Context, room string) ([]string, error) {
	if room != "" {
		got, err := s.call(ctx, "join/"+url.PathEscape(room), map[string]any{}, "room_id")
		if err != nil {
			return nil, err
		}
		return []string{fmt.Sprint(got.json["room_id"])}, nil
	}
	got, err := s.call(ctx, "joined_rooms", nil, "joined_rooms")
	if err != nil {
		return nil, err
	}
	joined, _ := got.json["joined_rooms"].([]any)
	if len(joined) == 0 {
		return nil, failure{own: "the user has joined no room"}
	}
	var rooms []string
	for _, id := range joined {
		rooms = append(rooms, fmt.Sprint(id))
	}
	return rooms, nil
}

// call sends a request. The answer must have the member key. A request without a body is a GET.
func (s *matrixServer) call(ctx context.Context, path string, body map[string]any, key string) (answer, error) {
	scheme := "https"
	if s.config.DisableTLS {
		scheme = "http"
	}
	r := request{url: scheme + "://" + s.config.Host + "/_matrix/client/r0/" + path}
	if s.token != "" {
		r.header = map[string]string{"Authorization": "Bearer " + s.token}
	}
	if body != nil {
		r.body = body
	} else {
		r.method = "GET"
	}
	got, err := r.do(ctx)
	if err == nil {
		err = has(key)(got)
	}
	return got, err
}
