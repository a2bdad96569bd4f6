package operate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/plant/config"
	"github.com/claudeops/claudeops/internal/plant/program"
	"github.com/claudeops/claudeops/internal/plant/supervisor"
	"github.com/claudeops/claudeops/internal/records/encryption"
)

const (
	// defaultAddress uses the next port after the ports of Temporal (7233) and of its Web UI (8233).
	defaultAddress = "127.0.0.1:8234"
	// tokenName is the name of the token file in the state directory.
	tokenName = "codec-token"

	// Time limits of the server. They allow requests of a few megabytes on a slow connection.
	headerTimeout = 10 * time.Second
	readTimeout   = 30 * time.Second
	writeTimeout  = time.Minute
	stopTimeout   = 5 * time.Second
)

// codecOptions are the flags of `codec`.
type codecOptions struct {
	listen, origin, tokenFile string
	certificate, key          string
	plainHTTP                 bool
}

func (a *app) codecCommand() *cobra.Command {
	var o codecOptions
	cmd := &cobra.Command{
		Use:   "codec",
		Short: "Decrypt what Temporal has stored, for its Web UI and for `temporal`",
		Long: "Codec runs a remote codec for Temporal. Pages of the Web UI and the program temporal send encrypted " +
			"payloads to the\ncodec, and get them back as plain text. The codec needs " +
			"CLAUDEOPS_ENCRYPTION_KEYS_FILE. Every caller needs the token in\n--token-file. If this file is missing, " +
			"the codec creates it.\n\n  temporal workflow show -w ID --codec-endpoint http://127.0.0.1:8234 " +
			"--codec-auth \"Bearer $(cat FILE)\"\n\ndocs/encryption.md describes how to set up the Web UI.",
		Args: console.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.serveCodec(cmd.Context(), o) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.listen, "listen", defaultAddress, "address to listen on")
	flags.StringVar(&o.origin, "origin", "",
		"origin of the Web UI whose pages may call, such as https://ui.example.org (default none)")
	flags.StringVar(&o.tokenFile, "token-file", "", "file with the token (default STATE_DIR/"+tokenName+")")
	flags.StringVar(&o.certificate, "tls-cert", "", "file with the certificate for https")
	flags.StringVar(&o.key, "tls-key", "", "file with the key of the certificate")
	flags.BoolVar(&o.plainHTTP, "plain-http", false,
		"serve other hosts without TLS, because a proxy before it ends TLS")
	return cmd
}

// check returns the first error in the flags.
func (o codecOptions) check() error {
	host, _, err := net.SplitHostPort(o.listen)
	if err != nil {
		return fmt.Errorf("--listen %q must be host:port, such as %s", o.listen, defaultAddress)
	}
	if (o.certificate == "") != (o.key == "") {
		return errors.New("--tls-cert and --tls-key go together")
	}
	if local := host == "localhost" || net.ParseIP(host).IsLoopback(); !local && o.certificate == "" && !o.plainHTTP {
		return fmt.Errorf("--listen %s is open to other hosts, and the token would pass the network in clear: "+
			"give --tls-cert and --tls-key, or --plain-http if a proxy before it ends TLS", o.listen)
	}
	if o.origin == "" {
		return nil
	}
	origin, err := url.Parse(o.origin)
	if err == nil && origin.Host != "" && (o.origin == "http://"+origin.Host || o.origin == "https://"+origin.Host) {
		return nil
	}
	return fmt.Errorf("--origin %q must be the scheme and host of the Web UI, without a path, such as "+
		"https://temporal.example.org",
		o.origin)
}

// serveCodec serves requests until ctx ends.
func (a *app) serveCodec(ctx context.Context, o codecOptions) error {
	if err := o.check(); err != nil {
		return program.Misuse(err)
	}
	cfg, err := config.Load(a.Environ)
	if err != nil {
		return err
	}
	if cfg.Encryption.Keys == nil {
		return program.Misuse(errors.New("there is nothing to decrypt with: set CLAUDEOPS_ENCRYPTION_KEYS_FILE"))
	}
	if o.tokenFile == "" {
		o.tokenFile = filepath.Join(cfg.State.Dir, tokenName)
	}
	token, err := supervisor.OpenToken(o.tokenFile)
	if err != nil {
		return err
	}
	secure := o.certificate != "" || o.plainHTTP
	endpoint := encryption.Endpoint{Keys: cfg.Encryption.Keys, Token: token, Origin: o.origin, Secure: secure}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", o.listen)
	if err != nil {
		return fmt.Errorf("serve the codec: %w; choose another address with --listen", err)
	}
	server := &http.Server{
		Handler: endpoint.Handler(), ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout,
		WriteTimeout: writeTimeout,
	}
	ended := make(chan error, 1)
	go func() {
		if o.certificate != "" {
			ended <- server.ServeTLS(listener, o.certificate, o.key)
			return
		}
		ended <- server.Serve(listener)
	}()
	if err := a.tellCodec(serving{address(listener, secure), o.tokenFile, cfg.Encryption.Keys.IDs()},
		endpoint); err != nil {
		return errors.Join(err, server.Close())
	}
	select {
	case err := <-ended:
		return fmt.Errorf("serve the codec: %w", err)
	case <-ctx.Done():
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	return server.Shutdown(stopping)
}

// address returns the URL of a listener.
func address(listener net.Listener, secure bool) string {
	if secure {
		return "https://" + listener.Addr().String()
	}
	return "http://" + listener.Addr().String()
}

// serving is the output of `codec`. The command prints it when the endpoint is ready.
type serving struct {
	Endpoint  string   `json:"endpoint"`
	TokenFile string   `json:"token_file"`
	Keys      []string `json:"keys"`
}

// tellCodec prints the address. It prints the link with the token only on a terminal, because other output can be
// stored.
func (a *app) tellCodec(s serving, endpoint encryption.Endpoint) error {
	link := "in a terminal, `claudeops codec` prints a link for the browser of the Web UI"
	if a.OnTerminal() {
		link = "link for the browser of the Web UI: " + endpoint.LinkTo(s.Endpoint)
	}
	return a.Print(s, func(w io.Writer) {
		_, _ = fmt.Fprintf(w, "The codec serves %s with %d keys; the token is in %s.\n%s\n", s.Endpoint, len(s.Keys),
			s.TokenFile, link)
	})
}
