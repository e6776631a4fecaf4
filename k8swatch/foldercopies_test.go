package k8swatch_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hapticsdk/haptic/k8swatch"
)

// restart reads a folder as a new process does, and returns the ingresses that it
// serves and its errors without the folder's name.
func restart(t *testing.T, dir, copies string) (f *k8swatch.Folder, hosts, errs string) {
	t.Helper()
	f = mustFolder(t, dir, &k8swatch.FolderOptions{LastGood: copies})
	w := mustNew(t, f, ingresses, nil)
	start(t, w)
	mustNew(t, f, services, nil)
	require.NoError(t, errOf(w.WaitForSync(soon(t))))
	for _, i := range k8swatch.Read[*networkingv1.Ingress](w.Snapshot()).List() {
		hosts += i.Spec.Rules[0].Host + " "
	}
	return f, strings.TrimSpace(hosts), errorsOf(f, dir)
}

func errorsOf(f *k8swatch.Folder, dir string) string {
	if err := errors.Join(f.Errors()...); err != nil {
		return strings.ReplaceAll(err.Error(), dir+"/", "")
	}
	return ""
}

// TestFolderBrokenAtARestart: "its last good version stays in use" is true after a
// restart as well.
func TestFolderBrokenAtARestart(t *testing.T) {
	dir, copies := t.TempDir(), filepath.Join(t.TempDir(), "below", "copies")
	shop, blog := filepath.Join(dir, "shop.yaml"), filepath.Join(dir, "blog.yaml")
	want := func(hosts, errs string) {
		t.Helper()
		write(t, filepath.Join(dir, "note.txt"), "no manifest")
		_, got, said := restart(t, dir, copies)
		require.Equal(t, hosts, got)
		require.Equal(t, errs, said)
	}
	const broken = "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: shop}\nspecs: {}\n"
	const wrong = `shop.yaml:4: Ingress: unknown field "specs"; `
	write(t, shop, broken)
	write(t, blog, fmt.Sprintf(ingressYAML, "blog", "blog.test"))
	want("blog.test", wrong+"no earlier version of it is known: none of it is in use")
	want("blog.test", wrong+"it was not good before: none of it is in use") // there are copies now
	write(t, shop, fmt.Sprintf(ingressYAML, "shop", "shop.test"))
	want("blog.test shop.test", "")
	write(t, shop, broken)
	want("blog.test shop.test", wrong+"its last good version stays in use")
	write(t, shop, broken+"\n")
	want("blog.test shop.test", wrong+"its last good version stays in use")

	for _, empty := range []string{"", "\n"} {
		write(t, shop, empty)
		want("blog.test shop.test", "shop.yaml: it is empty: to delete its objects, delete it or leave a comment in it; its last good version stays in use")
	}

	for name, mode := range map[string]os.FileMode{copies: 0o700 | os.ModeDir, filepath.Join(copies, "shop.yaml"): 0o600} {
		if info, err := os.Stat(name); err != nil || info.Mode() != mode {
			t.Errorf("%s: %v %v", name, info.Mode(), err)
		}
	}
	// What is deleted while nobody looks is deleted; its copy, too.
	require.NoError(t, os.Remove(shop))
	want("blog.test", "")
	write(t, shop, broken)
	want("blog.test", wrong+"it was not good before: none of it is in use")
}

// TestFolderCopyThatCannotBeRead: where nothing is known of a file that is broken, nothing
// is known at the next restart either, until it is good or deleted: as there was no copy
// at the first start, or another version accepted it, or it lost its text with the power.
func TestFolderCopyThatCannotBeRead(t *testing.T) {
	for name, copied := range map[string]string{"another version": "kind: Nonsense\n", "no text": "", "first start": "none"} {
		t.Run(name, func(t *testing.T) {
			dir, copies := t.TempDir(), filepath.Join(t.TempDir(), "copies")
			write(t, filepath.Join(dir, "a.yaml"), "broken: true\n")
			if copied != "none" {
				require.NoError(t, os.Mkdir(copies, 0o700))
				write(t, filepath.Join(copies, "a.yaml"), copied)
			}
			for range 3 {
				f, got, said := restart(t, dir, copies)
				require.Empty(t, got)
				require.True(t, strings.HasSuffix(said, "; no earlier version of it is known: none of it is in use"), "served %q, said %q", got, said)
				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				require.Error(t, f.WaitForKnown(ctx), "it counts as known")
			}
			away := dir + ".away"
			require.NoError(t, os.Rename(dir, away))
			if _, _, said := restart(t, dir, copies); !strings.Contains(said, "no earlier version of it is known") {
				t.Errorf("the folder is away: said %q", said)
			}
			require.NoError(t, os.Rename(away, dir))
			write(t, filepath.Join(dir, "a.yaml"), fmt.Sprintf(ingressYAML, "a", "a.test"))
			if _, got, said := restart(t, dir, copies); got != "a.test" || said != "" {
				t.Errorf("mended: served %q, said %q", got, said)
			}
			write(t, filepath.Join(dir, "a.yaml"), "broken: true\n")
			if _, got, _ := restart(t, dir, copies); got != "a.test" {
				t.Errorf("broken again: served %q", got)
			}
		})
	}
}

// TestFolderCopyThatCannotBeWritten is one error, however often it is tried.
func TestFolderCopyThatCannotBeWritten(t *testing.T) {
	dir, copies := t.TempDir(), t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(copies, "a.yaml", "below"), 0o700))
	write(t, filepath.Join(dir, "a.yaml"), fmt.Sprintf(ingressYAML, "a", "a.test"))
	_, _, first := restart(t, dir, copies)
	_, got, said := restart(t, dir, copies)
	if want := "a.yaml: its copy for a restart cannot be written: file exists; the file is in use"; got != "a.test" || said != want || first != want {
		t.Errorf("served %q, said %q, want %q", got, said, want)
	}
}

// TestFolderCopiesFollow: what is saved while the folder runs is what a restart has.
func TestFolderCopiesFollow(t *testing.T) {
	dir, copies := t.TempDir(), t.TempDir()
	path := filepath.Join(dir, "a.yaml")
	write(t, path, fmt.Sprintf(ingressYAML, "a", "a.test"))
	// A link is not followed, and what another program left is replaced.
	outside := filepath.Join(t.TempDir(), "outside")
	write(t, outside, fmt.Sprintf(ingressYAML, "evil", "evil.test"))
	require.NoError(t, os.Symlink(outside, filepath.Join(copies, "a.yaml")))
	f, got, _ := restart(t, dir, copies)
	require.Equal(t, "a.test", got)
	start(t, f)
	copied := func(want string) func() bool {
		return func() bool {
			text, _ := os.ReadFile(filepath.Join(copies, "a.yaml"))
			return strings.Contains(string(text), want)
		}
	}
	eventually(t, "the copy", copied("a.test"))
	write(t, path, fmt.Sprintf(ingressYAML, "a", "b.test"))
	eventually(t, "the next copy", copied("b.test"))
	write(t, path, "broken: true\n")
	eventually(t, "the error", func() bool { return len(f.Errors()) == 1 })
	if _, got, said := restart(t, dir, copies); got != "b.test" || !strings.HasSuffix(said, "; its last good version stays in use") {
		t.Errorf("served %q, said %q", got, said)
	}
	if text, err := os.ReadFile(outside); err != nil || !strings.Contains(string(text), "evil.test") {
		t.Errorf("the file behind a link was written: %s %v", text, err)
	}
	require.NoError(t, os.Remove(path))
	eventually(t, "the copy is deleted", func() bool {
		_, err := os.Lstat(filepath.Join(copies, "a.yaml"))
		return errors.Is(err, os.ErrNotExist)
	})
}

// TestFolderAwayAtARestart: a folder that is gone, or empty as a mount point without
// its volume, deletes nothing; one with another file, be it empty, does.
func TestFolderAwayAtARestart(t *testing.T) {
	dir, copies := filepath.Join(t.TempDir(), "manifests"), t.TempDir()
	require.ErrorIs(t, errOf(k8swatch.NewFolder(dir, &k8swatch.FolderOptions{LastGood: copies})), os.ErrNotExist, "a folder that never was")
	fill := func() {
		t.Helper()
		require.NoError(t, os.MkdirAll(dir, 0o700))
		write(t, filepath.Join(dir, "a.yaml"), fmt.Sprintf(ingressYAML, "a", "a.test"))
	}
	fill()
	if _, got, said := restart(t, dir, copies); got != "a.test" || said != "" {
		t.Fatal(got, said)
	}
	require.NoError(t, os.RemoveAll(dir))
	f, got, said := restart(t, dir, copies)
	require.Equal(t, "a.test", got)
	require.Equal(t, dir+": no such file or directory; all that was read before stays in use", said)
	start(t, f) // it waits for the folder
	require.NoError(t, os.Mkdir(dir, 0o700))
	eventually(t, "the empty folder is told", func() bool { return strings.Contains(errorsOf(f, dir), "the folder is empty") })
	if _, got, _ := restart(t, dir, copies); got != "a.test" {
		t.Fatalf("an empty folder: served %q", got)
	}
	fill()
	eventually(t, "the folder is back", func() bool { return len(f.Errors()) == 0 })
	require.NoError(t, os.Remove(filepath.Join(dir, "a.yaml")))
	eventually(t, "the copy of a file that was deleted before our eyes is gone", func() bool {
		left, err := os.ReadDir(copies)
		return err == nil && len(left) == 0
	})
	require.Empty(t, f.Errors())

	fill()
	if _, got, _ := restart(t, dir, copies); got != "a.test" {
		t.Fatalf("served %q", got)
	}
	write(t, filepath.Join(dir, "none.yaml"), "")
	require.NoError(t, os.Remove(filepath.Join(dir, "a.yaml")))
	if _, got, said := restart(t, dir, copies); got != "" || said != "" {
		t.Errorf("a folder that was emptied: served %q, said %q", got, said)
	}
}

// TestFolderLeftOut: files that cannot be read are told, and delay nobody.
func TestFolderLeftOut(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"good.yaml", "upper.YAML", "backup.yaml.bak"} {
		host, _, _ := strings.Cut(name, ".")
		write(t, filepath.Join(dir, name), fmt.Sprintf(ingressYAML, host, host+".test"))
	}
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "pipe.yaml"), 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "sub.yaml"), 0o700))
	const why = ": it is no regular file; manifests in folders below are not read; no earlier version of it is known: none of it is in use"
	if _, got, said := restart(t, dir, ""); got != "good.test upper.test" || said != "pipe.yaml"+why+"\nsub.yaml"+why {
		t.Errorf("served %q, said %q", got, said)
	}
}

// TestWaitForKnownIsInTheSnapshots: who waited sees the mended file in the next snapshot.
// A render before that would delete from HAProxy what the file defines.
func TestWaitForKnownIsInTheSnapshots(t *testing.T) {
	for range 50 {
		dir := t.TempDir()
		file := filepath.Join(dir, "a.yaml")
		write(t, file, "broken: true\n")
		f := mustFolder(t, dir, nil)
		var all []*k8swatch.Watcher
		var stops []func()
		for _, gvr := range []schema.GroupVersionResource{services, ingresses, ingresses} {
			w := mustNew(t, f, gvr, nil)
			stops = append(stops, start(t, w))
			synced(t, w, 0)
			all = append(all, w)
		}
		write(t, filepath.Join(dir, "a.yaml"), fmt.Sprintf(ingressYAML, "a", "a.test"))
		stops = append(stops, start(t, f))
		require.NoError(t, f.WaitForKnown(soon(t)))
		for _, w := range all[1:] {
			require.Equal(t, 1, w.Snapshot().Len())
		}
		for _, stop := range stops {
			stop()
		}
		require.NoError(t, f.WaitForKnown(soon(t)), "watchers that ended are waited for")
	}
}
