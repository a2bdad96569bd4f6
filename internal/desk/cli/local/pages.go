package local

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/desk/web"
	"github.com/claudeops/claudeops/internal/desk/web/access"
	"github.com/claudeops/claudeops/internal/desk/web/api"
	"github.com/claudeops/claudeops/internal/desk/web/completions"
	"github.com/claudeops/claudeops/internal/desk/web/hooks"
	"github.com/claudeops/claudeops/internal/desk/web/pages"
	"github.com/claudeops/claudeops/internal/desk/web/stream"
	"github.com/claudeops/claudeops/internal/plant/config"
	"github.com/claudeops/claudeops/internal/plant/program"
)

// pageServer serves the pages and the API at a port.
type pageServer struct {
	pageOptions

	listener net.Listener
	access   *access.Access
	settings web.Options // without parts
	chat     completions.Options

	// does, hub, hooks and server are nil before prepare, and stop before serve.
	does   *operations.Operations
	hub    *stream.Hub
	hooks  *hooks.Hooks
	server *web.Server
	stop   context.CancelFunc
	ended  chan error
	// dispatching is closed when no more chains are started for alerts.
	dispatching chan struct{}
}

// pageOptions describe a pageServer.
type pageOptions struct {
	// listen is the address, and hint says how to choose another one.
	listen, hint string
	owner        access.Owner
	// temporalUI returns the address of a chain in Temporal's Web UI; nil if there is none.
	temporalUI func(chainID, runID string) string
	logger     *slog.Logger
}

// openLocalPages opens the pages of a `claudeops up`, whose token is secret.
func openLocalPages(
	ctx context.Context, cfg config.Config, o Pages, secret string, logger *slog.Logger,
) (*pageServer, error) {
	return openPages(ctx, cfg, pageOptions{
		listen: net.JoinHostPort("127.0.0.1", strconv.Itoa(o.Port)), hint: "--web-port",
		owner: access.Owner{Name: ownName(), Secret: secret}, temporalUI: o.temporalUI, logger: logger,
	})
}

// ownName returns the name of the user who runs this process.
func ownName() string {
	if current, err := user.Current(); err == nil {
		return current.Username
	}
	return "user " + strconv.Itoa(os.Getuid())
}

// openPages listens at the address. If a browser connects before the call of serve, the browser waits.
func openPages(ctx context.Context, cfg config.Config, o pageOptions) (_ *pageServer, err error) {
	p := &pageServer{pageOptions: o, ended: make(chan error, 1)}
	if p.listener, err = new(net.ListenConfig).Listen(ctx, "tcp", o.listen); err != nil {
		return nil, listenError(o, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.listener.Close())
		}
	}()
	proxy, err := proxyOf(cfg.Web)
	if err != nil {
		return nil, err
	}
	p.access, err = access.New(access.Options{
		Tokens: access.OpenTokens(cfg.Web.TokensFile), Owner: o.owner, Proxy: proxy,
		KeyFile: filepath.Join(cfg.State.Dir, "web", "session-key"), Port: p.port(),
		Secure: cfg.Web.Certificate != "" || strings.HasPrefix(cfg.Web.URL, "https://"), Logger: o.logger,
	})
	if err != nil {
		return nil, err
	}
	p.chat.Progress = cfg.Web.ChatProgress
	p.settings = web.Options{
		Access: p.access, Hosts: hostsOf(cfg.Web, o.listen), Origins: originsOf(cfg.Web), Admit: admitOthers,
		Logger: o.logger,
	}
	if cfg.Web.Certificate != "" {
		certificate := &certificateFile{cert: cfg.Web.Certificate, key: cfg.Web.Key}
		_, err = certificate.get()
		p.settings.Certificate = certificate.get
	}
	return p, err
}

// prepare puts the parts of the server together. They call does, which close closes.
func (p *pageServer) prepare(does *operations.Operations) error {
	p.does = does
	p.hub = stream.NewHub(func() stream.Source { return does.Feed.Watch() }, p.logger)
	shown, err := pages.New(does, pages.Options{
		Clock: time.Now, TemporalUI: p.temporalUI, Events: eventsPath, Position: p.hub.Position,
	})
	if err != nil {
		return err
	}
	p.hooks = hooks.New(does.Alerts, p.logger)
	options := p.settings
	options.Parts = []web.Part{
		shown, api.New(does, p.hub, program.Version()),
		completions.New(does.Conversations, p.chat), p.hooks,
	}
	p.server, err = web.New(options)
	return err
}

// eventsPath is the path of the API's event stream.
const eventsPath = "/api/v1/events"

func listenError(o pageOptions, err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("the address %s for the pages is in use by another program; choose another with %s: %w",
			o.listen, o.hint, err)
	}
	return fmt.Errorf("the address %s for the pages cannot be opened; choose another with %s: %w", o.listen, o.hint,
		err)
}

// admitOthers refuses connections of agents. A connection from another host is none: agents run where their worker
// does, and the kernel says only of this host's connections who has opened them.
func admitOthers(conn net.Conn) error {
	remote, ok := conn.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return fmt.Errorf("%v is not the address of a TCP connection", conn.RemoteAddr())
	}
	if !remote.IP.IsLoopback() {
		own, err := net.InterfaceAddrs()
		if err != nil {
			return fmt.Errorf("list the addresses of this host: %w", err)
		}
		if !slices.ContainsFunc(own, func(address net.Addr) bool {
			network, ok := address.(*net.IPNet)
			return ok && network.IP.Equal(remote.IP)
		}) {
			return nil
		}
	}
	return admitPeople(conn)
}

// serve serves requests until close. Call prepare before.
func (p *pageServer) serve(ctx context.Context) {
	ctx, p.stop = context.WithCancel(ctx)
	go p.hub.Run(ctx)
	p.dispatching = make(chan struct{})
	go func() {
		defer close(p.dispatching)
		p.does.Alerts.Run(ctx, p.hooks.Woken())
	}()
	go func() {
		err := p.server.Serve(ctx, p.listener)
		if err != nil {
			p.logger.Error("the pages are not served any more", slog.Any("error", err))
		}
		p.ended <- err
	}()
}

// close ends the server, and the connections of its operations.
func (p *pageServer) close() error {
	var errs []error
	if p.stop == nil {
		errs = append(errs, p.listener.Close())
	} else {
		p.stop()
		errs = append(errs, <-p.ended)
		<-p.dispatching
	}
	if p.does != nil {
		errs = append(errs, p.does.Close())
	}
	return errors.Join(errs...)
}

func (p *pageServer) port() int {
	address, _ := p.listener.Addr().(*net.TCPAddr) // openPages opens only TCP listeners
	return address.Port
}

// url returns the root URL of the server on this host.
func (p *pageServer) url() string {
	scheme := "http"
	if p.settings.Certificate != nil {
		scheme = "https"
	}
	return scheme + "://" + p.listener.Addr().String()
}
