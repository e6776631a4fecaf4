// Package api brings one HAProxy to a desired configuration through the Dataplane API,
// version 3, that runs beside it.
//
// An attempt of a Sync reads what it does not know (read.go) and compares (job.go). It then
// carries out the steps (apply.go): runtime changes (runtime.go, and beside.go for stand-in
// servers), files, and the text with or without a reload (push.go). Store pushes changes that
// only the process has (store.go). The ledger on the endpoint (ledger.go) says what is ours
// and whether HAProxy has loaded it; a successor reads it. certificates.go compares stored
// certificates. errors.go interprets answers. After a conflict over the text, Sync in
// client.go makes another attempt.
//
// There is one bit of doubt. While the process may not have what is stored, the next attempt
// reads everything again and reloads once.
package api

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/hapticsdk/haptic/dataplane/internal/change"
	"github.com/hapticsdk/haptic/dataplane/internal/config"
	"github.com/hapticsdk/haptic/internal/dpapi"
	"github.com/hapticsdk/haptic/internal/haproxycfg"
	"github.com/hapticsdk/haptic/internal/late"
)

// Options say how a [Client] works. Layout, Timeout, ReloadTimeout and Logger must be
// set.
type Options struct {
	Layout        config.Layout
	Timeout       time.Duration // of one Sync or DryRun
	ReloadTimeout time.Duration // until a new worker shows up
	CheckInterval time.Duration // between two checks of files and process by Syncs without changes; 0: one minute, less: never
	Attempts      int           // 0: 3
	Shared        bool          // another owner has sections and files there, too
	KeepFiles     bool
	Logger        *slog.Logger
}

// Client brings one endpoint to a desired configuration. It is safe for concurrent use; its
// calls run one after the other.
type Client struct {
	opts     Options
	endpoint *dpapi.Client
	log      *slog.Logger
	turn     chan struct{} // holds one token; the call that has it owns the fields below

	forgotten atomic.Bool // known is no longer valid; set by any goroutine

	api    *dpapi.Client // the endpoint, behind the fence of the call
	known  *known        // what is deployed; nil if unknown
	doubt  bool          // the process may not have what is stored
	looked time.Time     // when files and process were last read
	ledger ledger        // as stored at the endpoint; valid only while known is set

	ahead   *job // a job whose changes the process has, but which is not stored; nil if everything is
	storing *storing
	pid     int // of the process that has the changes
	late    map[change.ServerRef]lateServer
	leaving []change.ServerRef // stand-ins without traffic

	closing      bool // the ledger may say that a change is open, although the process has everything
	failedReload bool // the last reload failed

	certs map[string][]byte // contents of certificates as last stored by this client: the API never gives them out

	desired, stored, merged haproxycfg.Normaliser
}

// known is the deployed configuration, as a client knows it.
type known struct {
	hash    string // of the desired configuration that it was made from
	version int64  // in the count of the API
	text    string // as stored; the next text may have another form
	config  *config.Config
}

// New makes a Client. It does not connect.
func New(api *dpapi.Client, o Options) *Client {
	if o.Attempts <= 0 {
		o.Attempts = 3
	}
	if o.CheckInterval == 0 {
		o.CheckInterval = time.Minute
	}
	c := &Client{opts: o, endpoint: api, log: o.Logger, turn: make(chan struct{}, 1), certs: map[string][]byte{}}
	c.turn <- struct{}{}
	return c
}

// Forget makes the next Sync read everything that is stored. It never waits.
func (c *Client) Forget() { c.forgotten.Store(true) }

// begin waits for the turn of a call. The returned function ends the turn.
func (c *Client) begin(ctx context.Context, limits change.Limits) (context.Context, func(), error) {
	ctx, cancel := late.Context(ctx, "not done", c.opts.Timeout)
	select {
	case <-c.turn:
		if ctx.Err() == nil { // otherwise the stage in the error would depend on chance
			c.api = c.endpoint.Fenced(limits.Fence)
			return ctx, func() { cancel(); c.turn <- struct{}{} }, nil
		}
		c.turn <- struct{}{}
	case <-ctx.Done():
	}
	cancel()
	return nil, nil, config.At("wait", context.Cause(ctx))
}

// DryRun says what a Sync would do. It reads everything, also the running process.
func (c *Client) DryRun(ctx context.Context, desired *config.Config) ([]change.Step, error) {
	ctx, end, err := c.begin(ctx, change.Limits{})
	if err != nil {
		return nil, err
	}
	defer end()
	info, err := c.api.Info(ctx)
	if err != nil {
		return nil, probeError(err)
	}
	if err := c.awaitStored(ctx); err != nil {
		return nil, err
	}
	defer func(was *known) {
		if c.ahead != nil { // Store continues from there
			c.known = was
		}
	}(c.known)
	c.known = nil
	j, err := c.prepare(ctx, info, desired)
	if err != nil {
		return nil, err
	}
	if j.empty() && c.ledger.equal(j.ledger) { // the next Sync then need not look again
		c.remember(j, j.before)
	}
	return j.steps, nil
}

// Probe asks for the versions of the API and of HAProxy.
func (c *Client) Probe(ctx context.Context) (change.Target, error) {
	ctx, end, err := c.begin(ctx, change.Limits{})
	if err != nil {
		return change.Target{}, err
	}
	defer end()
	info, err := c.api.Info(ctx)
	if err != nil {
		return change.Target{}, probeError(err)
	}
	target, _, err := c.inspect(ctx, info)
	return target, err
}

// Sync brings the endpoint to the desired configuration.
func (c *Client) Sync(ctx context.Context, desired *config.Config, limits change.Limits) (*change.Outcome, error) {
	ctx, end, err := c.begin(ctx, limits)
	if err != nil {
		return nil, err
	}
	defer end()
	out := &change.Outcome{Hash: desired.Hash()}
	for attempt := 1; ; attempt++ {
		err := c.attempt(ctx, desired, limits, out)
		for errors.Is(err, errStoring) {
			if err = c.awaitStored(ctx); err == nil {
				err = c.attempt(ctx, desired, limits, out)
			}
		}
		if err == nil {
			return out, nil
		}
		if attempt == c.opts.Attempts || !config.Retryable(err, config.At("", err).Status) || !sleep(ctx, pause(attempt)) {
			return nil, err
		}
		c.log.Debug("trying again", "attempt", attempt, "error", err)
	}
}

// attempt is one attempt of a Sync. It adds its results to out.
func (c *Client) attempt(ctx context.Context, desired *config.Config, limits change.Limits, out *change.Outcome) error {
	info, err := c.api.Info(ctx)
	if err != nil {
		return probeError(err)
	}
	if c.storing != nil && (c.forgotten.Load() || c.doubt || !c.isKnown(info)) {
		return errStoring
	}
	if c.forgotten.Swap(false) {
		c.known, c.ahead, c.closing = nil, nil, false
	}
	if !c.isKnown(info) { // Store could no longer continue from them
		c.known, c.ahead = nil, nil
	}
	same := !c.doubt && c.isKnown(info) && c.hash() == desired.Hash()
	if same && c.ahead != nil && limits.Later {
		out.Pending = true
		return nil
	}
	if same && c.ahead == nil && (c.opts.CheckInterval < 0 || time.Since(c.looked) < c.opts.CheckInterval) {
		return nil
	}
	if same && c.ahead == nil || c.doubt {
		c.known, c.ahead = nil, nil // this makes prepare read everything
	}
	j, err := c.prepare(ctx, info, desired)
	if err != nil {
		return err
	}
	if out.Steps == nil {
		out.Steps = j.steps
	}
	if limits.NoReload && change.ImpactOf(j.steps) == change.Reload {
		j = c.onlyRuntime(j, out)
		if j == nil {
			return nil
		}
	}
	j.first, j.readable = c.toldFirst(j), j.readsBack()
	if c.storing != nil && !(limits.Later && c.holds(j) && !c.storing.meets(j)) {
		return errStoring
	}
	return c.apply(ctx, j, out, limits.Later)
}

// isKnown reports whether the API has the version that this client knows, or will have the
// next one after the push under way.
func (c *Client) isKnown(info dpapi.Info) bool {
	return c.known != nil && (info.Version == c.known.version || c.storing != nil && info.Version == c.known.version+1)
}

// hash returns the hash of the configuration that the process has.
func (c *Client) hash() string {
	if c.ahead != nil {
		return c.ahead.desired.Hash()
	}
	return c.known.hash
}

const firstPause = 100 * time.Millisecond

// pause returns the time before another attempt. It doubles with each attempt. A random part
// of up to half is taken off, so that two writers that collided do not collide again.
func pause(attempt int) time.Duration {
	base := firstPause << min(attempt-1, 6)
	return base/2 + rand.N(base/2+1)
}

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// remember keeps what is deployed now, so that the next call need not read it.
func (c *Client) remember(j *job, after known) {
	c.known = &known{hash: j.desired.Hash(), version: after.version, text: after.text, config: j.wanted}
}
