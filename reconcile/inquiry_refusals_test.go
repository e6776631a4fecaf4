package reconcile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hapticsdk/haptic/dataplane"
)

// resent is what the instances of a chaos have refused last.
type resent struct {
	mu       sync.Mutex
	last     map[string]refusedOnce // by instance
	releases atomic.Int64
}

// refusedOnce is what an instance was to have last, and refused, with all that
// speaks for another try when it changes.
type refusedOnce struct {
	hash     string
	born     uint64
	term     uint64
	releases int64
	blamed   map[string]string // versions of the Ingresses that it does not take
	at       time.Time
}

// reasons is what there is now.
func (r *resent) reasons(c *chaos, f *fakeTarget, cfg *dataplane.Config) (now refusedOnce, asked bool) {
	now = refusedOnce{hash: cfg.Hash(), releases: r.releases.Load(), blamed: map[string]string{}, at: time.Now()}
	c.w.mu.Lock()
	for _, ing := range c.w.ingresses {
		for _, word := range c.words[f.name] {
			if ing.Annotations["text"] == word && strings.Contains(cfg.Main(), "backend "+ing.Name+"\n") {
				now.blamed[ing.Name] = ing.ResourceVersion
			}
		}
	}
	c.w.mu.Unlock()
	c.Loop.mu.Lock()
	defer c.Loop.mu.Unlock()
	now.term = c.sched.term
	if e := c.sched.instances[f.name]; e != nil {
		now.born = e.born
		asked = e.ask != nil && e.ask.config == cfg
	}
	return now, asked
}

// remember wraps what an instance does: within the drift interval it must not be
// sent what it refused, unless what it does not take has changed, it is new, this
// process leads in a new term, or somebody asked for it.
func (r *resent) remember(c *chaos, f *fakeTarget) func(context.Context, *dataplane.Config) error {
	behave := f.behave
	return func(ctx context.Context, cfg *dataplane.Config) error {
		now, asked := r.reasons(c, f, cfg)
		r.mu.Lock()
		last, ok := r.last[f.name]
		r.mu.Unlock()
		if !asked && ok && last.hash == now.hash && last.born == now.born && last.term == now.term && last.releases == now.releases &&
			maps.Equal(last.blamed, now.blamed) && now.at.Before(last.at.Add(c.timing().drift)) {
			c.t.Errorf("%s is sent again what it refused %s ago", f.name, now.at.Sub(last.at))
		}
		err := behave(ctx, cfg)
		if asked {
			return err
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.last == nil {
			r.last = map[string]refusedOnce{}
		}
		delete(r.last, f.name)
		if errors.Is(err, dataplane.ErrInvalid) {
			now.at = time.Now()
			r.last[f.name] = now
		}
		return err
	}
}

// breaks has the validator fail, or work again.
func (c *chaos) breaks(broken bool) {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	c.w.broken = nil
	if broken {
		c.w.broken = fmt.Errorf("haproxy is not there")
	}
}
