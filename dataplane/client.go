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
	// Layout says where the files lie on the machine of the HAProxy. Render the configuration
	// with the same layout.
	Layout Layout

	// Timeout bounds one Sync or DryRun, retries and the reload included. Zero
	// means two minutes.
	Timeout time.Duration

	// RequestTimeout bounds one request. Zero means 60 seconds, which is more
	// than the Dataplane API allows itself.
	RequestTimeout time.Duration

	// ReloadTimeout bounds how long the new worker process may take to show up after a
	// reload. Zero means 10 seconds.
	ReloadTimeout time.Duration

	// CheckInterval is how often a Sync that has nothing to do looks for drift. It then reads
	// the stored files, and the servers, map entries and certificates of the running process;
	// no version number covers these. Zero means one minute, less than zero never. DryRun
	// always looks.
	CheckInterval time.Duration

	// Attempts is how often a Sync tries before it gives up on conflicts,
	// network errors and answers that say "later". Zero means 3.
	Attempts int

	// Shared is for an endpoint that another owner configures as well. A Client then leaves
	// sections and files of the other owner alone: those that are not in the desired
	// configuration and that no Client deployed before. A section of the desired
	// configuration is ours, even if the other owner made it. Give defaults sections a name,
	// because the API gives all unnamed ones the same name.
	Shared bool

	// KeepFiles leaves stored files alone that are not part of the desired configuration.
	// Otherwise a Sync deletes them as its last step, unless the configuration or a crt-list
	// names the file or its folder.
	KeepFiles bool

	// HTTPClient replaces the HTTP client that a Client makes for http and https URLs. Its
	// own TLS settings then apply. A Client ignores it for a unix URL. The Client never
	// follows redirects.
	HTTPClient *http.Client

	// Logger gets records at level debug, and at level warn for odd findings. Nil discards
	// them.
	Logger *slog.Logger
}

// Client brings one HAProxy to a desired configuration through the Dataplane API, version 3,
// that runs beside it. A Client remembers what it deployed, so keep it: a [Client.Sync] that
// has nothing to do then costs one request and parses nothing.
//
// The API does not report old workers, so a Client cannot wait for them as a [Local] does.
// Only the configuration bounds them. "mworker-max-reloads" bounds their number, and cuts the
// connections of the oldest. "hard-stop-after" bounds their time.
//
// A Client is safe for concurrent use; its calls run one after the other.
type Client struct {
	endpoint Endpoint
	layout   Layout
	http     *dpapi.Client
	engine   *api.Client
}

// NewClient makes a Client. It does not connect: the first call reports a wrong address. Nil
// options are the zero options.
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

// String describes the endpoint, without its password.
func (c *Client) String() string { return "client of " + c.endpoint.String() }

// Format is String for every verb, so that none shows the password.
func (c *Client) Format(s fmt.State, _ rune) { _, _ = s.Write([]byte(c.String())) }
func (c *Client) LogValue() slog.Value       { return slog.StringValue(c.String()) }

// Layout returns the layout. Render configurations for this endpoint with it.
func (c *Client) Layout() Layout { return c.layout }

// Close closes idle connections. The Client can still be used.
func (c *Client) Close() { c.http.CloseIdle() }

// Forget makes the next [Client.Sync] read all that is stored and loaded, instead of trusting
// what this Client left there. Call it when another process may have deployed since, such as
// before leading again. It never waits. Any goroutine may call it.
func (c *Client) Forget() { c.engine.Forget() }

// Probe asks for the versions of the Dataplane API and of HAProxy, and changes nothing. The
// Version of the HAProxy is zero if the API does not know it, as before the process has
// started. Probe fails with [ErrUnsupported] for an API older than 3.0, and otherwise as
// [Client.DryRun] does before it reads anything.
func (c *Client) Probe(ctx context.Context) (Target, error) {
	target, err := c.engine.Probe(ctx)
	return outerTarget(target), errorOf(c.Name(), err)
}

// Current returns the stored configuration, or nil without an error if there is none. The
// Dataplane API gives out the text, maps and general files, but no certificates.
func (c *Client) Current(ctx context.Context) (*Config, error) {
	current, err := c.engine.Current(ctx)
	return outerConfig(current), errorOf(c.Name(), err)
}

// DryRun says what [Client.Sync] would do and changes nothing. It always reads what is
// stored, files included, and what the running process has. That way it finds what another
// writer changed. The Impact of each operation is its cost through the Dataplane API, which
// for some is more than HAProxy itself would need.
//
// It fails with the same errors as a Sync that has not sent anything yet.
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

// Sync makes the desired configuration the one that HAProxy runs. It changes the running
// process and then stores the text or, if that cannot be, stores all files, makes HAProxy
// reload once and follows the reload to its end. It deletes files that are no longer needed
// last. The Plan of the Result is what differed when the Sync began.
//
// A general file haptic-ledger.txt at the endpoint says what a Client has deployed, and
// whether HAProxy has loaded it. If this Client is killed during a change, the next Client
// finds the unfinished change in that file. It then makes HAProxy reload, unless it can read
// the changes back from the process.
//
// Every error is an [*Error]. After [ErrInvalid] and [ErrReload], HAProxy keeps running with
// the configuration that it had, and that one is stored again. After any other error the
// outcome is open: a later Sync reads everything again, and reloads once if need be.
func (c *Client) Sync(ctx context.Context, desired *Config, options ...SyncOption) (*Result, error) {
	start := time.Now()
	if desired == nil {
		return nil, errorOf(c.Name(), config.At("check", errNoConfig))
	}
	outcome, err := c.engine.Sync(ctx, desired.inner, limitsOf(options))
	return resultOf(outcome, start), errorOf(c.Name(), err)
}

// Store stores the changes that Syncs with [StoreLater] made only in the running process. It
// uses one push for all of them. Meanwhile, a Sync with StoreLater waits for the end of the
// push only if it takes a reload or changes the same server again.
//
// Until Store has returned without an error, a reload by others brings the older
// configuration back. The next Sync notices that and repairs it. After an error the next Sync
// reads everything again. If a Client ends before it stored, the first Sync of its successor
// reads the changes from the process and stores them, without a reload. Store does nothing if
// all is stored. It uses only the option [WithFence].
func (c *Client) Store(ctx context.Context, options ...SyncOption) error {
	return errorOf(c.Name(), c.engine.Store(ctx, limitsOf(options)))
}

// Sync makes the desired configuration the one that the HAProxy of that endpoint runs, as
// [Client.Sync] does. If you call it again and again, keep a [Client] instead.
func Sync(ctx context.Context, endpoint Endpoint, desired *Config, options *ClientOptions) (*Result, error) {
	c, err := NewClient(endpoint, options)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return c.Sync(ctx, desired)
}

// DryRun says what [Sync] would do and changes nothing.
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
