package k8swatch

import (
	"context"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// candidacy is what a candidate knows of the Lease before it has it. client-go
// looks at a Lease every 2 to 4.4 s, and counts from there how long it has not
// been renewed: a Lease that was released, or has run out, stays free for as
// long as that. A candidate that watches it tries in the same moment. Without a
// watch it looks as often as client-go does.
type candidacy struct {
	e    *Election
	news chan struct{} // of size 1: there is another record

	mu     sync.Mutex
	record *resourcelock.LeaderElectionRecord // nil: there is none, or none was seen yet
	since  time.Time                          // when record was seen first, by the clock of this host
	tried  bool                               // in vain, with this record
}

func newCandidacy(e *Election) *candidacy { return &candidacy{e: e, news: make(chan struct{}, 1)} }

// saw takes what stands in the Lease, nil for no Lease, and reports whether it
// may be had: nobody holds it, or it has not been renewed for as long as it
// lasts. An older record that comes late only makes the candidate wait longer.
func (c *candidacy) saw(r *resourcelock.LeaderElectionRecord) (free bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !sameRecord(c.record, r) {
		c.record, c.since, c.tried = r, time.Now(), false
		select {
		case c.news <- struct{}{}:
		default:
		}
	}
	return !time.Now().Before(c.runsOut())
}

// runsOut is when the Lease may be had, zero for at once. The caller holds c.mu.
func (c *candidacy) runsOut() time.Time {
	if c.record == nil || c.record.HolderIdentity == "" {
		return time.Time{}
	}
	return c.since.Add(time.Duration(c.record.LeaseDurationSeconds) * time.Second)
}

func sameRecord(a, b *resourcelock.LeaderElectionRecord) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.HolderIdentity == b.HolderIdentity && a.LeaderTransitions == b.LeaderTransitions &&
		a.LeaseDurationSeconds == b.LeaseDurationSeconds &&
		a.AcquireTime.Equal(&b.AcquireTime) && a.RenewTime.Equal(&b.RenewTime)
}

// await waits until it is time to try for the Lease: it may be had, or it has
// not been looked at for a retry period. It reports false when ctx ended first.
func (c *candidacy) await(ctx context.Context) bool {
	// The same jitter as in client-go: candidates spread.
	look := time.NewTimer(wait.Jitter(c.e.opts.RetryPeriod, leaderelection.JitterFactor))
	defer look.Stop()
	for ctx.Err() == nil {
		c.mu.Lock()
		at, tried := c.runsOut(), c.tried
		c.mu.Unlock()
		if !tried && !time.Now().Before(at) {
			return true
		}
		if c.sleep(ctx, look.C, at, tried) {
			return ctx.Err() == nil
		}
	}
	return false
}

// sleep reports whether it is time to look in any case.
func (c *candidacy) sleep(ctx context.Context, look <-chan time.Time, at time.Time, tried bool) bool {
	var free <-chan time.Time
	if !tried {
		timer := time.NewTimer(time.Until(at))
		defer timer.Stop()
		free = timer.C
	}
	select {
	case <-ctx.Done():
	case <-c.news:
	case <-free:
	case <-look:
		return true
	}
	return false
}

// failed notes that a try came to nothing: the next one is for another record,
// or after a retry period.
func (c *candidacy) failed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tried = true
}

// watch follows the Lease until ctx ends, if this candidate may watch it.
func (c *candidacy) watch(ctx context.Context) {
	for ctx.Err() == nil {
		err := c.watchOnce(ctx)
		if apierrors.IsForbidden(err) || apierrors.IsMethodNotSupported(err) {
			c.e.log.Info("the Lease may not be watched: that it is free is noticed late", "error", err)
			return
		}
		sleep(ctx, wait.Jitter(c.e.opts.RetryPeriod, 1))
	}
}

func (c *candidacy) watchOnce(ctx context.Context) error {
	w, err := c.e.opts.Client.Leases(c.e.opts.Namespace).Watch(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, c.e.opts.Name).String(),
	})
	if err != nil {
		return err
	}
	defer w.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case event, ok := <-w.ResultChan():
			switch {
			case !ok: // the API server ends each watch some time
				return nil
			case event.Type == watch.Error:
				return apierrors.FromObject(event.Object)
			}
			c.heard(event)
		}
	}
}

func (c *candidacy) heard(event watch.Event) {
	lease, ok := event.Object.(*coordinationv1.Lease)
	if !ok || lease.Namespace != c.e.opts.Namespace || lease.Name != c.e.opts.Name {
		return
	}
	if event.Type == watch.Deleted {
		c.saw(nil)
		return
	}
	c.saw(resourcelock.LeaseSpecToLeaderElectionRecord(&lease.Spec))
}
