package operations

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/claudeops/claudeops/internal/plant/config"
	"github.com/claudeops/claudeops/internal/plant/supervisor"
	"github.com/claudeops/claudeops/internal/plant/telemetry"
	"github.com/claudeops/claudeops/internal/records/store"
	"github.com/claudeops/claudeops/internal/redact"
)

// Patience limits how long a query waits for a worker's answer, unless Options say otherwise.
const Patience = 10 * time.Second

// Options describe where operations take place.
type Options struct {
	// Environ holds the settings, as "NAME=value".
	Environ []string
	// Logger receives the warnings of Temporal's client.
	Logger *slog.Logger
	// Clock returns the current time.
	Clock func() time.Time
	// Patience limits how long a query waits for a worker's answer.
	Patience time.Duration
	// Masked is called when a caller's own input contained a secret, which was masked before it was sent.
	Masked func()
	// Dial connects to Temporal; nil means supervisor.Connect.
	Dial func(context.Context, client.Options) (client.Client, error)
	// Telemetry returns what traces the calls to Temporal; nil traces nothing.
	Telemetry func(context.Context) (*telemetry.Telemetry, error)
}

// Operations are the operations of a front end, by their subject.
type Operations struct {
	Overview  Overview
	Chains    Chains
	Plans     Plans
	Sessions  Sessions
	Gates     Gates
	Incidents Incidents
	Memories  Memories
	Services  Services
	Schedules Schedules
	Costs     Costs
	Policy    Policy
	Feed      Feed
	Alerts    Alerts
	// Conversations has the conversations of people with the supervisor.
	Conversations Conversations

	backend *backend
}

// New returns operations. They connect to Temporal and open the records when they first need them.
func New(options Options) *Operations {
	b := &backend{
		Options: options, mask: redact.New(options.Environ), connecting: make(contextLock, 1),
		opening: make(contextLock, 1),
	}
	return &Operations{
		Overview: Overview{b}, Chains: Chains{b}, Plans: Plans{b}, Sessions: Sessions{b}, Gates: Gates{b},
		Incidents: Incidents{b}, Memories: Memories{b}, Services: Services{b}, Schedules: Schedules{b},
		Costs: Costs{b}, Policy: Policy{b}, Feed: Feed{b}, Alerts: Alerts{b}, Conversations: Conversations{b},
		backend: b,
	}
}

// Connect returns the connection to Temporal, and the settings. Close closes it.
func (o *Operations) Connect(ctx context.Context) (Connection, config.Config, error) {
	return o.backend.connect(ctx)
}

// OpenRecords returns the records that this host uses, and the settings. It neither creates nor migrates
// them. Close closes the records.
func (o *Operations) OpenRecords(ctx context.Context) (*store.Store, config.Config, error) {
	return o.backend.openRecords(ctx)
}

// MaskInput returns a text of the caller with its secrets masked. Use it for text that is not sent as a payload.
func (o *Operations) MaskInput(text string) string { return o.backend.maskInput(text) }

// Masked returns text from the records with its secrets masked.
func (o *Operations) Masked(text string) string { return o.backend.mask.Text(text) }

// Close closes the connection and the records. Operations that begin later open them again.
func (o *Operations) Close() error { return o.backend.close() }

// Connection is a connection to Temporal.
type Connection struct {
	client.Client

	Namespace string
	// Converter decodes payloads that the client returns undecoded, in the form in which Temporal stores them.
	Converter converter.DataConverter
	// Local reports that the server runs on this host, where queries cost nothing.
	Local bool
	// Decoding holds the converters for a replay. They mask no secrets, because a replay must see what the workers see.
	Decoding supervisor.Decoding
}

// backend holds what all operations share.
type backend struct {
	Options

	mask *redact.Redactor

	// mutex guards settings, connecting the connection, and opening the records. Whoever waits for a Temporal that does
	// not answer keeps nobody from the records. The fields are nil until they are first needed.
	mutex      sync.Mutex
	settings   *config.Config
	connecting contextLock
	connection *Connection
	opening    contextLock
	records    *store.Store
	// namespace is the connection's; zero until it is first needed. The mutex guards it.
	namespace store.Namespace
}

// contextLock is a lock for which a caller waits no longer than its context lasts.
type contextLock chan struct{}

func (l contextLock) lock(ctx context.Context) error {
	select {
	case l <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l contextLock) unlock() { <-l }

// config returns the settings, which are read once.
func (b *backend) config() (config.Config, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if b.settings == nil {
		cfg, err := config.Load(b.Environ)
		if err != nil {
			return cfg, err
		}
		b.settings = &cfg
	}
	return *b.settings, nil
}

// connect returns the connection to Temporal.
func (b *backend) connect(ctx context.Context) (Connection, config.Config, error) {
	cfg, err := b.config()
	if err != nil {
		return Connection{}, cfg, err
	}
	if err := b.connecting.lock(ctx); err != nil {
		return Connection{}, cfg, fmt.Errorf("connect to Temporal: %w", err)
	}
	defer b.connecting.unlock()
	if b.connection == nil {
		if b.connection, err = b.dial(ctx, cfg); err != nil {
			return Connection{}, cfg, err
		}
	}
	return *b.connection, cfg, nil
}

// dial connects to Temporal.
func (b *backend) dial(ctx context.Context, cfg config.Config) (*Connection, error) {
	options, err := supervisor.ConnectionOptions(b.Environ, cfg, b.Logger)
	if err != nil {
		return nil, Invalid(err)
	}
	if b.Telemetry != nil {
		traces, err := b.Telemetry(ctx)
		if err != nil {
			return nil, err
		}
		traces.Instrument(&options)
	}
	decoding := supervisor.Decoding{Data: options.DataConverter, Failure: options.FailureConverter}
	options = supervisor.WithConverters(options, b.mask, cfg.Encryption.Keys, &masking{b.mask, b.Masked})
	dial := b.Dial
	if dial == nil {
		dial = supervisor.Connect
	}
	connected, err := dial(ctx, options)
	if err != nil {
		return nil, err
	}
	return &Connection{
		Client: connected, Namespace: options.Namespace, Converter: options.DataConverter, Decoding: decoding,
		Local: supervisor.IsOnThisHost(options.HostPort),
	}, nil
}

// openRecords returns the records.
func (b *backend) openRecords(ctx context.Context) (*store.Store, config.Config, error) {
	cfg, err := b.config()
	if err != nil {
		return nil, cfg, err
	}
	if err := b.opening.lock(ctx); err != nil {
		return nil, cfg, fmt.Errorf("open the records: %w", err)
	}
	defer b.opening.unlock()
	if b.records != nil {
		return b.records, cfg, nil
	}
	opened, err := supervisor.OpenExisting(ctx, cfg.State)
	if err == nil {
		b.records = opened
	}
	return b.records, cfg, err
}

// ownRecords returns the records if they belong to the connection's namespace. If that cannot be told, it returns an
// error: IDs of chains and names of conversations would be those of another namespace.
func (b *backend) ownRecords(ctx context.Context) (*store.Store, error) {
	records, _, err := b.openRecords(ctx)
	if err != nil {
		return nil, err
	}
	own, err := b.ownNamespace(ctx)
	if err != nil {
		return nil, err
	}
	if err := records.CheckNamespace(ctx, own); err != nil {
		return nil, err
	}
	return records, nil
}

// ownNamespace returns the connection's namespace. Its ID never changes, so it is looked up once.
func (b *backend) ownNamespace(ctx context.Context) (store.Namespace, error) {
	connection, _, err := b.connect(ctx)
	if err != nil {
		return store.Namespace{}, err
	}
	b.mutex.Lock()
	own := b.namespace
	b.mutex.Unlock()
	if own.ID != "" {
		return own, nil
	}
	own, err = supervisor.FindNamespace(ctx, connection, connection.Namespace)
	if err != nil {
		return own, fmt.Errorf("it is unknown whether the records are those of this namespace: %w; "+
			"this needs the permission to describe it", err)
	}
	b.mutex.Lock()
	b.namespace = own
	b.mutex.Unlock()
	return own, nil
}

// maskInput returns a text of the caller with its secrets masked.
func (b *backend) maskInput(text string) string {
	clean := b.mask.Text(text)
	if clean != text {
		b.Masked()
	}
	return clean
}

func (b *backend) close() (err error) {
	_ = b.connecting.lock(context.Background()) // it has no end
	defer b.connecting.unlock()
	_ = b.opening.lock(context.Background())
	defer b.opening.unlock()
	if b.connection != nil {
		b.connection.Close()
		b.connection = nil
	}
	if b.records != nil {
		err = b.records.Close()
		b.records = nil
	}
	return err
}
