package notify

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"strings"

	shoutrrr "github.com/nicholas-fedor/shoutrrr/pkg/services/email/smtp"
	"github.com/wneessen/go-mail"
)

// mailTo returns a sender for each recipient of an smtp URL. Each has an e-mail of its own: a server that refuses one
// recipient takes the e-mails for the others.
func mailTo(service *shoutrrr.Service) []sender {
	config := service.Config
	config.FixEmailTags()
	var senders []sender
	for _, recipient := range config.ToAddresses {
		senders = append(senders, sender{host: config.Host, send: func(ctx context.Context, m Message) error {
			return sendMail(ctx, config, recipient, m)
		}})
	}
	return senders
}

func sendMail(ctx context.Context, config *shoutrrr.Config, recipient string, m Message) error {
	message := mail.NewMsg()
	if err := errors.Join(message.FromFormat(config.FromName, config.FromAddress), message.To(recipient)); err != nil {
		return failure{own: "from or to is no e-mail address"}
	}
	message.Subject(m.Title)
	message.SetBodyString(mail.TypeTextPlain, m.whole())
	message.SetDate()
	message.SetMessageID()
	client, err := mail.NewClient(config.Host, mailOptions(config)...)
	if err != nil {
		return err
	}
	connection, err := client.DialToSMTPClientWithContext(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = client.CloseWithSMTPClient(connection) }() // the server has the e-mail, however it says goodbye
	err = client.SendWithSMTPClient(connection, message)
	if problem, ok := errors.AsType[*mail.SendError](err); ok {
		return failure{foreign: err.Error(), refused: problem.ErrorCode() >= 500}
	}
	return err
}

func mailOptions(config *shoutrrr.Config) []mail.Option {
	host := config.ClientHost
	if name, err := os.Hostname(); host == "auto" && err == nil {
		host = name
	}
	options := []mail.Option{
		mail.WithPort(int(config.Port)), mail.WithHELO(host), mail.WithTimeout(sendLimit),
		mail.WithTLSConfig(&tls.Config{
			ServerName: config.Host, MinVersion: tls.VersionTLS12,
			InsecureSkipVerify: config.SkipTLSVerify, //nolint:gosec // for URLs that ask for it
		}),
	}
	switch encryption := config.Encryption.String(); {
	case encryption == "ImplicitTLS", encryption == "Auto" && config.Port == shoutrrr.ImplicitTLSPort:
		options = append(options, mail.WithSSL())
	case !config.UseStartTLS:
		options = append(options, mail.WithTLSPolicy(mail.NoTLS))
	case config.RequireStartTLS:
		options = append(options, mail.WithTLSPolicy(mail.TLSMandatory))
	default:
		options = append(options, mail.WithTLSPolicy(mail.TLSOpportunistic))
	}
	kind := map[string]mail.SMTPAuthType{
		"Plain": mail.SMTPAuthPlain, "CRAMMD5": mail.SMTPAuthCramMD5, "OAuth2": mail.SMTPAuthXOAUTH2,
	}[config.Auth.String()]
	if ip := net.ParseIP(strings.Trim(config.Host, "[]")); kind == mail.SMTPAuthPlain && ip.IsLoopback() {
		kind = mail.SMTPAuthPlainNoEnc // nobody else reads what stays on this host
	}
	if kind != "" {
		options = append(options, mail.WithSMTPAuth(kind), mail.WithUsername(config.Username),
			mail.WithPassword(config.Password))
	}
	return options
}
