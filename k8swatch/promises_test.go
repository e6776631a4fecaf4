package k8swatch_test

import (
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/k8swatch/k8swatchtest"
)

// TestIgnoreAPosition: dropping the first element is not done twice.
func TestIgnoreAPosition(t *testing.T) {
	for _, noStream := range []bool{false, true} {
		t.Run(fmt.Sprintf("NoWatchList=%v", noStream), func(t *testing.T) {
			src := k8swatchtest.NewSource(ingress("shop", "web", "a.test", "b.test", "c.test"))
			w := mustNew(t, src, ingresses, &k8swatch.Options{IgnoreFields: []string{"spec.rules[0]"}, NoWatchList: noStream})
			start(t, w)
			synced(t, w, 1)
			hosts := func() (all string) {
				for _, r := range k8swatch.Read[*networkingv1.Ingress](w.Snapshot()).GetSingle("shop", "web").Spec.Rules {
					all += r.Host + " "
				}
				return all
			}
			require.Equal(t, "b.test c.test ", hosts(), "listed")
			src.Apply(ingress("shop", "web", "d.test", "e.test", "f.test"))
			eventually(t, "the change is stored", func() bool { return w.Snapshot().Revision() == 2 })
			require.Equal(t, "e.test f.test ", hosts(), "watched")
		})
	}
}

// TestOnErrorMayAskTheFolder: a callback that looks at what is wrong.
func TestOnErrorMayAskTheFolder(t *testing.T) {
	dir := t.TempDir()
	var folder atomic.Pointer[k8swatch.Folder]
	counts := make(chan int, 10)
	f, err := k8swatch.NewFolder(dir, &k8swatch.FolderOptions{OnError: func(error) {
		if f := folder.Load(); f != nil {
			counts <- len(f.Errors())
		}
	}})
	require.NoError(t, err)
	folder.Store(f)
	start(t, f)
	write(t, filepath.Join(dir, "a.yaml"), "kind: [\n")
	select {
	case n := <-counts:
		require.Equal(t, 1, n)
	case <-soon(t).Done():
		t.Fatal("no error, or a deadlock")
	}
	write(t, filepath.Join(dir, "b.yaml"), fmt.Sprintf(ingressYAML, "web", "a.test"))
	write(t, filepath.Join(dir, "c.yaml"), fmt.Sprintf(ingressYAML, "web", "a.test"))
	select {
	case n := <-counts:
		require.Equal(t, 2, n)
	case <-soon(t).Done():
		t.Fatal("no conflict, or a deadlock")
	}
}

// TestFolderThatIsReplaced: version control and deployment tools do that.
func TestFolderThatIsReplaced(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "manifests")
	create := func(host string) {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, "a.yaml"), fmt.Sprintf(ingressYAML, "web", host))
	}
	create("a.test")
	write(t, filepath.Join(dir, "broken.yaml"), "kind: [\n")
	var log errorLog
	f, err := k8swatch.NewFolder(dir, &k8swatch.FolderOptions{OnError: log.add})
	require.NoError(t, err)
	w := mustNew(t, f, ingresses, &k8swatch.Options{IndexBy: []string{"spec.rules[*].host"}})
	start(t, w)
	start(t, f)
	synced(t, w, 1)
	write(t, filepath.Join(dir, "a.yaml"), fmt.Sprintf(ingressYAML, "web", "early.test"))
	eventually(t, "the folder is followed", func() bool { return w.Snapshot().GetSingle("early.test") != nil })
	require.NoError(t, os.Rename(dir, dir+".old"))
	eventually(t, "the loss is told", func() bool { return log.len() > 1 })
	require.Equal(t, 1, w.Snapshot().Len(), "a folder that is away took its objects with it")
	create("b.test")
	eventually(t, "the new folder is followed", func() bool { return w.Snapshot().GetSingle("b.test") != nil })
	eventually(t, "errors of files that are not in it are gone", func() bool { return len(f.Errors()) == 0 })
	write(t, filepath.Join(dir, "a.yaml"), fmt.Sprintf(ingressYAML, "web", "c.test"))
	eventually(t, "a change in it too", func() bool { return w.Snapshot().GetSingle("c.test") != nil })
}
