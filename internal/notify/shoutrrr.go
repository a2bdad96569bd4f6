package notify

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"sync"

	"github.com/nicholas-fedor/shoutrrr/pkg/router"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/chat/matrix"
	"github.com/nicholas-fedor/shoutrrr/pkg/types"
)

const (
	// matrixService is the only service that logs in during its setup.
	matrixService = "matrix"
	// loggerService sends nothing to people.
	loggerService = "logger"
)

// shoutrrrServices lists the schemes of shoutrrr's services that send messages to people.
var shoutrrrServices = sync.OnceValue(func() []string {
	all := slices.DeleteFunc((&router.ServiceRouter{}).ListServices(), func(name string) bool { return name == loggerService })
	slices.Sort(all)
	return slices.Clip(all)
})

// titled lists the services whose messages have a separate title. For other services the title is the first line.
var titled = []string{
	"bark", "discord", "gotify", "join", "lark", "notifiarr", "ntfy", "opsgenie", "pushbullet", "pushover", "slack", "smtp", "teams",
}

func parseShoutrrr(service, rawURL string) (func(context.Context, Message) error, error) {
	if err := checkShoutrrr(service, rawURL); err != nil { // the library's error can contain the URL
		return nil, fmt.Errorf("be a complete %s URL as https://shoutrrr.nickfedor.com describes it", service)
	}
	return func(_ context.Context, m Message) error { return sendShoutrrr(service, rawURL, m) }, nil
}

// checkShoutrrr checks the URL without contacting the service.
func checkShoutrrr(service, rawURL string) (err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("the driver failed on it")
		}
	}()
	if service != matrixService {
		_, err = (&router.ServiceRouter{}).Locate(rawURL)
		return err
	}
	parsed, err := url.Parse(rawURL)
	if err != nil {
		return err
	}
	if parsed.Host == "" || parsed.User == nil {
		return errors.New("it names no server or no user")
	}
	return new(matrix.Config).SetURL(parsed)
}

// sendShoutrrr sends a message. It creates a new sender for each message, because sending changes the sender.
func sendShoutrrr(service, rawURL string, m Message) error {
	sender, err := (&router.ServiceRouter{}).Locate(rawURL)
	if err != nil {
		return err
	}
	params := types.Params{}
	if slices.Contains(titled, service) {
		params.SetTitle(m.Title)
	} else {
		m.Text = m.Title + "\n\n" + m.Text
	}
	return sender.Send(m.Text, &params)
}
