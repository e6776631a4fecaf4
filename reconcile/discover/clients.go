// Package discover finds the instances that are configured through a Dataplane API:
// which pods they are, the credentials for them, and clients that are the targets of
// a loop. A [Follower] does all of it while a loop runs; [Pods], [ParseCredentials] and
// [Clients] are its parts.
package discover

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/reconcile"
)

// Clients turns endpoints into targets and keeps, from call to call, the target
// of an endpoint that did not change, with all that it remembers. An endpoint
// whose address changed gets a new one, whatever its name. New credentials take
// effect on the next call; a target that was refused with the old ones is replaced, so
// that the loop tries at once. The zero value is ready; it may be used from any
// goroutine.
type Clients struct {
	Options *dataplane.ClientOptions

	// Oldest is the oldest HAProxy that counts. Zero: 2.6. A validator with a
	// newer HAProxy accepts what an older one may refuse.
	Oldest dataplane.Version

	mu   sync.Mutex
	byID map[clientID]*remote
}

// clientID is what makes an endpoint another one.
type clientID struct {
	name, url, caFile string
	tls               *tls.Config
}

// Targets makes the targets for these endpoints, each of which is a [reconcile.Prober],
// and forgets all others. Its error joins those of endpoints that cannot be
// used; the others have their targets all the same.
func (c *Clients) Targets(endpoints []dataplane.Endpoint) ([]reconcile.Target, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := make(map[clientID]*remote, len(endpoints))
	targets := make([]reconcile.Target, 0, len(endpoints))
	var errs []error
	for _, e := range endpoints {
		id := clientID{e.Name, e.URL, e.CAFile, e.TLS}
		r := c.byID[id]
		if r != nil && r.refusedBefore(e) {
			r = nil // it waits: a new target is tried at once
		}
		var err error
		if r == nil {
			r = &remote{options: c.Options, oldest: c.Oldest}
		}
		if err = r.use(e); err != nil {
			errs = append(errs, err)
			continue
		}
		now[id] = r
		targets = append(targets, r)
	}
	for id, r := range c.byID {
		if now[id] != r {
			r.retire()
		}
	}
	c.byID = now
	return targets, errors.Join(errs...)
}

// askTimeout is what one endpoint gets to tell what it has.
const askTimeout = 5 * time.Second

// Current returns what the first of the endpoints has that answers, and nil where none
// has anything: a controller that starts anew gives it to Templates.SetPrevious of
// package render. A configuration without files counts only where no other is: a new
// instance has one that it came with. The error joins those of the endpoints that were
// asked in vain.
func (c *Clients) Current(ctx context.Context) (*dataplane.Config, error) {
	c.mu.Lock()
	remotes := slices.SortedFunc(maps.Values(c.byID), func(a, b *remote) int { return strings.Compare(a.Name(), b.Name()) })
	c.mu.Unlock()
	var errs []error
	var bare *dataplane.Config
	for _, r := range remotes {
		ctx, cancel := context.WithTimeout(ctx, askTimeout)
		var current *dataplane.Config
		err := r.do(func(client *dataplane.Client) (err error) {
			current, err = client.Current(ctx)
			return err
		})
		cancel()
		if current != nil && len(current.Files()) > 0 {
			return current, nil
		}
		bare = cmp.Or(bare, current)
		errs = append(errs, err)
	}
	if bare != nil {
		return bare, nil
	}
	return nil, errors.Join(errs...)
}

// remote is the target of one endpoint, under whatever credentials.
type remote struct {
	options *dataplane.ClientOptions
	oldest  dataplane.Version

	mu       sync.Mutex
	endpoint dataplane.Endpoint
	client   *dataplane.Client
	told     *dataplane.Client // that has something to store; nil if none may have
	refused  bool              // the last call was refused for its credentials
	retired  bool              // no connection is kept
}

func sameCredentials(a, b dataplane.Endpoint) bool {
	return a.Username == b.Username && a.Password == b.Password
}

// refusedBefore reports whether the credentials of e are to be tried where
// others were refused.
func (r *remote) refusedBefore(e dataplane.Endpoint) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.refused && !sameCredentials(r.endpoint, e)
}

// use has the calls from the next on made with these credentials.
func (r *remote) use(e dataplane.Endpoint) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.client != nil && sameCredentials(r.endpoint, e) {
		return nil
	}
	client, err := dataplane.NewClient(e, r.options)
	if err != nil {
		return err
	}
	if r.client != nil {
		r.client.Close()
	}
	r.endpoint, r.client = e, client
	return nil
}

func (r *remote) retire() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.retired = true
	r.client.Close()
}

func (r *remote) Name() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.client.Name()
}

// Format tells the endpoint, for every verb without its password.
func (r *remote) Format(s fmt.State, _ rune) { fmt.Fprint(s, "client of ", r.Name()) }

func (r *remote) DryRun(ctx context.Context, cfg *dataplane.Config) (plan *dataplane.Plan, err error) {
	err = r.do(func(c *dataplane.Client) (err error) {
		plan, err = c.DryRun(ctx, cfg)
		return err
	})
	return plan, err
}

func (r *remote) Sync(ctx context.Context, cfg *dataplane.Config, options ...dataplane.SyncOption) (result *dataplane.Result, err error) {
	err = r.do(func(c *dataplane.Client) (err error) {
		if result, err = c.Sync(ctx, cfg, options...); err == nil {
			r.tells(c, result.Pending)
		}
		return err
	})
	return result, err
}

// tells notes which client has something to store.
func (r *remote) tells(c *dataplane.Client, pending bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case pending:
		r.told = c
	case r.told != c: // this one has found out, and stored it
		r.told = nil
	}
}

// errNotStored has a Sync find out what the instance has.
var errNotStored = errors.New("the client that told it had other credentials")

// Store stores what the instance was told. It fails where the credentials are others
// since: only a Sync finds out then what there is to store.
func (r *remote) Store(ctx context.Context, options ...dataplane.SyncOption) error {
	return r.do(func(c *dataplane.Client) error {
		r.mu.Lock()
		other := r.told != nil && r.told != c
		r.mu.Unlock()
		if other {
			return &dataplane.Error{Endpoint: c.Name(), Stage: "store", Err: errNotStored}
		}
		return c.Store(ctx, options...)
	})
}

func (r *remote) Probe(ctx context.Context) (is dataplane.Target, err error) {
	err = r.do(func(c *dataplane.Client) (err error) {
		is, err = c.Probe(ctx)
		return err
	})
	if err == nil && is.Version != (dataplane.Version{}) && is.Version.Compare(r.oldest) < 0 {
		err = &dataplane.Error{Endpoint: r.Name(), Stage: "probe", Err: dataplane.ErrUnsupported,
			Output: fmt.Sprintf("HAProxy is of version %s, which is older than %s", is.Version, r.oldest)}
	}
	return is, err
}

// do makes a call. If the credentials were refused, and Targets brought others
// meanwhile, it makes the call again.
func (r *remote) do(f func(*dataplane.Client) error) error {
	for {
		r.mu.Lock()
		client, with := r.client, r.endpoint
		r.mu.Unlock()
		if err := f(client); !r.again(client, with, err) {
			return err
		}
	}
}

// again notes how a call ended, and reports whether it is to be made again.
func (r *remote) again(client *dataplane.Client, with dataplane.Endpoint, err error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.retired || client != r.client { // the call may have left a connection
		client.Close()
	}
	refused := errors.Is(err, dataplane.ErrUnauthorized)
	again := refused && !sameCredentials(r.endpoint, with)
	r.refused = refused && !again
	return again
}

// Forget has the next deployment look at what the instance has.
func (r *remote) Forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.client.Forget()
}
