package dataplane

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/hapticsdk/haptic/dataplane/internal/api"
	"github.com/hapticsdk/haptic/dataplane/internal/config"
	"github.com/hapticsdk/haptic/internal/dpapi"
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

	// CheckInterval is how often a Sync that has nothing to do looks for drift:
	// stored files, and servers, map entries and certificates of the running
	// process, which no version tells. Zero means one minute, less than zero never;
	// DryRun always looks.
	CheckInterval time.Duration

	// Attempts is how often a Sync tries before it gives up on conflicts,
	// network errors and answers that say "later". Zero means 3.
	Attempts int

	// Shared is for an endpoint that another owner configures as well. Sections
	// and files that are neither in the desired configuration nor were deployed by
	// a Client before belong to the other and stay as they are. A section of the
	// desired configuration is ours, also if the other has made it; so name
	// defaults sections, since unnamed ones get the same name.
	Shared bool

	// KeepFiles leaves stored files alone that are not part of the desired
	// configuration. Otherwise a Sync deletes them, last of all, unless the
	// configuration or a crt-list names them or the folder they lie in.
	KeepFiles bool

	// HTTPClient is used instead of one of its own; TLS settings and unix
	// sockets of the endpoint then are its business. Redirects are not followed.
	HTTPClient *http.Client

	// Logger gets records at level debug, and of odd findings at level warn. Nil
	// discards them.
	Logger *slog.Logger
}

// Client brings one HAProxy to a desired configuration through the Dataplane
// API, version 3, that runs beside it. A Client remembers what it deployed, so
// keep it: a [Client.Sync] that has nothing to do then costs one request and
// parses nothing.
//
// The API does not tell old workers, so that a Client cannot wait for them as a
// [Local] does. Only the configuration bounds them: "mworker-max-reloads" their
// number, by cutting the connections of the oldest, and "hard-stop-after" their time.
//
// A Client is safe for concurrent use; its calls run one after the other.
type Client struct {
	endpoint Endpoint
	layout   Layout
	http     *dpapi.Client
	engine   *api.Client
}

// NewClient makes a Client. It does not connect: a wrong address shows in the
// first call. Nil options are the zero options.
func NewClient(endpoint Endpoint, options *ClientOptions) (*Client, error) {
	var o ClientOptions
	if options != nil {
		o = *options
	}
	fail := func(err error) (*Client, error) {
		return nil, &Error{Endpoint: endpoint.name(), Stage: "endpoint", Err: err}
	}
	for name, d := range map[string]time.Duration{"Timeout": o.Timeout, "RequestTimeout": o.RequestTimeout, "ReloadTimeout": o.ReloadTimeout} {
		if d < 0 {
			return fail(fmt.Errorf("ClientOptions.%s is negative: %s: want 0, for the default, or more", name, d))
		}
	}
	if o.Attempts < 0 {
		return fail(fmt.Errorf("ClientOptions.Attempts is negative: %d: want 0, for 3, or more", o.Attempts))
	}
	tlsConfig, err := endpoint.tlsConfig()
	if err != nil {
		return fail(err)
	}
	http, err := dpapi.New(endpoint.URL, dpapi.Options{
		Username: endpoint.Username, Password: endpoint.Password,
		TLS: tlsConfig, HTTPClient: o.HTTPClient, Timeout: o.RequestTimeout,
	})
	if err != nil {
		return fail(err)
	}
	log := o.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	engine := api.New(http, api.Options{
		Layout:        config.Layout(o.Layout),
		Timeout:       cmp.Or(o.Timeout, 2*time.Minute),
		ReloadTimeout: cmp.Or(o.ReloadTimeout, 10*time.Second),
		CheckInterval: o.CheckInterval, Attempts: o.Attempts,
		Shared: o.Shared, KeepFiles: o.KeepFiles,
		Logger: log.With("endpoint", endpoint.name()),
	})
	return &Client{endpoint: endpoint, layout: o.Layout, http: http, engine: engine}, nil
}

// Name returns the name of the endpoint, as errors show it.
func (c *Client) Name() string { return c.endpoint.name() }

// String tells the endpoint, without its password.
func (c *Client) String() string { return "client of " + c.endpoint.String() }

// Format is String for every verb, so that none shows the password.
func (c *Client) Format(s fmt.State, _ rune) { _, _ = s.Write([]byte(c.String())) }
func (c *Client) LogValue() slog.Value       { return slog.StringValue(c.String()) }

// Layout returns the layout that configurations for this endpoint must be
// rendered with.
func (c *Client) Layout() Layout { return c.layout }

// Close gives up idle connections. The Client can still be used.
func (c *Client) Close() { c.http.CloseIdle() }

// Forget has the next [Client.Sync] read all that is stored, and what the process
// has, in place of trusting what this Client left there. Call it when another
// process may have deployed since, such as before leading again. It never waits,
// and may be called from any goroutine.
func (c *Client) Forget() { c.engine.Forget() }

// Probe asks what Dataplane API and what HAProxy there are, and changes nothing.
// The Version of the HAProxy is zero where the API does not tell it, as before
// the process has started. It fails with [ErrUnsupported] for an API older than
// 3.0, and otherwise as [Client.DryRun] does before it reads anything.
func (c *Client) Probe(ctx context.Context) (Target, error) {
	target, err := c.engine.Probe(ctx)
	return outerTarget(target), errorOf(c.Name(), err)
}

// Current returns the configuration that is stored, and nil without an error when
// there is none. The Dataplane API tells the text, maps and general files, but no
// certificates.
func (c *Client) Current(ctx context.Context) (*Config, error) {
	current, err := c.engine.Current(ctx)
	return outerConfig(current), errorOf(c.Name(), err)
}

// DryRun tells what [Client.Sync] would do and changes nothing. It always reads
// what is stored, files included, and what the running process has, and so finds
// what another writer changed there. The Impact of each operation is what it costs
// by way of the Dataplane API, which is more than HAProxy itself would need for some.
//
// It fails with what Sync fails with before it sends anything.
func (c *Client) DryRun(ctx context.Context, desired *Config) (*Plan, error) {
	if desired == nil {
		return nil, errorOf(c.Name(), config.At("check", errNoConfig))
	}
	steps, err := c.engine.DryRun(ctx, desired.inner)
	if err != nil {
		return nil, errorOf(c.Name(), err)
	}
	return planOf(steps), nil
}

// Sync makes the desired configuration the one that HAProxy runs. It stores
// files first, then changes the running process or, where that is not
// possible, has it reload once and follows the reload to its end; files that
// are no longer needed go last. The Plan of the Result is what differed when
// the Sync began.
//
// A general file haptic-ledger.txt at the endpoint says what a Client has deployed,
// and whether HAProxy has loaded it. Another Client that finds an unfinished change
// there, after this one was killed, has HAProxy reload, unless the process tells what
// it has.
//
// Every error is an [*Error]. After [ErrInvalid] and [ErrReload] HAProxy runs
// on with the configuration that it had, which has also been put back where it
// is stored. After any other error the outcome is open: a later Sync reads
// everything again, and reloads once if need be.
func (c *Client) Sync(ctx context.Context, desired *Config, options ...SyncOption) (*Result, error) {
	start := time.Now()
	if desired == nil {
		return nil, errorOf(c.Name(), config.At("check", errNoConfig))
	}
	outcome, err := c.engine.Sync(ctx, desired.inner, limitsOf(options))
	return resultOf(outcome, start), errorOf(c.Name(), err)
}

// Store stores what Syncs with [StoreLater] have told the running process, with one
// push for all of them. A Sync with StoreLater goes on while it does: only one that
// takes a reload, or changes the same server again, waits for the end of the push.
//
// Until Store has returned without an error, a reload by others brings the older
// configuration back, which the next Sync notices and repairs. After an error the next
// Sync reads everything again. The Sync of a successor of a Client that ended before
// reads from the process what it was told, and stores that, without a reload. Store does
// nothing if all is stored. Of the options only [WithFence] counts.
func (c *Client) Store(ctx context.Context, options ...SyncOption) error {
	return errorOf(c.Name(), c.engine.Store(ctx, limitsOf(options)))
}

// Sync makes the desired configuration the one that the HAProxy of that
// endpoint runs, as [Client.Sync] does. To do so again and again, keep a [Client].
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
