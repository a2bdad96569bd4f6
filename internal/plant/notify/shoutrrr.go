package notify

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"

	"github.com/nicholas-fedor/shoutrrr/pkg/router"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/chat/matrix"
	"github.com/nicholas-fedor/shoutrrr/pkg/types"
)

// kind is a service with URLs of shoutrrr. Shoutrrr reads the URLs. It does not send, because it takes most answers for
// a success: the page of a proxy, a redirect, an error that Telegram's or Join's API reports with another status.
type kind struct {
	// room is the size in bytes of the longest message that the service takes, title included. Where the service counts
	// characters, it is as many bytes, so that no way of counting exceeds it.
	room    int
	senders func(service types.Service, rawURL *url.URL) []sender
}

// on adapts a function on one type of shoutrrr's services.
func on[S types.Service](senders func(service S) []sender) func(types.Service, *url.URL) []sender {
	return func(service types.Service, _ *url.URL) []sender {
		exact, ok := service.(S)
		if !ok {
			return nil
		}
		return senders(exact)
	}
}

// to returns a list of one sender of one request.
func to(taken proof, prepare func(m Message) request) []sender {
	return []sender{post(taken, prepare)}
}

// each returns a sender for each recipient, so that those that have got a message do not get it again when another one
// fails.
func each(recipients []string, senderOf func(recipient string) sender) []sender {
	senders := make([]sender, len(recipients))
	for i, recipient := range recipients {
		senders[i] = senderOf(recipient)
	}
	return senders
}

// object is a JSON object.
type object = map[string]any

// filled returns o without empty values.
func filled(o object) object {
	maps.DeleteFunc(o, func(_ string, value any) bool {
		texts, isList := value.([]string)
		return value == "" || isList && len(texts) == 0
	})
	return o
}

// parseService returns the senders of a URL of shoutrrr.
func parseService(service, rawURL string) (senders []sender, err error) {
	defer func() {
		if recover() != nil || err != nil { // the library's errors can contain the URL
			senders, err = nil, fmt.Errorf("be a complete %s URL as https://shoutrrr.nickfedor.com describes it",
				service)
		}
	}()
	parsed, err := url.Parse(rawURL)
	if err != nil {
		return nil, err
	}
	if service == "matrix" { // shoutrrr's service would log in
		config := new(matrix.Config)
		if parsed.Host == "" || parsed.User == nil {
			return nil, errors.New("it names no server or no user")
		}
		if err := config.SetURL(parsed); err != nil {
			return nil, err
		}
		return matrixRooms(config), nil
	}
	located, err := new(router.ServiceRouter).Locate(rawURL)
	if err != nil {
		return nil, err
	}
	senders = kinds[service].senders(located, parsed)
	if len(senders) == 0 {
		return nil, errors.New("it names no recipient")
	}
	return senders, nil
}

// services returns the schemes that Parse accepts.
func services() []string {
	return slices.Sorted(slices.Values(append(slices.Collect(maps.Keys(kinds)), appriseScheme, appriseTLSScheme)))
}
