package quarantine

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hapticsdk/haptic/internal/rendering"
	"github.com/hapticsdk/haptic/internal/viewtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// cluster is a list of objects with a text each, as "space/name=text".
type cluster struct {
	viewtest.View
	objs    []*corev1.ConfigMap
	version int
}

func newCluster() *cluster {
	c := &cluster{}
	c.KeyOf = keyOf
	c.List = func() (all []any) {
		for _, o := range c.objs {
			all = append(all, o)
		}
		return all
	}
	return c
}

func keyOf(obj any) (Key, bool) {
	o, ok := obj.(*corev1.ConfigMap)
	if !ok {
		return Key{}, false
	}
	return Key{Kind: "ConfigMap", Namespace: o.Namespace, Name: o.Name}, true
}

// put writes objects, or deletes those without a text.
func (c *cluster) put(all string) {
	for _, one := range strings.Fields(all) {
		path, text, _ := strings.Cut(one, "=")
		space, name, _ := strings.Cut(path, "/")
		i := slices.IndexFunc(c.objs, func(o *corev1.ConfigMap) bool { return o.Namespace == space && o.Name == name })
		if text == "" {
			c.objs = slices.Delete(slices.Clone(c.objs), i, i+1)
			continue
		}
		c.version++
		o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: name, UID: types.UID(fmt.Sprint(c.version)), ResourceVersion: fmt.Sprint(c.version)},
			Data: map[string]string{"text": text}}
		c.objs = slices.Clone(c.objs)
		if i >= 0 {
			o.UID = c.objs[i].UID
			c.objs[i] = o
		} else {
			c.objs = append(c.objs, o)
		}
	}
}

func textOf(o any) string {
	if o == nil {
		return ""
	}
	return o.(*corev1.ConfigMap).Data["text"]
}

// faults are what is wrong with objects: each "bad" one, each that "needs:NAME" without an
// object of that name, and all together where one is "blind", which no fault names.
func faults(objects rendering.Objects) (all []Fault) {
	names := map[string]bool{}
	for o := range objects.All() {
		names[o.(*corev1.ConfigMap).Name] = true
	}
	for o := range objects.All() {
		switch text := textOf(o); {
		case strings.HasPrefix(text, "bad"), strings.HasPrefix(text, "needs:") && !names[strings.TrimPrefix(text, "needs:")]:
			all = append(all, Fault{Objects: []any{o}, Kind: textOf(o), About: textOf(o)})
		case strings.HasPrefix(text, "blind"):
			return []Fault{{About: "blind"}}
		}
	}
	return all
}

// one is a quarantine with its cluster at some time.
type one struct {
	*cluster
	q       *Quarantine
	now     time.Time
	tries   int
	changes []string
}

func newOne() *one {
	return &one{cluster: newCluster(), now: time.Unix(0, 0), q: New(Options{Tries: 10, Base: time.Minute, Max: time.Hour, KeyOf: keyOf})}
}

// reconcile searches, and reports whether something is valid.
func (o *one) reconcile() bool {
	s := o.q.Begin(o.Newest(), o.now)
	o.note(s.Gone)
	for {
		o.tries++
		objects := s.Objects()
		all := faults(objects)
		if len(all) == 0 {
			o.note(s.Valid(objects, o.now))
			return true
		}
		if !s.Failed(all) {
			return false
		}
	}
}

// trials tries what is due.
func (o *one) trials() {
	for t := o.q.Trial(o.now); t != nil; t = o.q.Trial(o.now) {
		o.tries++
		if all := faults(t.Objects()); len(all) > 0 {
			o.note(t.Failed(all, o.now))
		} else {
			o.note(t.Passed(o.now))
		}
	}
}

func (o *one) note(changes []Change) {
	for _, c := range changes {
		word := "in"
		if c.Reason != "" {
			word = "out"
		}
		o.changes = append(o.changes, word+" "+c.Namespace+"/"+c.Name)
	}
}

// served are the objects that renders read.
func (o *one) served() string {
	var all []string
	for obj := range o.q.Good().All() {
		m := obj.(*corev1.ConfigMap)
		all = append(all, m.Namespace+"/"+m.Name+"="+textOf(m))
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func (o *one) held() string {
	var all []string
	for _, h := range o.q.All() {
		all = append(all, fmt.Sprintf("%s/%s %s", h.Namespace, h.Name, map[Status]string{HeldBack: "held back", Quarantined: "quarantined"}[h.Status]))
	}
	return strings.Join(all, ", ")
}

// TestStates is the truth table: what happens to an object, and in which state it is then.
func TestStates(t *testing.T) {
	for name, c := range map[string]struct {
		before, change string
		after          time.Duration // until the trials
		served, held   string
		tries          int
	}{
		"nothing is wrong":              {"a/x=1 b/y=1", "a/x=2", 0, "a/x=2 b/y=1", "", 1},
		"a change is bad":               {"a/x=1 b/y=1", "a/x=bad", 0, "a/x=1 b/y=1", "a/x quarantined", 2},
		"it is new":                     {"b/y=1", "a/x=bad", 0, "b/y=1", "a/x quarantined", 2},
		"several":                       {"a/x=1 b/y=1", "a/x=bad b/y=bad b/z=3", 0, "a/x=1 b/y=1 b/z=3", "a/x quarantined, b/y quarantined", 2},
		"no line, one change":           {"a/x=1 b/y=1", "a/x=blind", 0, "a/x=1 b/y=1", "a/x quarantined", 2},
		"no line, several":              {"a/x=1 b/y=1 b/z=1", "a/x=blind b/y=2 b/z=2", 0, "a/x=1 b/y=2 b/z=2", "a/x quarantined", 4},
		"no line, halves":               {"a/w=1", "a/p=1 a/q=1 a/r=blind a/s=1", 0, "a/p=1 a/q=1 a/s=1 a/w=1", "a/r quarantined", 5},
		"unchanged, needs what is gone": {"a/x=needs:k a/k=1 b/y=1", "a/k= b/y=2", 0, "b/y=2", "a/x quarantined", 2},
		"it does not change":            {"a/x=1", "a/x=bad", time.Minute, "a/x=1", "a/x quarantined", 3},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOne()
			o.put(c.before)
			require.True(t, o.reconcile())
			o.put(c.change)
			o.tries = 0
			require.True(t, o.reconcile())
			o.now = o.now.Add(c.after)
			o.trials()
			require.Equal(t, c.served, o.served())
			require.Equal(t, c.held, o.held())
			require.Equal(t, c.tries, o.tries, "attempts")
		})
	}
}

// TestStory follows an object from its fault to its release, and back.
func TestStory(t *testing.T) {
	o := newOne()
	act := func(change string) string {
		o.put(change)
		o.changes = nil
		require.True(t, o.reconcile())
		o.trials()
		return strings.Join(o.changes, ", ")
	}
	require.Empty(t, act("a/x=1 a/y=1"))
	require.Equal(t, "in a/x", act("a/x=bad"))
	require.Equal(t, "in a/x", act("a/x=bad2"), "another version")
	require.Empty(t, act("a/x=2"), "after a relapse it waits a second")
	o.now = o.now.Add(time.Second)
	require.Equal(t, "out a/x", act("a/y=1"))
	require.Empty(t, o.held())
	require.Equal(t, "in a/x", act("a/x=bad"))
	require.Empty(t, act("a/x=3"), "it waits")
	require.Equal(t, "a/x=2 a/y=1", o.served())
	o.now = o.now.Add(time.Minute)
	require.Equal(t, "out a/x", act("a/y=2"))
	require.Equal(t, "a/x=3 a/y=2", o.served())
	require.Equal(t, "in a/x", act("a/x=bad"))
	require.Equal(t, "out a/x", act("a/x="), "deleted")
	require.Equal(t, "a/y=2", o.served())
}

// TestReadsChange: what an object was rendered with changes, and it is tried at once.
func TestReadsChange(t *testing.T) {
	o := newOne()
	o.put("a/x=1 a/k=1")
	require.True(t, o.reconcile())
	x, k := o.Newest().Get(Key{Kind: "ConfigMap", Namespace: "a", Name: "x"}), o.Newest().Get(Key{Kind: "ConfigMap", Namespace: "a", Name: "k"})
	o.q.Refuse(Key{Kind: "ConfigMap", Namespace: "a", Name: "x"}, x, nil, Fault{Objects: []any{x, k}}, "one", o.now)
	require.True(t, o.reconcile())
	require.Nil(t, o.q.Trial(o.now))
	o.put("a/k=2")
	require.True(t, o.reconcile())
	require.Equal(t, "a/k=2", o.served())
	o.trials()
	require.Equal(t, "a/k=2 a/x=1", o.served())
}

// TestInstances: what an instance refuses is held for all, until no instance refuses it.
func TestInstances(t *testing.T) {
	o := newOne()
	o.put("a/x=1 b/y=1")
	require.True(t, o.reconcile())
	good := o.Newest().Get(Key{Kind: "ConfigMap", Namespace: "a", Name: "x"})
	o.put("a/x=2")
	require.True(t, o.reconcile())
	key := Key{Kind: "ConfigMap", Namespace: "a", Name: "x"}
	require.Len(t, o.q.Refuse(key, o.Newest().Get(key), good, Fault{}, "one", o.now), 1)
	o.q.AlsoRefuse(key, o.Newest().Get(key), "two")
	require.True(t, o.reconcile())
	require.Equal(t, "a/x=1 b/y=1", o.served(), "the version that the instance has")
	o.q.Withdraw("one")
	require.Nil(t, o.q.Trial(o.now))
	require.Equal(t, []string{"two"}, o.q.Get(key).Instances)
	o.q.AlsoRefuse(key, good, "two") // that version, too
	require.True(t, o.reconcile())
	require.Equal(t, "b/y=1", o.served())
	o.q.Withdraw("two")
	o.trials()
	require.Equal(t, "a/x=2 b/y=1", o.served())
}

// TestTemplatesAreAtFault: nothing is valid, and everything stays.
func TestTemplatesAreAtFault(t *testing.T) {
	q := New(Options{Tries: 10, Base: time.Minute, Max: time.Hour, KeyOf: keyOf})
	c := newCluster()
	c.put("a/x=1 b/y=1")
	for _, all := range [][]Fault{
		{{About: "outside of all"}},
		{{Objects: []any{c.objs[0]}, Place: "t:1"}, {Objects: []any{c.objs[1]}, Place: "t:1"}},
	} {
		s, rounds := q.Begin(c.Newest(), time.Now()), 0
		for s.Failed(all) {
			rounds++
			require.Less(t, rounds, 20)
		}
		require.Contains(t, s.Why, "correct the template")
		require.Empty(t, q.All())
	}
}

// TestLastResort: what is valid with nothing held back frees what the search held back, too.
func TestLastResort(t *testing.T) {
	o := newOne()
	o.put("a/x=bad b/z=1")
	require.True(t, o.reconcile())
	o.put("a/x=1 a/y=1")
	s := o.q.Begin(o.Newest(), o.now)
	for again := s.Failed([]Fault{{Objects: []any{o.Newest().Get(Key{Kind: "ConfigMap", Namespace: "a", Name: "y"})}}}); s.Held() > 0; again = s.Failed([]Fault{{}}) {
		require.True(t, again)
	}
	require.Len(t, s.Valid(s.Objects(), o.now), 1)
	require.Empty(t, o.held())
	require.True(t, o.reconcile())
	require.Equal(t, "a/x=1 a/y=1 b/z=1", o.served())
}

// TestTurns: the namespaces take turns, and what is cut waits longer each time.
func TestTurns(t *testing.T) {
	o := newOne()
	o.put("z/0=1")
	require.True(t, o.reconcile())
	o.put("a/x=blind b/x=1 c/x=1 c/y=1")
	require.True(t, o.reconcile())
	var turns []string
	for range 3 {
		tr := o.q.Trial(o.now)
		turns = append(turns, tr.Keys[0].Namespace)
		tr.Cut(o.now)
	}
	require.Equal(t, "[a b c]", fmt.Sprint(turns))
	require.Nil(t, o.q.Trial(o.now))
	require.Equal(t, o.now.Add(time.Second), o.q.Next())
	o.now = o.now.Add(time.Second)
	o.trials()
	require.Equal(t, "a/x quarantined", o.held())
	require.Equal(t, "b/x=1 c/x=1 c/y=1 z/0=1", o.served())
}
