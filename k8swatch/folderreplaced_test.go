package k8swatch_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/k8swatch"
)

// TestFolderThatIsReplaced: version control and deployment tools do that.
func TestFolderThatIsReplaced(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "manifests")
	create := func(host string) {
		require.NoError(t, os.Mkdir(dir, 0o700))
		write(t, filepath.Join(dir, "a.yaml"), fmt.Sprintf(ingressYAML, "web", host))
	}
	create("a.test")
	write(t, filepath.Join(dir, "broken.yaml"), "kind: [\n")
	var log errorLog
	f := mustFolder(t, dir, &k8swatch.FolderOptions{OnError: log.add})
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

// TestFolderReplacedByAnEmptyOne: the volume of a mount point goes while it is read.
func TestFolderReplacedByAnEmptyOne(t *testing.T) {
	dir, f, w, log := followed(t, map[string]string{"a.yaml": fmt.Sprintf(ingressYAML, "a", "a.test")})
	require.NoError(t, os.Rename(dir, dir+".old"))
	require.NoError(t, os.Mkdir(dir, 0o700))
	eventually(t, "it is told", func() bool { return strings.Contains(errorsOf(f, dir), "the folder is empty") })
	require.NotNil(t, w.Snapshot().GetSingle("a.test"), "the objects went")
	write(t, filepath.Join(dir, "b.yaml"), fmt.Sprintf(ingressYAML, "b", "b.test"))
	eventually(t, "the new folder is followed", func() bool { return w.Snapshot().GetSingle("b.test") != nil && len(f.Errors()) == 0 })
	eventually(t, "what it does not have is deleted", func() bool { return w.Snapshot().GetSingle("a.test") == nil })
	_ = log
}

// TestFolderGoesAfterASave: files of which the news comes when the folder is away
// already are not taken for deleted.
func TestFolderGoesAfterASave(t *testing.T) {
	const n = 50
	top := t.TempDir()
	fill := func(dir, host string) {
		require.NoError(t, os.Mkdir(dir, 0o700))
		for i := range n {
			write(t, filepath.Join(dir, fmt.Sprintf("%d.yaml", i)), fmt.Sprintf(ingressYAML, fmt.Sprint("i", i), host))
		}
	}
	dir, next := filepath.Join(top, "manifests"), filepath.Join(top, "next")
	fill(dir, "a.test")
	fill(next, "c.test")
	var log errorLog
	f := mustFolder(t, dir, &k8swatch.FolderOptions{OnError: log.add})
	f.SetSettle(time.Nanosecond) // what is to be concluded is concluded before anybody looks
	var deleted atomic.Int32
	w := mustNew(t, f, ingresses, &k8swatch.Options{
		IndexBy: []string{"spec.rules[*].host"}, Debounce: -1,
		OnChange: func(_ context.Context, c k8swatch.Changes) error { deleted.Add(int32(c.Deleted)); return nil },
	})
	start(t, w)
	start(t, f)
	synced(t, w, n)
	write(t, filepath.Join(dir, "0.yaml"), fmt.Sprintf(ingressYAML, "i0", "followed.test"))
	eventually(t, "the folder is followed", func() bool { return w.Snapshot().GetSingle("followed.test") != nil })
	for i := range n {
		write(t, filepath.Join(dir, fmt.Sprintf("%d.yaml", i)), fmt.Sprintf(ingressYAML, fmt.Sprint("i", i), "b.test"))
	}
	require.NoError(t, os.Rename(dir, dir+".old"))
	eventually(t, "the loss is told", func() bool { return log.len() > 0 })
	require.NoError(t, os.Rename(next, dir))
	eventually(t, "the new folder is followed", func() bool { return len(w.Snapshot().Get("c.test")) == n })
	require.Zero(t, deleted.Load())
}
