package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
)

// old is an instance of another version: it refuses the first line that has one
// of the words, as its Dataplane API would say it.
func old(name string, words ...string) *fakeTarget {
	f := &fakeTarget{name: name}
	f.behave = func(_ context.Context, cfg *dataplane.Config) error {
		n := 0
		for line := range strings.Lines(cfg.Main()) {
			n++
			for _, word := range words {
				if strings.Contains(line, word) {
					return &dataplane.Error{Endpoint: name, Stage: "configuration", File: "haproxy.cfg", Line: n, Status: 400,
						Err: dataplane.ErrInvalid, Output: "unknown keyword '" + word + "'"}
				}
			}
		}
		return nil
	}
	return f
}

func names(text string) string {
	var found []string
	for line := range strings.Lines(text) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "backend "); ok {
			found = append(found, name)
		}
	}
	return strings.Join(found, " ")
}

// has says which Ingresses a target has.
func has(f *fakeTarget) string {
	texts := f.texts()
	if len(texts) == 0 {
		return "nothing"
	}
	return names(texts[len(texts)-1])
}

// history says which Ingresses a target had, one after the other.
func history(f *fakeTarget) (all []string) {
	for _, text := range f.texts() {
		all = append(all, names(text))
	}
	return slices.Compact(all)
}

// failures are those of deployments, not of what instances were asked.
func failures(s *scene) []InstanceDeploymentFailed {
	return slices.DeleteFunc(eventsOf[InstanceDeploymentFailed](s), func(e InstanceDeploymentFailed) bool { return e.Asked })
}

// TestAnInstanceThatRefusesALine: the resource alone is left out, of all, and
// further changes reach everybody.
func TestAnInstanceThatRefusesALine(t *testing.T) {
	w := newWard(t, map[string]string{"haproxy.cfg": loopTemplate})
	w.put("a", "b=too-new", "c")
	one, two := old("one", "too-new"), &fakeTarget{name: "two"}
	opts := w.options()
	opts.Targets = []Target{one, two}
	play(t, opts, func(s *scene) {
		s.Trigger("start")
		pass(5 * time.Second)
		failed := failures(s)
		require.Len(t, failed, 1)
		require.ErrorIs(t, failed[0].Err, dataplane.ErrInvalid)
		require.ErrorContains(t, failed[0].Err, "written by haproxy.cfg:4 for Ingress ns/b (b.yaml:1)")

		require.Equal(t, "b", held(s.Loop))
		q := s.State().Quarantined[0]
		require.Equal(t, []string{"one"}, q.Instances)
		require.Contains(t, q.String(), "one: configuration: haproxy.cfg:5: configuration refused (status 400): unknown keyword 'too-new'")
		require.Contains(t, q.String(), "for Ingress ns/b (b.yaml:1)")
		require.Equal(t, []string{"a c"}, history(one))
		require.Equal(t, []string{"a b c", "a c"}, history(two))
		require.Len(t, eventsOf[ResourceQuarantined](s), 1)
		require.Equal(t, []string{"Warning Quarantined networking.k8s.io/v1 Ingress/b b"}, heads(w.told))
		for _, e := range s.State().Instances {
			require.Zero(t, e.StaleSince, e.Name)
			require.Empty(t, e.Error, e.Name)
			require.Zero(t, e.Failures, e.Name)
			require.Equal(t, s.State().Validated, e.Hash)
		}
		require.Empty(t, eventsOf[ReconciliationFailed](s))

		w.put("d")
		s.Trigger("another")
		pass(5 * time.Second)
		require.Equal(t, "a c d", has(one))
		require.Equal(t, "a c d", has(two))

		w.put("b=fine")
		s.Trigger("b is mended")
		pass(5 * time.Second)
		require.Empty(t, held(s.Loop))
		require.Equal(t, "a b c d", has(one))
		require.Equal(t, "it changed or was deleted", eventsOf[ResourceReleased](s)[0].Reason)
		require.Len(t, failures(s), 1)
	})
}

// TestATrialAtAnInstanceDisturbsNobody: only the instance that refused a resource
// is asked again, with back-off, and when it takes it, so do all.
func TestATrialAtAnInstanceDisturbsNobody(t *testing.T) {
	w := newWard(t, map[string]string{"haproxy.cfg": loopTemplate})
	w.put("a", "b=too-new")
	one, two := old("one", "too-new"), &fakeTarget{name: "two"}
	opts := w.options()
	opts.Targets, opts.DriftInterval = []Target{one, two}, 24*time.Hour
	play(t, opts, func(s *scene) {
		s.Trigger("start")
		pass(5 * time.Second)
		require.Equal(t, "b", held(s.Loop))
		asked, refuse := 0, one.behave
		one.set(0, func(ctx context.Context, cfg *dataplane.Config) error {
			err := refuse(ctx, cfg)
			if err != nil {
				asked++
			}
			return err
		})
		w.counted()
		pass(10 * time.Minute)
		require.Equal(t, 3, asked, "at 1, 3 and 7 minutes")
		require.Equal(t, 3, s.State().Quarantined[0].Trials)
		renders, _ := w.counted()
		require.Equal(t, 9, renders, "at each: that of all, that which is tried, and one that concludes")
		require.Equal(t, []string{"a b", "a"}, history(two))
		require.Equal(t, []string{"a"}, history(one))
		require.Len(t, failures(s), 1)
		require.Len(t, eventsOf[ResourceQuarantined](s), 1)
		require.Len(t, w.told, 1)

		one.set(0, nil) // another version
		pass(10 * time.Minute)
		require.Empty(t, held(s.Loop))
		require.Equal(t, []string{"a", "a b"}, history(one))
		require.Equal(t, []string{"a b", "a", "a b"}, history(two))
		require.Equal(t, "no instance refuses it any more", eventsOf[ResourceReleased](s)[0].Reason)
		for _, e := range s.State().Instances {
			require.Zero(t, e.StaleSince, e.Name)
		}
	})
}

// TestWhatInstancesRefuse is a table of what instances refuse, and of what comes
// of it.
func TestWhatInstancesRefuse(t *testing.T) {
	many := func(n int, text string) (all []string) {
		for i := range n {
			all = append(all, fmt.Sprintf("web-%02d=%s", i, text))
		}
		return all
	}
	fail := func(err error) *fakeTarget {
		return &fakeTarget{name: "one", behave: func(context.Context, *dataplane.Config) error { return err }}
	}
	at := func(stage string, status int, err error) error {
		return &dataplane.Error{Endpoint: "one", Stage: stage, File: "haproxy.cfg", Line: 5, Status: status, Err: err}
	}
	for name, c := range map[string]struct {
		put   []string
		one   *fakeTarget
		opts  func(*Options)
		held  string // in the end
		has   string // the instance
		error string // of the instance
	}{
		"one of two":      {put: []string{"a", "b=x"}, one: old("one", "x"), held: "b", has: "a"},
		"two of three":    {put: []string{"a=x", "b", "c=x"}, one: old("one", "x"), held: "a c", has: "b"},
		"for two reasons": {put: []string{"a=x", "b", "c=y"}, one: old("one", "x", "y"), held: "a c", has: "b"},
		"every one of a kind is the template's": {put: []string{"a=x", "b=x"}, one: old("one", "x"), has: "nothing",
			error: "haproxy.cfg:4 is refused for every Ingress, so the template is to blame"},
		"the only one":     {put: []string{"a=x"}, one: old("one", "x"), has: "nothing", error: "the template is to blame"},
		"outside of all":   {put: []string{"a", "b"}, one: old("one", "global"), has: "nothing", error: "unknown keyword 'global'"},
		"most that may be": {put: append(many(10, "x"), "z"), one: old("one", "x"), held: "web-00 web-01 web-02 web-03 web-04 web-05 web-06 web-07 web-08 web-09", has: "z"},
		"too many": {put: append(many(11, "x"), "z"), one: old("one", "x"), has: "nothing",
			error: "it refuses more than may be left out at once"},
		"whatever it gets": {put: []string{"a", "b", "c"}, one: fail(at("configuration", 400, dataplane.ErrInvalid)), has: "nothing",
			error: "configuration refused"},
		"turned off": {put: []string{"a", "b=x"}, one: old("one", "x"), opts: func(o *Options) { o.NoQuarantine = true },
			has: "nothing", error: "for Ingress ns/b"},
		"what it does not support": {put: []string{"a", "b"}, one: &fakeTarget{name: "one", behave: func(_ context.Context, cfg *dataplane.Config) error {
			if !strings.Contains(cfg.Main(), "backend b") {
				return nil
			}
			return &dataplane.Error{Endpoint: "one", Stage: "check", File: "haproxy.cfg", Line: 4, Err: dataplane.ErrUnsupported}
		}}, held: "b", has: "a"},
		"a full disk":      {put: []string{"a", "b"}, one: fail(at("files", 507, errors.New("no space left on device"))), has: "nothing", error: "no space"},
		"a failed reload":  {put: []string{"a", "b"}, one: fail(at("reload", 400, dataplane.ErrReload)), has: "nothing", error: "for Ingress ns/b"},
		"a time-out":       {put: []string{"a", "b"}, one: fail(at("reload", 0, context.DeadlineExceeded)), has: "nothing", error: "deadline"},
		"credentials":      {put: []string{"a", "b"}, one: fail(at("probe", 401, dataplane.ErrUnauthorized)), has: "nothing", error: "401"},
		"its version":      {put: []string{"a", "b"}, one: fail(&dataplane.Error{Stage: "probe", Err: dataplane.ErrUnsupported}), has: "nothing", error: "not supported"},
		"without a line":   {put: []string{"a", "b"}, one: fail(&dataplane.Error{Stage: "configuration", File: "haproxy.cfg", Err: dataplane.ErrInvalid}), has: "nothing", error: "refused"},
		"no such line":     {put: []string{"a", "b"}, one: fail(&dataplane.Error{File: "haproxy.cfg", Line: 999, Err: dataplane.ErrInvalid}), has: "nothing", error: "refused"},
		"nobody's renders": {put: []string{"a", "b=x"}, one: old("one", "x"), opts: func(o *Options) { r := o.Renderer; o.Renderer = deaf{r} }, has: "nothing", error: "for Ingress ns/b"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWard(t, map[string]string{"haproxy.cfg": loopTemplate})
			w.put(c.put...)
			two := &fakeTarget{name: "two"}
			opts := w.options()
			opts.Targets = []Target{c.one, two}
			if c.opts != nil {
				c.opts(&opts)
			}
			play(t, opts, func(s *scene) {
				s.Trigger("start")
				pass(59 * time.Second)
				require.Equal(t, c.held, held(s.Loop))
				require.Equal(t, c.has, has(c.one))
				if c.error == "" {
					require.Empty(t, s.State().Instances[0].Error)
					require.Equal(t, has(c.one), has(two))
					require.Len(t, history(two), 2, "one change for all of it")
					return
				}
				require.Contains(t, s.State().Instances[0].Error, c.error)
				require.Len(t, history(two), 1, "others are not disturbed")
				require.Empty(t, w.told)
				w.counted()
				pass(10 * time.Minute)
				renders, _ := w.counted()
				require.LessOrEqual(t, renders, 80, "it does not search all the time")
				require.Len(t, history(two), 1)
			})
		})
	}
}

// deaf is a renderer that leaves nothing out.
type deaf struct{ Renderer }

func (d deaf) Render(ctx context.Context) (*Rendered, error) {
	return d.Renderer.Render(WithExcluded(ctx))
}
