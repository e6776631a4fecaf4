package watchtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hapticsdk/haptic/k8swatch"
)

// ModelOptions are the options of [Model].
type ModelOptions struct {
	Seed   uint64 // of all random decisions
	Rounds int    // quiet points
	Steps  int    // the most changes between two quiet points

	// Faults begin at random between changes, in rounds with faults. Each returns a
	// function that ends it, or nil. Model ends all faults before a quiet point.
	Faults []func(*rand.Rand) (end func())

	// Removals are faults that delete all objects. They are over when they return.
	Removals []func(*rand.Rand)
}

const (
	team  = "haptic.dev/team"
	names = 12 // few: the model reuses the names of deleted objects
)

// model runs three kinds of watchers beside random changes.
type model struct {
	*testing.T
	server  Server
	opts    ModelOptions
	rand    *rand.Rand
	bulk    *k8swatch.Watcher
	single  *k8swatch.Single[*corev1.ConfigMap]
	cached  *k8swatch.Cached[*corev1.ConfigMap]
	applied map[string]bool
	want    k8swatch.Changes // of this round

	mu       sync.Mutex
	reported k8swatch.Changes
	revision k8swatch.Revision
	versions map[string]string // of the reported objects
	last     *corev1.ConfigMap // the last report of the single watcher
	broken   error
}

// Model makes random changes and faults. At each quiet point it compares three watchers
// with a fresh list of the server: one with two index paths, a single watcher and a cached
// store. A failure names the seed, which repeats it.
func Model(t *testing.T, s Server, opts ModelOptions) {
	t.Helper()
	m := &model{T: t, server: s, opts: opts, rand: rand.New(rand.NewPCG(opts.Seed, 0)), applied: map[string]bool{}, versions: map[string]string{}}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("seed %d", opts.Seed)
		}
	})
	for range m.rand.IntN(names) {
		m.change()
	}
	m.begin()
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	for _, run := range []func(context.Context) error{m.bulk.Run, m.single.Run, m.cached.Run} {
		running.Go(func() {
			if err := run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	m.quiet(0, false)
	for round := 1; round <= opts.Rounds && !t.Failed(); round++ {
		m.round(round)
	}
}

// begin makes the watchers.
func (m *model) begin() {
	must := func(err error) {
		if err != nil {
			m.Fatal(err)
		}
	}
	ns, noStream := m.server.Namespace(), m.rand.IntN(2) == 0
	var err error
	m.bulk, err = k8swatch.New(m.server.Source(), ConfigMaps, &k8swatch.Options{
		Namespace: ns, IndexBy: []string{"metadata.labels['" + team + "']", "data.*"}, NoWatchList: noStream,
		Debounce: -1, CallOnChangeDuringSync: true, OnChange: m.onChange,
	})
	must(err)
	m.single, err = k8swatch.NewSingle(m.server.Source(), ConfigMaps, ns, "n0", &k8swatch.SingleOptions[*corev1.ConfigMap]{
		NoWatchList: noStream, OnChange: m.onSingle,
	})
	must(err)
	m.cached, err = k8swatch.NewCached[*corev1.ConfigMap](m.server.Source(), ConfigMaps, &k8swatch.CachedOptions{
		Namespace: ns, IndexBy: []string{"metadata.labels['" + team + "']"}, NoWatchList: noStream, MaxBytes: 1000,
	})
	must(err)
}

func (m *model) onChange(_ context.Context, c k8swatch.Changes) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c.From != m.revision || c.To < c.From || (c.To == c.From) != (c.Total() == 0) || c.Snapshot.Revision() != c.To {
		m.broken = fmt.Errorf("changes from revision %d to %d after %d", c.From, c.To, m.revision)
	}
	m.revision = c.To
	m.reported.Created += c.Created
	m.reported.Modified += c.Modified
	m.reported.Deleted += c.Deleted
	m.follow(c)
	return nil
}

// follow keeps the versions of objects from the reported changes alone.
func (m *model) follow(c k8swatch.Changes) {
	now := c.Snapshot.Resource(ConfigMaps)
	for _, o := range c.Objects {
		if delete(m.versions, o.Name); o.Kind != k8swatch.Deleted {
			m.versions[o.Name] = now.ByName(o.Namespace, o.Name).GetResourceVersion()
		}
	}
	have := map[string]string{}
	for o := range now.All() {
		have[o.GetName()] = o.GetResourceVersion()
	}
	if diff := cmp.Diff(have, m.versions); diff != "" || c.More > 0 {
		m.broken = fmt.Errorf("what was told of objects, without %d, (-snapshot +told):\n%s", c.More, diff)
	}
}

func (m *model) onSingle(_ context.Context, c k8swatch.SingleChange[*corev1.ConfigMap]) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case c.Deleted != (c.Object == nil), c.Created && c.Deleted:
		m.broken = fmt.Errorf("the single watcher tells %+v", c)
	case !c.Initial && c.Created != (m.last == nil && c.Object != nil):
		m.broken = fmt.Errorf("the single watcher tells %+v after %+v", c, m.last)
	}
	m.last = c.Object
	return nil
}

// change creates, updates, moves to other keys or deletes an object.
func (m *model) change() {
	name := fmt.Sprint("n", m.rand.IntN(names))
	if m.applied[name] && m.rand.IntN(3) == 0 {
		if err := m.server.Delete(m.Context(), name); err != nil {
			m.Fatal(err)
		}
		delete(m.applied, name)
		m.want.Deleted++
		return
	}
	cm := configMap(m.server, name, nil)
	if n := m.rand.IntN(4); n > 0 {
		cm.Labels = map[string]string{team: fmt.Sprint("t", n)}
	}
	cm.Data = map[string]string{"serial": fmt.Sprint(m.rand.Uint32())} // makes each update a change
	for i := range m.rand.IntN(3) {
		cm.Data[fmt.Sprint("k", i)] = fmt.Sprint("v", m.rand.IntN(3))
	}
	if err := m.server.Apply(m.Context(), cm); err != nil {
		m.Fatal(err)
	}
	if m.applied[name] {
		m.want.Modified++
	} else {
		m.want.Created++
	}
	m.applied[name] = true
}

// round makes changes, with faults in two of three rounds.
func (m *model) round(n int) {
	m.want = k8swatch.Changes{}
	m.mu.Lock()
	m.reported = k8swatch.Changes{}
	m.mu.Unlock()
	faulty := len(m.opts.Faults) > 0 && m.rand.IntN(3) > 0
	var ends []func()
	for range 1 + m.rand.IntN(m.opts.Steps) {
		if faulty && m.rand.IntN(4) == 0 {
			if end := m.opts.Faults[m.rand.IntN(len(m.opts.Faults))](m.rand); end != nil {
				ends = append(ends, end)
			}
		}
		if faulty && len(m.opts.Removals) > 0 && m.rand.IntN(20) == 0 {
			m.opts.Removals[m.rand.IntN(len(m.opts.Removals))](m.rand)
			m.want.Deleted += len(m.applied)
			clear(m.applied)
		}
		if m.rand.IntN(20) == 0 {
			m.bulk.ForceSync()
			faulty = true // a list that finds a change may have found two
		}
		m.change()
	}
	for _, end := range slices.Backward(ends) {
		end()
	}
	m.quiet(n, !faulty)
}

// quiet waits until the watchers have all changes, and compares.
func (m *model) quiet(round int, exact bool) {
	m.Helper()
	if err := m.server.Settle(func() error { return m.compare(exact) }); err != nil {
		m.Errorf("seed %d, round %d: %v", m.opts.Seed, round, err)
	}
}

// fresh lists the objects of the server.
func (m *model) fresh() ([]*corev1.ConfigMap, error) {
	lw, err := m.server.Source().ListWatch(ConfigMaps, m.server.Namespace(), nil)
	if err != nil {
		return nil, err
	}
	list, err := lw.ListWithContext(m.Context(), metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return nil, err
	}
	objs := make([]*corev1.ConfigMap, len(items))
	for i, item := range items {
		objs[i] = item.(*corev1.ConfigMap)
		objs[i].ManagedFields = nil
		objs[i].Kind, objs[i].APIVersion = "ConfigMap", "v1"
	}
	return objs, nil
}

func (m *model) compare(exact bool) error {
	fresh, err := m.fresh()
	if err != nil {
		return err
	}
	if s := m.bulk.State(); s.Phase != k8swatch.PhaseSynced || s.Refused > 0 {
		return fmt.Errorf("state %+v", s)
	}
	snap := m.bulk.Snapshot()
	r := k8swatch.Read[*corev1.ConfigMap](snap)
	if diff := cmp.Diff(fresh, r.List()); diff != "" {
		return fmt.Errorf("the store is not the list (-list +store):\n%s", diff)
	}
	return errors.Join(m.compareIndex(r, fresh), m.compareChanges(snap, len(fresh), exact), m.compareSingle(fresh), m.compareCached(fresh))
}

// compareIndex looks up every key that objects have or could have.
func (m *model) compareIndex(r k8swatch.Reader[*corev1.ConfigMap], fresh []*corev1.ConfigMap) error {
	values := map[string]bool{"none": true}
	for _, o := range fresh {
		for _, v := range o.Data {
			values[v] = true
		}
	}
	for _, t := range []string{"", "t1", "t2", "t3", "t4"} {
		inTeam := func(o *corev1.ConfigMap) bool { return o.Labels[team] == t }
		if err := same(r.Get(t), fresh, inTeam, false); err != nil {
			return fmt.Errorf("Get(%q): %w", t, err)
		}
		for v := range values {
			has := func(o *corev1.ConfigMap) bool {
				for _, have := range o.Data {
					if have == v {
						return inTeam(o)
					}
				}
				return false
			}
			if err := same(r.Get(t, v), fresh, has, true); err != nil {
				return fmt.Errorf("Get(%q, %q): %w", t, v, err)
			}
		}
	}
	return nil
}

// same compares a look-up with a scan of the list. A look-up by a prefix has the order of
// the keys.
func same(got, list []*corev1.ConfigMap, match func(*corev1.ConfigMap) bool, ordered bool) error {
	var have, want []string
	for _, o := range got {
		have = append(have, o.Name+" "+o.ResourceVersion)
	}
	for _, o := range list {
		if match(o) {
			want = append(want, o.Name+" "+o.ResourceVersion)
		}
	}
	if !ordered {
		slices.Sort(have)
		slices.Sort(want)
	}
	if !slices.Equal(have, want) {
		return fmt.Errorf("found %q, want %q", have, want)
	}
	return nil
}

func (m *model) compareChanges(snap *k8swatch.Snapshot, n int, exact bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.broken != nil {
		return m.broken
	}
	if m.revision != snap.Revision() {
		return fmt.Errorf("told up to revision %d of %d", m.revision, snap.Revision())
	}
	got, want := m.reported, m.want
	if exact && (got.Created != want.Created || got.Modified != want.Modified || got.Deleted != want.Deleted) {
		return fmt.Errorf("told %+v, want %+v", got, want)
	}
	// An object created and deleted unseen is in neither number.
	if got.Created-got.Deleted != want.Created-want.Deleted || got.Created > want.Created || got.Deleted > want.Deleted {
		return fmt.Errorf("told %+v of %+v, which does not add up to %d objects", got, want, n)
	}
	return nil
}

func (m *model) compareSingle(fresh []*corev1.ConfigMap) error {
	var want *corev1.ConfigMap
	if i := slices.IndexFunc(fresh, func(o *corev1.ConfigMap) bool { return o.Name == "n0" }); i >= 0 {
		want = fresh[i]
	}
	got, _ := m.single.Get()
	if diff := cmp.Diff(want, got); diff != "" {
		return fmt.Errorf("the single watcher (-list +single):\n%s", diff)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if diff := cmp.Diff(want, m.last); diff != "" {
		return fmt.Errorf("what the single watcher told (-list +told):\n%s", diff)
	}
	return nil
}

func (m *model) compareCached(fresh []*corev1.ConfigMap) error {
	all, err := m.cached.List(m.Context())
	if err != nil {
		return err
	}
	slices.SortFunc(all, func(a, b *corev1.ConfigMap) int { return strings.Compare(a.Name, b.Name) })
	if diff := cmp.Diff(fresh, all); diff != "" {
		return fmt.Errorf("the cached store (-list +cached):\n%s", diff)
	}
	found, err := m.cached.Get(m.Context(), "t1")
	if err != nil {
		return err
	}
	if s := m.cached.Stats(); s.Bytes > 1000 {
		return fmt.Errorf("more is kept than may be: %+v", s)
	}
	return same(found, fresh, func(o *corev1.ConfigMap) bool { return o.Labels[team] == "t1" }, true)
}
