package notify

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/nicholas-fedor/shoutrrr/pkg/services/chat/lark"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/incident/pagerduty"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/specialized/generic"
	"github.com/nicholas-fedor/shoutrrr/pkg/types"
)

// webhook returns the sender of a generic URL. The service is unknown: any answer with a status of success counts.
func webhook(service types.Service, rawURL *url.URL) []sender {
	s, ok := service.(*generic.Service)
	if !ok {
		return nil
	}
	header := map[string]string{"Content-Type": s.Config.ContentType}
	if s.Config.Template == "" {
		header["Content-Type"] = "text/plain"
	}
	header["Accept"] = header["Content-Type"]
	for key, values := range rawURL.Query() {
		if name, isHeader := strings.CutPrefix(key, "@"); isHeader {
			header[camel.ReplaceAllString(name, "$1-$2")] = values[0]
		}
	}
	if _, err := s.GetPayload(s.Config, types.Params{}); err != nil {
		return nil // there is no such template
	}
	return to(func(answer) error { return nil }, func(m Message) request {
		payload, _ := s.GetPayload(s.Config, types.Params{s.Config.MessageKey: m.oneText()})
		body, _ := io.ReadAll(payload) // from memory
		return request{
			method: s.Config.RequestMethod, url: s.Config.WebhookURL().String(), header: header,
			body: string(body),
		}
	})
}

// camel matches where shoutrrr's notation of a header has a new word.
var camel = regexp.MustCompile(`([a-z])([A-Z])`)

// larkBot returns the sender of a bot of Lark or Feishu.
func larkBot(s *lark.Service) []sender {
	return to(is("code", 0.0), func(m Message) request {
		body := object{"msg_type": "post", "content": object{"post": object{"en_us": object{
			"title": m.Title, "content": [][]object{{{"tag": "text", "text": m.whole()}}},
		}}}}
		if secret := s.Config.Secret; secret != "" {
			now := strconv.FormatInt(time.Now().Unix(), 10)
			body["timestamp"] = now
			body["sign"] = base64.StdEncoding.EncodeToString(hmac.New(sha256.New, []byte(now+"\n"+secret)).Sum(nil))
		}
		return request{url: "https://" + s.Config.Host + "/open-apis/bot/v2/hook/" + s.Config.Path, body: body}
	})
}

// pager returns the sender of an event of PagerDuty.
func pager(s *pagerduty.Service) []sender {
	port := cmp.Or(s.Config.Port, 443) // shoutrrr's router leaves out the default
	return to(is("status", "success"), func(m Message) request {
		c := s.Config
		body := filled(object{
			"routing_key": c.IntegrationKey, "event_action": c.Action, "dedup_key": c.DedupKey,
			"client": c.Client, "client_url": c.ClientURL,
			"payload": object{
				"summary": cutBytes(m.Title, 1_024), "severity": c.Severity, "source": c.Source,
				"custom_details": object{"text": m.whole()},
			},
		})
		for key, text := range map[string]string{"details": c.Details, "contexts": c.Contexts} {
			var value any
			if json.Unmarshal([]byte(text), &value) == nil {
				body[key] = value
			}
		}
		return request{url: fmt.Sprintf("https://%s:%d/v2/enqueue", c.Host, port), body: body}
	})
}
