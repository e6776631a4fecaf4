package store

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// entry is a version of an object of a namespace of its own.
func entry(name, uid, version string, keys ...string) *Entry {
	for i, k := range keys {
		keys[i] = Key(k)
	}
	return NewEntry(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: name, UID: types.UID(uid), ResourceVersion: version,
	}, Data: map[string]string{"version": version}}, keys)
}

func found(s *Snapshot, keys ...string) (text string) {
	s.Find(keys, func(o Object) bool {
		text += o.GetName() + o.GetResourceVersion() + " "
		return true
	})
	return text
}

// TestChange: what each step counts, and what is found after it.
func TestChange(t *testing.T) {
	s := New(true)
	for i, step := range []struct {
		do                         func() Change
		created, modified, deleted int
		revision                   uint64
		a, b, all                  string // found by key
	}{
		{func() Change { return s.Put(entry("x", "1", "1", "a")) }, 1, 0, 0, 1, "x1 ", "", "x1 "},
		{func() Change { return s.Put(entry("x", "1", "1", "b")) }, 0, 0, 0, 1, "x1 ", "", "x1 "}, // the same version
		{func() Change { return s.Put(entry("x", "1", "2", "b", "a", "b")) }, 0, 1, 0, 2, "x2 ", "x2 ", "x2 "},
		{func() Change { return s.Put(entry("x", "2", "3", "b")) }, 1, 0, 1, 3, "", "x3 ", "x3 "},
		{func() Change { return s.Put(entry("w", "3", "", "b")) }, 1, 0, 0, 4, "", "w x3 ", "w x3 "},
		{func() Change { return s.Put(entry("w", "3", "", "b")) }, 0, 0, 0, 4, "", "w x3 ", "w x3 "},      // the same content
		{func() Change { return s.Put(entry("w", "3", "", "c", "b")) }, 0, 1, 0, 5, "", "w x3 ", "w x3 "}, // other keys
		{func() Change { return s.Remove("ns", "gone") }, 0, 0, 0, 5, "", "w x3 ", "w x3 "},
		{func() Change { return s.Remove("ns", "x") }, 0, 0, 1, 6, "", "w ", "w "},
		{func() Change {
			return s.Replace([]*Entry{entry("x", "4", "7", "a"), entry("y", "5", "7", "a"), entry("y", "5", "8", "b")})
		}, 2, 0, 1, 7, "x7 ", "y8 ", "x7 y8 "},
		{func() Change { return s.Replace([]*Entry{entry("y", "5", "8", "a"), entry("x", "4", "7", "b")}) }, 0, 0, 0, 7, "x7 ", "y8 ", "x7 y8 "},
		{func() Change { return s.Replace([]*Entry{entry("y", "6", "9", "a"), entry("x", "4", "8", "b")}) }, 1, 1, 1, 8, "y9 ", "x8 ", "y9 x8 "},
		{func() Change { return s.Replace(nil) }, 0, 0, 2, 9, "", "", ""},
	} {
		if got, want := step.do(), (Change{step.created, step.modified, step.deleted, step.revision}); got != want {
			t.Errorf("step %d: %+v, want %+v", i, got, want)
		}
		now := s.Snapshot()
		if a, b, all := found(now, "a"), found(now, "b"), found(now); a != step.a || b != step.b || all != step.all {
			t.Errorf("step %d: found %q, %q and %q, want %q, %q and %q", i, a, b, all, step.a, step.b, step.all)
		}
		if now.Revision() != step.revision || now != s.Snapshot() || now.Len() != s.Len() {
			t.Errorf("step %d: %d objects at %d", i, now.Len(), now.Revision())
		}
	}
}

// TestSameVersionStays: a list that tells nothing new changes no object.
func TestSameVersionStays(t *testing.T) {
	s := New(false)
	s.Put(entry("x", "1", "1"))
	first := s.Get("ns", "x")
	s.Replace([]*Entry{entry("x", "1", "1"), entry("y", "2", "2")})
	require.Same(t, first, s.Get("ns", "x"), "the same version is another object")
}

// TestSameContentStays: an update or a list with nothing new but the resource version keeps
// the object that readers have. Metadata alone does not tell whether the content is the same.
func TestSameContentStays(t *testing.T) {
	meta := func(version string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "ns", Name: "x", UID: "1", ResourceVersion: version}
	}
	for name, c := range map[string]struct {
		make  func(version, data string) Object
		stays bool
	}{
		"typed": {func(version, data string) Object {
			return &corev1.ConfigMap{ObjectMeta: meta(version), Data: map[string]string{"a": data}}
		}, true},
		"unstructured": {func(version, data string) Object {
			return &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"resourceVersion": data},
				"metadata": map[string]any{"namespace": "ns", "name": "x", "uid": "1", "resourceVersion": version}}}
		}, true},
		"metadata alone": {func(version, _ string) Object { return &metav1.PartialObjectMetadata{ObjectMeta: meta(version)} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := New(false)
			s.Put(NewEntry(c.make("1", "a"), nil))
			first := s.Get("ns", "x").Object()
			for i, put := range []func() Change{
				func() Change { return s.Put(NewEntry(c.make("2", "a"), nil)) },
				func() Change { return s.Replace([]*Entry{NewEntry(c.make("3", "a"), nil)}) },
			} {
				require.Equal(t, c.stays, put().Total() == 0, "step %d", i)
				require.Equal(t, c.stays, (s.Get("ns", "x").Object() == first))
			}
			require.Equal(t, 1, s.Put(NewEntry(c.make("4", "b"), nil)).Modified, "a new content")
			require.Equal(t, "4", s.Get("ns", "x").Object().GetResourceVersion(), "a new content")
		})
	}
}

// TestSnapshotsAreOneInstant: two stores that change in turns are never more than
// one apart, in whatever order they are read.
func TestSnapshotsAreOneInstant(t *testing.T) {
	a, b := New(false), New(true)
	var writing, reading sync.WaitGroup
	writing.Go(func() {
		for i := range 2000 {
			a.Put(entry(fmt.Sprint(i), "1", "1"))
			b.Put(entry(fmt.Sprint(i), "1", "1", "k"))
		}
	})
	for n := range 3 {
		reading.Go(func() {
			for range 500 {
				snaps := Snapshots([][]*Store{{a, b}, {b, a}, {b, a, b}}[n]...)
				if n == 0 {
					snaps[0], snaps[1] = snaps[1], snaps[0]
				}
				if d := snaps[1].Len() - snaps[0].Len(); d != 0 && d != 1 {
					t.Errorf("%d objects of one are not in the other", d)
				}
			}
		})
	}
	writing.Wait()
	reading.Wait()
}
