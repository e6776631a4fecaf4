package reconcile

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/hapticsdk/haptic/dataplane"
)

// badly is a renderer whose callbacks panic.
type badly struct {
	*source
	settles bool
	edit    func(*Rendered)
}

func (b *badly) Render(ctx context.Context) (*Rendered, error) {
	r, err := b.source.Render(ctx)
	if b.edit != nil {
		b.edit(r)
	}
	return r, err
}

func (b *badly) Settle(*dataplane.Config, error) bool {
	if b.settles {
		panic("boom")
	}
	return false
}

type badRecorder struct{}

func (badRecorder) Event(runtime.Object, string, string, string) { panic("boom") }

// TestCallbacksThatPanic: a panic in any function that the loop calls is an event, once for
// each call, and the loop deploys all the same.
func TestCallbacksThatPanic(t *testing.T) {
	boom := func() { panic("boom") }
	leads := &fakeLeader{}
	leads.Store(true)
	for name, edit := range map[string]func(o *Options, b *badly){
		"Rendered.Accepted": func(_ *Options, b *badly) { b.edit = func(r *Rendered) { r.Accepted = boom } },
		"Rendered.Deployed": func(_ *Options, b *badly) { b.edit = func(r *Rendered) { r.Deployed = func(uint64) { boom() } } },
		"Settler.Settle":    func(_ *Options, b *badly) { b.settles = true },
		"Recorder.Event": func(o *Options, b *badly) {
			o.Recorder = badRecorder{}
			b.refused = []Refusal{{Resource: "Ingress shop/web", Reason: "no", Object: Resource{Kind: "Ingress", Namespace: "shop", Name: "web"}}}
		},
		"Target.Store": func(o *Options, _ *badly) { o.Targets = []Target{&badStore{fakeTarget: o.Targets[0].(*fakeTarget)}} },
		"Options.BeginTerm": func(o *Options, _ *badly) {
			o.Leader = leads
			begun := false
			o.BeginTerm = func(context.Context) {
				if !begun {
					begun = true
					boom()
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			target := &fakeTarget{name: "one"}
			b := &badly{source: &source{t: t, text: "a"}}
			opts := Options{Targets: []Target{target}, Renderer: b}
			edit(&opts, b)
			play(t, opts, func(s *scene) {
				s.Trigger("start")
				pass(time.Second)
				require.Equal(t, text("a"), target.texts()[0])
				first := eventsOf[CallbackFailed](s)
				require.NotEmpty(t, first)
				require.Equal(t, name, first[0].Callback)
				require.Equal(t, 1, first[0].Failures)
				var panicked *PanicError
				require.ErrorAs(t, first[0].Err, &panicked)
				require.Contains(t, string(panicked.Stack), "callback_test.go")
				require.Equal(t, name+" of this program failed, and the loop goes on without it: panic: boom", first[0].Report().Sentence)
				b.set("b", nil, b.refused...)
				s.Trigger("again")
				pass(10 * time.Second)
				require.Contains(t, target.texts(), text("b"))
				if all := eventsOf[CallbackFailed](s); name != "Options.BeginTerm" {
					require.Equal(t, len(all), all[len(all)-1].Failures, "in a row")
					require.Greater(t, len(all), 1)
				}
			})
		})
	}
}

// badStore panics when it stores.
type badStore struct{ *fakeTarget }

func (b *badStore) Sync(ctx context.Context, cfg *dataplane.Config, options ...dataplane.SyncOption) (*dataplane.Result, error) {
	result, err := b.fakeTarget.Sync(ctx, cfg, options...)
	if result != nil {
		result.Pending = true
	}
	return result, err
}

func (b *badStore) Store(context.Context, ...dataplane.SyncOption) error { panic("boom") }

// TestDeployed: the loop tells a render that an instance has its configuration, in the term
// of the deployment. Of equal renders it tells the newest, also if nothing is deployed.
func TestDeployed(t *testing.T) {
	leads := &fakeLeader{}
	leads.Store(true)
	var mu sync.Mutex
	var told []string
	b := &badly{source: &source{t: t, text: "a"}}
	b.edit = func(r *Rendered) {
		number := b.renders
		r.Deployed = func(term uint64) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, fmt.Sprintf("render %d in term %d", number, term))
		}
	}
	was := func() (all []string) {
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		all, told = told, nil
		return all
	}
	target := &fakeTarget{name: "one"}
	play(t, Options{Targets: []Target{target}, Renderer: b, Leader: leads, DriftInterval: time.Hour}, func(s *scene) {
		s.Trigger("start")
		pass(time.Second)
		require.Equal(t, []string{"render 1 in term 1"}, was())
		s.Trigger("the same again")
		pass(time.Second)
		require.Equal(t, []string{"render 2 in term 1"}, was())
		require.Len(t, target.texts(), 1)

		// An equal render during a deployment counts for it.
		wait := make(chan struct{})
		target.set(0, func(context.Context, *dataplane.Config) error { <-wait; return nil })
		b.set("b", nil)
		s.Trigger("another")
		pass(time.Second)
		s.Trigger("the same as that")
		pass(time.Second)
		require.Empty(t, was(), "no instance has it")
		close(wait)
		require.Equal(t, []string{"render 4 in term 1"}, was())

		leads.Store(false)
		pass(time.Second)
		b.set("c", nil)
		s.Trigger("while another process leads")
		pass(time.Second)
		require.Empty(t, was())
		leads.Store(true)
		pass(time.Second)
		require.Equal(t, []string{"render 5 in term 2"}, was())
		require.EqualValues(t, 2, s.Term())
	})
}
