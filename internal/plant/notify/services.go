package notify

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"maps"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/nicholas-fedor/shoutrrr/pkg/services/chat/discord"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/chat/googlechat"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/chat/matrix"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/chat/mattermost"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/chat/rocketchat"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/chat/signal"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/chat/slack"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/chat/teams"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/chat/telegram"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/chat/wecom"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/chat/zulip"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/incident/opsgenie"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/push/bark"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/push/gotify"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/push/ifttt"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/push/join"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/push/ntfy"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/push/pushbullet"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/push/pushover"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/specialized/notifiarr"
	"github.com/nicholas-fedor/shoutrrr/pkg/types"
)

// kinds lists the services by scheme.
var kinds = map[string]kind{
	// A push of Apple's has 4,096 bytes with all its fields.
	"bark": {3_000, on(func(s *bark.Service) []sender {
		return to(is("code", 200.0), func(m Message) request {
			c := s.Config
			return request{url: c.GetAPIURL("push"), body: filled(object{
				"title": m.Title, "body": m.whole(), "device_key": c.DeviceKey, "sound": c.Sound, "icon": c.Icon,
				"group": c.Group, "url": c.URL, "category": c.Category, "copy": c.Copy, "badge": c.Badge,
			})}
		})
	})},
	"discord": {4_000, on(func(s *discord.Service) []sender {
		colors := map[Level]uint{
			LevelInfo: s.Config.ColorInfo, LevelSuccess: s.Config.Color,
			LevelWarning: s.Config.ColorWarn, LevelFailure: s.Config.ColorError,
		}
		target := discord.HooksBaseURL + "/" + url.PathEscape(s.Config.WebhookID) + "/" + url.PathEscape(s.Config.Token)
		query := url.Values{"wait": {"true"}} // for an answer that proves the delivery
		if s.Config.ThreadID != "" {
			query.Set("thread_id", s.Config.ThreadID)
		}
		taken := func(a answer) error {
			if a.status == http.StatusNoContent {
				return nil
			}
			return has("id")(a)
		}
		return to(taken, func(m Message) request {
			return request{
				url: target + "?" + query.Encode(),
				body: filled(object{
					"username": s.Config.Username, "avatar_url": s.Config.Avatar,
					"embeds": []object{{
						"title": cutBytes(m.Title, 256), "description": m.whole(),
						"color": colors[m.Level],
					}},
				}),
			}
		})
	})},
	"generic": {32_000, webhook},
	"googlechat": {4_000, on(func(s *googlechat.Service) []sender {
		target := url.URL{
			Scheme: "https", Host: s.Config.Host, Path: s.Config.Path,
			RawQuery: url.Values{"key": {s.Config.Key}, "token": {s.Config.Token}}.Encode(),
		}
		return to(has("name"), func(m Message) request {
			return request{url: target.String(), body: object{"text": m.oneText()}}
		})
	})},
	"gotify": {32_000, on(func(s *gotify.Service) []sender {
		target, _ := new(gotify.DefaultURLBuilder).BuildURL(s.Config) // never fails
		header := map[string]string{}
		if s.Config.UseHeader {
			header["X-Gotify-Key"] = s.Config.Token
		}
		return to(has("id"), func(m Message) request {
			body := object{"title": m.Title, "message": m.whole(), "priority": s.Config.Priority}
			if len(s.Config.Extras) > 0 {
				body["extras"] = s.Config.Extras
			}
			return request{url: target, header: header, body: body, insecure: s.Config.InsecureSkipVerify}
		})
	})},
	"ifttt": {4_000, on(func(s *ifttt.Service) []sender {
		return each(s.Config.Events, func(event string) sender {
			return post(isNoPage, func(m Message) request {
				values := object{"value1": s.Config.Value1, "value2": s.Config.Value2, "value3": s.Config.Value3}
				text := m.whole()
				if s.Config.UseTitleAsValue != ifttt.DisabledValue {
					values[fmt.Sprint("value", s.Config.UseTitleAsValue)] = m.Title
				} else {
					text = m.oneText()
				}
				values[fmt.Sprint("value", s.Config.UseMessageAsValue)] = text
				return request{
					url: "https://maker.ifttt.com/trigger/" + url.PathEscape(event) + "/with/key/" +
						url.PathEscape(s.Config.WebHookID), body: values,
				}
			})
		})
	})},
	// A push of Google's has 4,096 bytes with all its fields.
	"join": {3_000, on(func(s *join.Service) []sender {
		return to(is("success", true), func(m Message) request {
			query := url.Values{
				"deviceIds": {strings.Join(s.Config.Devices, ",")}, "apikey": {s.Config.APIKey}, "text": {m.whole()},
				"title": {m.Title},
			}
			if s.Config.Icon != "" {
				query.Set("icon", s.Config.Icon)
			}
			return request{url: "https://joinjoaomgcd.appspot.com/_ah/api/messaging/v1/sendPush?" + query.Encode()}
		})
	})},
	"lark":   {4_000, on(larkBot)},
	"matrix": {30_000, on(func(s *matrix.Service) []sender { return matrixRooms(s.Config) })},
	"mattermost": {4_000, on(func(s *mattermost.Service) []sender {
		return to(says("ok"), func(m Message) request {
			c := s.Config
			body := mattermost.JSON{Text: m.oneText(), UserName: c.UserName, Channel: c.Channel}
			body.SetIcon(c.Icon)
			return request{url: secureUnless(c.DisableTLS) + c.Host + "/hooks/" + c.Token, body: body}
		})
	})},
	"notifiarr": {1_800, on(func(s *notifiarr.Service) []sender {
		return to(is("result", "success"), func(m Message) request {
			c := s.Config
			told := object{"color": c.Color, "text": object{"title": m.Title, "description": m.whole()}}
			if channel, err := strconv.Atoi(c.Channel); err == nil {
				told["ids"] = object{"channel": channel}
			}
			if c.Thumbnail != "" || c.Image != "" {
				told["images"] = object{"thumbnail": c.Thumbnail, "image": c.Image}
			}
			return request{
				url:    notifiarr.APIBaseURL + "/" + url.PathEscape(c.APIKey),
				header: map[string]string{"Accept": "application/json"},
				body:   object{"notification": object{"name": c.Name}, "discord": filled(told)},
			}
		})
	})},
	"ntfy": {4_096, on(func(s *ntfy.Service) []sender {
		c := s.Config
		header := map[string]string{
			"Priority": c.Priority.String(), "Tags": strings.Join(c.Tags, ","), "Delay": c.Delay,
			"Actions": strings.Join(c.Actions, ";"), "Click": c.Click, "Attach": c.Attach, "X-Icon": c.Icon,
			"Filename": c.Filename, "Email": c.Email,
		}
		if !c.Cache {
			header["Cache"] = "no"
		}
		if !c.Firebase {
			header["Firebase"] = "no"
		}
		if c.Username != "" || c.Password != "" {
			header["Authorization"] = "Basic " + base64.StdEncoding.EncodeToString([]byte(c.Username+":"+c.Password))
		}
		return to(has("id"), func(m Message) request {
			header := maps.Clone(header)
			header["Title"] = mime.QEncoding.Encode("utf-8", m.Title)
			return request{url: c.GetAPIURL(), header: header, body: m.whole(), insecure: c.DisableTLSVerification}
		})
	})},
	"opsgenie": {15_000, on(func(s *opsgenie.Service) []sender {
		return to(has("requestId"), func(m Message) request {
			c := s.Config
			body := filled(object{
				"message": cutBytes(m.Title, opsgenie.MaxMessageLength), "description": m.whole() + "\n" +
					c.Description, "alias": c.Alias, "actions": c.Actions, "tags": c.Tags, "entity": c.Entity,
				"source": c.Source, "priority": c.Priority, "user": c.User, "note": c.Note,
			})
			for key, value := range map[string][]opsgenie.Entity{"responders": c.Responders, "visibleTo": c.VisibleTo} {
				if len(value) > 0 {
					body[key] = value
				}
			}
			if len(c.Details) > 0 {
				body["details"] = c.Details
			}
			return request{
				url:    fmt.Sprintf("https://%s:%d/v2/alerts", c.Host, c.Port),
				header: map[string]string{"Authorization": "GenieKey " + c.APIKey}, body: body,
			}
		})
	})},
	"pagerduty": {8_000, on(pager)},
	"pushbullet": {4_000, on(func(s *pushbullet.Service) []sender {
		return each(s.Config.Targets, func(recipient string) sender {
			return post(has("iden"), func(m Message) request {
				push := pushbullet.NewNotePush(m.whole(), m.Title)
				push.SetTarget(recipient)
				return request{
					url:    "https://api.pushbullet.com/v2/pushes",
					header: map[string]string{"Access-Token": s.Config.Token}, body: push,
				}
			})
		})
	})},
	"pushover": {1_024, on(func(s *pushover.Service) []sender {
		return to(is("status", 1.0), func(m Message) request {
			c := s.Config
			return request{url: "https://api.pushover.net/1/messages.json", body: url.Values{
				"device": {strings.Join(c.Devices, ",")}, "user": {c.User}, "token": {c.Token},
				"title": {cutBytes(m.Title, 250)}, "message": {m.whole()}, "priority": {strconv.Itoa(int(c.Priority))},
			}}
		})
	})},
	"rocketchat": {5_000, on(func(s *rocketchat.Service) []sender {
		return to(is("success", true), func(m Message) request {
			c := s.Config
			host := c.Host
			if c.Port != "" {
				host = net.JoinHostPort(c.Host, c.Port)
			}
			return request{
				url:  "https://" + host + "/hooks/" + c.TokenA + "/" + c.TokenB,
				body: filled(object{"text": m.oneText(), "username": c.UserName, "channel": c.Channel}),
			}
		})
	})},
	"signal": {2_000, on(func(s *signal.Service) []sender {
		return each(s.Config.Recipients, func(recipient string) sender {
			return post(has("timestamp"), func(m Message) request {
				c := s.Config
				header := map[string]string{}
				if c.Token != "" {
					header["Authorization"] = "Bearer " + c.Token
				} else if c.User != "" {
					header["Authorization"] = "Basic " +
						base64.StdEncoding.EncodeToString([]byte(c.User+":"+c.Password))
				}
				return request{
					url:    secureUnless(c.DisableTLS) + net.JoinHostPort(c.Host, strconv.Itoa(c.Port)) + "/v2/send",
					header: header, body: object{
						"message": m.oneText(), "number": c.Source,
						"recipients": []string{recipient},
					},
				}
			})
		})
	})},
	"slack": {12_000, on(func(s *slack.Service) []sender {
		payload := func(m Message) any {
			config := *s.Config
			config.Title = m.Title
			return slack.CreateJSONPayload(&config, m.whole())
		}
		if !s.Config.Token.IsAPIToken() {
			return to(says("ok"), func(m Message) request {
				return request{
					url:  s.Config.Token.WebhookURL(),
					body: payload(m),
				}
			})
		}
		return to(is("ok", true), func(m Message) request {
			return request{
				url:    "https://slack.com/api/chat.postMessage",
				header: map[string]string{"Authorization": s.Config.Token.Authorization()}, body: payload(m),
			}
		})
	})},
	"smtp": {200_000, on(mailTo)},
	// A connector answers 1. It reports the refusal of Teams behind it as another text, with status 200.
	"teams": {12_000, on(func(s *teams.Service) []sender {
		c := s.Config
		return to(says("1"), func(m Message) request {
			sections := []object{}
			for line := range strings.SplitSeq(m.whole(), "\n") {
				sections = append(sections, object{"text": line})
			}
			return request{
				url: teams.BuildWebhookURL(c.Host, c.Group, c.Tenant, c.AltID, c.GroupOwner, c.ExtraID),
				body: filled(object{
					"@type": "MessageCard", "@context": "http://schema.org/extensions", "title": m.Title,
					"summary": cmp.Or(m.Title, "Claude Ops"), "themeColor": c.Color, "markdown": true,
					"sections": sections,
				}),
			}
		})
	})},
	// Without a parse mode, whatever the URL says: the text is plain, and Telegram refuses what is no valid markup.
	"telegram": {4_096, on(func(s *telegram.Service) []sender {
		c := s.Config
		return each(c.Chats, func(chat string) sender {
			id, thread, _ := strings.Cut(chat, ":")
			return post(is("ok", true), func(m Message) request {
				body := object{
					"chat_id": id, "text": m.oneText(), "disable_notification": !c.Notification,
					"disable_web_page_preview": !c.Preview,
				}
				if number, err := strconv.Atoi(thread); err == nil {
					body["message_thread_id"] = number
				}
				return request{url: "https://api.telegram.org/bot" + c.Token + "/sendMessage", body: body}
			})
		})
	})},
	"wecom": {2_048, on(func(s *wecom.Service) []sender {
		return to(is("errcode", 0.0), func(m Message) request {
			text := object{"content": m.oneText()}
			if c := s.Config; c.MentionedList != "" {
				text["mentioned_list"] = strings.Split(c.MentionedList, ",")
			}
			if c := s.Config; c.MentionedMobileList != "" {
				text["mentioned_mobile_list"] = strings.Split(c.MentionedMobileList, ",")
			}
			return request{
				url:  "https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key=" + url.QueryEscape(s.Config.Key),
				body: object{"msgtype": "text", "text": text},
			}
		})
	})},
	"zulip": {10_000, func(service types.Service, rawURL *url.URL) []sender {
		s, ok := service.(*zulip.Service)
		if !ok {
			return nil
		}
		c := s.Config
		return to(is("result", "success"), func(m Message) request {
			return request{
				url: (&url.URL{Scheme: "https", Host: rawURL.Host, Path: "/api/v1/messages"}).String(),
				header: map[string]string{
					"Authorization": "Basic " + base64.StdEncoding.EncodeToString([]byte(c.BotMail+":"+c.BotKey)),
				},
				body: url.Values{
					"type": {"stream"}, "to": {c.Stream}, "topic": {cutBytes(cmp.Or(c.Topic, "Claude Ops"), 60)},
					"content": {m.oneText()},
				},
			}
		})
	}},
}

func secureUnless(plain bool) string {
	if plain {
		return "http://"
	}
	return "https://"
}
