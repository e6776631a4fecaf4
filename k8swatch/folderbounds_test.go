package k8swatch_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/k8swatch"
)

// TestFolderBusy: a file that is rewritten without end delays no other file, also
// where another one is broken, deleted, or has no newline at its end, as when an
// editor has not finished with it.
func TestFolderBusy(t *testing.T) {
	const rounds, others = 5, 200
	dir := t.TempDir()
	for i := range others {
		write(t, filepath.Join(dir, fmt.Sprintf("site-%d.yaml", i)), fmt.Sprintf(ingressYAML, fmt.Sprint("site-", i), "x.test"))
	}
	log := &errorLog{}
	f := mustFolder(t, dir, &k8swatch.FolderOptions{OnError: log.add})
	w := mustNew(t, f, ingresses, &k8swatch.Options{IndexBy: []string{"spec.rules[*].host"}, Debounce: -1})
	start(t, f)
	start(t, w, others)
	stop, stopped := make(chan struct{}), make(chan error, 1)
	defer func() {
		close(stop)
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	}()
	go func() {
		ticker := time.NewTicker(5 * time.Millisecond)
		defer ticker.Stop()
		for n := 0; ; n++ {
			text := fmt.Sprintf(ingressYAML, "busy", fmt.Sprintf("busy-%d.test", n))
			if err := os.WriteFile(filepath.Join(dir, "busy.yaml"), []byte(text[:len(text)-n%2]), 0o600); err != nil {
				stopped <- err
				return
			}
			select {
			case <-ticker.C:
			case <-stop:
				stopped <- nil
				return
			}
		}
	}()
	path := filepath.Join(dir, "site-0.yaml")
	has := func(host string) func() bool { return func() bool { return w.Snapshot().GetSingle(host) != nil } }
	took := map[string][]time.Duration{}
	until := func(what string, ok func() bool) {
		begun := time.Now()
		eventually(t, what, ok)
		took[what] = append(took[what], time.Since(begun))
	}
	for n := range rounds {
		host := fmt.Sprintf("site-%d.test", n)
		write(t, path, fmt.Sprintf(ingressYAML, "site-0", host))
		until("a save", has(host))
		write(t, path, strings.TrimSuffix(fmt.Sprintf(ingressYAML, "site-0", "no-newline."+host), "\n"))
		until("a save without a newline at the end", has("no-newline."+host))
		told := log.len()
		write(t, path, fmt.Sprintf("broken: %d\n", n))
		until("an error", func() bool { return log.len() > told })
		require.NoError(t, os.Remove(path))
		until("a deletion", func() bool { return w.Snapshot().ByName("default", "site-0") == nil })
	}
	for what, all := range took {
		slices.Sort(all)
		t.Logf("%s: median %s, longest %s", what, all[rounds/2], all[rounds-1])
		require.LessOrEqual(t, all[rounds/2], 500*time.Millisecond, "%s waits for the file that is rewritten", what)
	}
}

// TestFolderLimits: what is too large is named with its bound, and stops no other.
func TestFolderLimits(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "good.yaml"), fmt.Sprintf(ingressYAML, "good", "good.test"))
	large := fmt.Sprintf(ingressYAML, "large", strings.Repeat("a", 3<<20))
	write(t, filepath.Join(dir, "object.yaml"), large)
	write(t, filepath.Join(dir, "file.yaml"), large+large)
	folder := mustFolder(t, dir, &k8swatch.FolderOptions{MaxFile: 5 << 20})
	const unused = "; no earlier version of it is known: none of it is in use"
	want := []string{
		"file.yaml: it has more than 5242880 bytes (FolderOptions.MaxFile)" + unused,
		"object.yaml:1: Ingress: it has 3145841 bytes as JSON, more than the 3145728 of one object" + unused,
	}
	got := folder.Errors()
	require.Len(t, got, len(want))
	for i, err := range got {
		require.True(t, strings.HasSuffix(err.Error(), want[i]), "%v, want %s", err, want[i])
	}
	require.Error(t, errOf(k8swatch.ParseManifests("x.yaml", []byte(large))), "an object beyond the bound was taken")
}
