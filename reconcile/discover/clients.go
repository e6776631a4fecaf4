// Package discover finds the instances that have a Dataplane API. It finds their pods, reads
// their credentials, and makes the clients that are the targets of a loop. A [Follower] does
// all of it while a loop runs; [Pods], [ParseCredentials] and [Clients] are its parts.
package discover

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/reconcile"
)

// Clients turns endpoints into targets. From call to call, it keeps the target of an unchanged
// endpoint and everything that the target remembers. An endpoint with a changed address,
// credentials or CA gets a new target, even under the same name. The loop then tries the
// target at once and reads the instance's configuration. The zero value is ready. Any
// goroutine may use it.
type Clients struct {
	Options *dataplane.ClientOptions

	mu   sync.Mutex
	kept []*remote
}

// remote is an endpoint with its client.
type remote struct {
	endpoint dataplane.Endpoint
	*dataplane.Client
}

// Targets returns a target, a [*dataplane.Client], for each of these endpoints, and forgets
// all others. The error joins the errors of unusable endpoints; the others get their targets
// anyway.
func (c *Clients) Targets(endpoints []dataplane.Endpoint) ([]reconcile.Target, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before, targets := c.kept, make([]reconcile.Target, 0, len(endpoints))
	c.kept = nil
	var errs []error
	for _, e := range endpoints {
		i := slices.IndexFunc(before, func(r *remote) bool { return r.endpoint == e })
		if i < 0 {
			client, err := dataplane.NewClient(e, c.Options)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			i, before = len(before), append(before, &remote{e, client})
		}
		c.kept, targets = append(c.kept, before[i]), append(targets, before[i].Client)
	}
	for _, r := range before {
		if !slices.Contains(c.kept, r) {
			r.Close()
		}
	}
	return targets, errors.Join(errs...)
}

// askTimeout is how long Current waits for one endpoint.
const askTimeout = 5 * time.Second

// Current asks the endpoints in turn and returns the first configuration that has files. If
// there is none, it returns the first one without files: a new instance has such a
// configuration from the start. If no endpoint has any, it returns nil and the joined errors.
// A controller that starts gives the result to Templates.SetPrevious of package render.
func (c *Clients) Current(ctx context.Context) (*dataplane.Config, error) {
	c.mu.Lock()
	remotes := slices.SortedFunc(slices.Values(c.kept), func(a, b *remote) int { return strings.Compare(a.Name(), b.Name()) })
	c.mu.Unlock()
	var errs []error
	var bare *dataplane.Config
	for _, r := range remotes {
		ctx, cancel := context.WithTimeout(ctx, askTimeout)
		current, err := r.Client.Current(ctx)
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
