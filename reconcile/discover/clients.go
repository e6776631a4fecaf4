// Package discover finds the instances that are configured through a Dataplane API:
// which pods they are, the credentials for them, and clients that are the targets of
// a loop. A [Follower] does all of it while a loop runs; [Pods], [ParseCredentials] and
// [Clients] are its parts.
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

// Clients turns endpoints into targets and keeps, from call to call, the target of an
// endpoint that did not change, with all that it remembers. Where the address, the
// credentials or the CA changed, the endpoint gets a new target, whatever its name: the
// loop tries that at once, and reads what the instance has. The zero value is ready; it
// may be used from any goroutine.
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

// Targets makes the targets for these endpoints, each of which is a [*dataplane.Client],
// and forgets all others. Its error joins those of endpoints that cannot be
// used; the others have their targets all the same.
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

// askTimeout is what one endpoint gets to tell what it has.
const askTimeout = 5 * time.Second

// Current returns what the first of the endpoints has that answers, and nil where none
// has anything: a controller that starts anew gives it to Templates.SetPrevious of
// package render. A configuration without files counts only where no other is: a new
// instance has one that it came with. The error joins those of the endpoints that were
// asked in vain.
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
