package dataplane

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/hapticsdk/haptic/internal/dpapi"
	"github.com/hapticsdk/haptic/internal/haproxycfg"
)

// ClientOptions change how a [Client] works. The zero value, like nil, is
// recommended.
type ClientOptions struct {
	// Layout says where the files lie on the machine of the HAProxy. It must be
	// the one that the configuration was rendered with.
	Layout Layout

	// Timeout bounds one Sync or DryRun, retries and the reload included. Zero
	// means two minutes.
	Timeout time.Duration

	// RequestTimeout bounds one request. Zero means 60 seconds, which is more
	// than the Dataplane API allows itself.
	RequestTimeout time.Duration

	// ReloadTimeout is how long the new worker process may take to show after
	// a reload. Zero means 10 seconds.
	ReloadTimeout time.Duration

	// FileInterval is how often a Sync that has nothing to do looks at the stored
	// files as well, for somebody may have changed them, which no version tells.
	// It then reads them all. Zero means one minute, less than zero never; DryRun
	// always looks.
	FileInterval time.Duration

	// Attempts is how often a Sync tries before it gives up on conflicts,
	// network errors and answers that say "later". Zero means 3.
	Attempts int

	// Strategy says how the configuration is written. Zero means [Raw]: the
	// endpoint is ours alone.
	Strategy Strategy

	// KeepFiles leaves stored files alone that are not part of the desired
	// configuration. Otherwise a Sync deletes them, last of all, unless the
	// configuration or a crt-list names them or the folder they lie in.
	KeepFiles bool

	// HTTPClient is used instead of one of its own; TLS settings and unix
	// sockets of the endpoint then are its business.
	HTTPClient *http.Client

	// Logger hears what goes on, at level debug, and what is odd, at level
	// warn. Nil means nobody does.
	Logger *slog.Logger
}

// Client brings one HAProxy to a desired configuration through the Dataplane
// API, version 3, that runs beside it. A Client remembers what it deployed, so
// keep it: a [Client.Sync] that has nothing to do then costs one request and
// parses nothing.
//
// A Client is safe for concurrent use; its calls run one after the other.
type Client struct {
	endpoint Endpoint
	opts     ClientOptions
	api      *dpapi.Client
	log      *slog.Logger
	turn     chan struct{} // holds one token; who has it owns the fields below

	forgotten atomic.Bool // what is known below no longer counts; anybody's

	known       *baseline             // what is deployed, nil if not known
	unsettled   bool                  // stored files may differ from what the process has loaded
	looked      time.Time             // when the stored files were last looked at
	late        lateReload            // a reload that has not shown in time
	reloadFails bool                  // the last reload failed
	marked      markState             // whether the endpoint says so, see mark
	certs       map[string][]byte     // content of certificates as last stored by this client: the API tells none
	norm        haproxycfg.Normaliser // of desired texts
	stored      haproxycfg.Normaliser // of stored texts

	// With the strategy Transaction.
	owned       owned // what we have deployed, nil if not known
	ownedStored bool  // it stands in ownedFile
	merged      haproxycfg.Normaliser
}

// NewClient makes a Client. It does not connect: a wrong address shows in the
// first call. Nil options are the zero options.
func NewClient(endpoint Endpoint, options *ClientOptions) (*Client, error) {
	var o ClientOptions
	if options != nil {
		o = *options
	}
	if o.Timeout <= 0 {
		o.Timeout = 2 * time.Minute
	}
	if o.ReloadTimeout <= 0 {
		o.ReloadTimeout = 10 * time.Second
	}
	if o.Attempts <= 0 {
		o.Attempts = 3
	}
	if o.FileInterval == 0 {
		o.FileInterval = time.Minute
	}
	fail := func(err error) (*Client, error) {
		return nil, &Error{Endpoint: endpoint.name(), Stage: "endpoint", Err: err}
	}
	tlsConfig, err := endpoint.tlsConfig()
	if err != nil {
		return fail(err)
	}
	api, err := dpapi.New(endpoint.URL, dpapi.Options{
		Username: endpoint.Username, Password: endpoint.Password,
		TLS: tlsConfig, HTTPClient: o.HTTPClient, Timeout: o.RequestTimeout,
	})
	if err != nil {
		return fail(err)
	}
	c := &Client{endpoint: endpoint, opts: o, api: api, log: o.Logger, turn: make(chan struct{}, 1), certs: map[string][]byte{}}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	c.log = c.log.With("endpoint", endpoint.name())
	c.turn <- struct{}{}
	return c, nil
}

// Name returns the name of the endpoint, as errors show it.
func (c *Client) Name() string { return c.endpoint.name() }

// String tells the endpoint, without its password.
func (c *Client) String() string { return "client of " + c.endpoint.String() }

// Format is String for every verb, so that none shows the password.
func (c *Client) Format(s fmt.State, _ rune) { _, _ = s.Write([]byte(c.String())) }

// LogValue is String.
func (c *Client) LogValue() slog.Value { return slog.StringValue(c.String()) }

// Layout returns the layout that configurations for this endpoint must be
// rendered with.
func (c *Client) Layout() Layout { return c.opts.Layout }

// Close gives up idle connections. The Client can still be used.
func (c *Client) Close() { c.api.CloseIdle() }

// DryRun tells what [Client.Sync] would do and changes nothing. It always
// reads what is stored, files included, and so finds what somebody else
// changed there. The Impact of each operation is what it costs by way of the
// Dataplane API, which is more than HAProxy itself would need for some.
//
// It fails with what Sync fails with before it sends anything.
func (c *Client) DryRun(ctx context.Context, desired *Config) (*Plan, error) {
	ctx, cancel, err := c.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer cancel()
	info, err := c.api.Info(ctx)
	if err != nil {
		return nil, c.probeError(err)
	}
	c.known = nil
	j, err := c.prepare(ctx, info, desired)
	if err != nil {
		return nil, err
	}
	if j.empty() && (c.opts.Strategy != Transaction || c.ownsJust(j.ours)) { // so the next Sync need not look again
		err = c.remember(j, j.before)
	}
	return j.plan, err
}

// Sync makes the desired configuration the one that HAProxy runs. It stores
// files first, then changes the running process or, where that is not
// possible, has it reload once and follows the reload to its end; files that
// are no longer needed go last. The Plan of the Result is what differed when
// the Sync began.
//
// While what is stored is ahead of the process, a general file
// haptic-unfinished.txt says so. Another Client that finds it, after this one
// was killed, has HAProxy reload. Beside a large configuration the file stays
// and then says that nothing is unfinished.
//
// Every error is an [*Error]. After [ErrInvalid] and [ErrReload] HAProxy runs
// on with the configuration that it had, which has also been put back where it
// is stored; what the process was told before, such as an address of a server,
// goes with the reload of a later Sync. After any other error the outcome is
// open, and a later Sync settles it, with one reload if need be.
func (c *Client) Sync(ctx context.Context, desired *Config) (*Result, error) {
	start := time.Now()
	ctx, cancel, err := c.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer cancel()
	r := &Result{Hash: desired.Hash()}
	for attempt := 1; ; attempt++ {
		err := c.syncOnce(ctx, desired, r)
		if err == nil {
			r.Duration = time.Since(start)
			return r, nil
		}
		if attempt == c.opts.Attempts || !Retryable(err) || !c.pause(ctx, attempt) {
			return nil, err
		}
		c.log.Debug("trying again", "attempt", attempt, "error", err)
	}
}

// begin waits for the turn of a call. The function it returns ends the turn.
func (c *Client) begin(ctx context.Context) (context.Context, func(), error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.opts.Timeout,
		fmt.Errorf("not done within %v: %w", c.opts.Timeout, context.DeadlineExceeded))
	if ctx.Err() != nil { // or else chance would say at which stage it ended
		cancel()
		return nil, nil, c.errorAt("wait", context.Cause(ctx))
	}
	select {
	case <-c.turn:
		return ctx, func() { cancel(); c.turn <- struct{}{} }, nil
	case <-ctx.Done():
		cancel()
		return nil, nil, c.errorAt("wait", context.Cause(ctx))
	}
}

// Sync makes the desired configuration the one that the HAProxy of that
// endpoint runs, as [Client.Sync] does. Who does so again and again keeps a
// [Client].
func Sync(ctx context.Context, endpoint Endpoint, desired *Config, options *ClientOptions) (*Result, error) {
	c, err := NewClient(endpoint, options)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return c.Sync(ctx, desired)
}

// DryRun tells what [Sync] would do and changes nothing.
func DryRun(ctx context.Context, endpoint Endpoint, desired *Config, options *ClientOptions) (*Plan, error) {
	c, err := NewClient(endpoint, options)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return c.DryRun(ctx, desired)
}

func (e Endpoint) tlsConfig() (*tls.Config, error) {
	if e.CAFile == "" {
		return e.TLS, nil
	}
	pem, err := os.ReadFile(e.CAFile)
	if err != nil {
		return nil, fmt.Errorf("CA file: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, errors.New("CA file: no certificate in " + e.CAFile)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if e.TLS != nil {
		config = e.TLS.Clone()
	}
	config.RootCAs = pool
	return config, nil
}
