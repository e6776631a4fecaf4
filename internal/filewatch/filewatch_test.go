package filewatch

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/internal/haproxytest"
)

func TestMain(m *testing.M) { haproxytest.Main(m) }

// run follows a directory until the test ends. Each call is one value: settled or not.
func run(t *testing.T, dir string, settle time.Duration) <-chan bool {
	t.Helper()
	w, err := New(dir)
	require.NoError(t, err)
	calls := make(chan bool, 10_000)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.Run(ctx, settle, func(settled bool) { calls <- settled })
	}()
	t.Cleanup(func() { cancel(); <-done })
	if !next(t, calls) {
		t.Fatal("the call at the start is not settled")
	}
	return calls
}

func next(t *testing.T, calls <-chan bool) bool {
	t.Helper()
	select {
	case settled := <-calls:
		return settled
	case <-time.After(haproxytest.Patience):
		t.Fatal("nothing was told")
		return false
	}
}

// settled waits for the end of what is under way.
func settled(t *testing.T, calls <-chan bool) {
	t.Helper()
	for !next(t, calls) {
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	require.NoError(t, err)
}

func TestChanges(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a.yaml")
	must(t, os.WriteFile(file, nil, 0o600))
	for i, dirOf := range []string{"..one", "..two"} {
		must(t, os.Mkdir(filepath.Join(dir, dirOf), 0o700))
		must(t, os.WriteFile(filepath.Join(dir, dirOf, "mounted.yaml"), fmt.Append(nil, i), 0o600))
	}
	must(t, os.Symlink("..one", filepath.Join(dir, "..data")))
	must(t, os.Symlink("..data/mounted.yaml", filepath.Join(dir, "mounted.yaml")))
	calls := run(t, dir, time.Millisecond)
	for _, step := range []struct {
		what string
		do   func() error
	}{
		{"a save in place", func() error { return os.WriteFile(file, []byte("1"), 0o600) }},
		{"a rename over it", func() error {
			if err := os.WriteFile(filepath.Join(dir, ".swp"), []byte("2"), 0o600); err != nil {
				return err
			}
			return os.Rename(filepath.Join(dir, ".swp"), file)
		}},
		{"a change of the mode", func() error { return os.Chmod(file, 0o640) }},
		{"the swap of a mounted ConfigMap", func() error {
			if err := os.Symlink("..two", filepath.Join(dir, "..data_tmp")); err != nil {
				return err
			}
			return os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data"))
		}},
		{"a deletion", func() error { return os.Remove(file) }},
	} {
		t.Run(step.what, func(t *testing.T) {
			must(t, step.do())
			settled(t, calls)
		})
	}
}

func TestDirectoryGoesAndComesBack(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "settings")
	must(t, os.Mkdir(dir, 0o700))
	calls := run(t, dir, time.Millisecond)
	must(t, os.Rename(dir, dir+".old"))
	settled(t, calls)
	must(t, os.Mkdir(dir, 0o700))
	settled(t, calls) // it is back
	must(t, os.WriteFile(filepath.Join(dir, "a"), nil, 0o600))
	settled(t, calls) // and followed
}

// TestDirectoryIsBackSoon: a directory that is back is not settled before nothing
// has happened for a while, since its files come one after the other.
func TestDirectoryIsBackSoon(t *testing.T) {
	const settle = 100 * time.Millisecond
	dir := filepath.Join(t.TempDir(), "settings")
	must(t, os.Mkdir(dir, 0o700))
	calls := run(t, dir, settle)
	begun := time.Now()
	must(t, os.Rename(dir, dir+".old"))
	if next(t, calls) {
		t.Fatal("at once, and settled")
	}
	<-time.After(settle / 5) // it is looked for, and looked for again after lookAgain
	must(t, os.Mkdir(dir, 0o700))
	if time.Since(begun) >= settle {
		t.Skip("this machine is too busy to tell")
	}
	if next(t, calls) {
		t.Error("it is settled as soon as it is back")
	}
	settled(t, calls)
}

// TestEndlessChanges: those who wait for the end are not put off for ever.
func TestEndlessChanges(t *testing.T) {
	dir := t.TempDir()
	calls := run(t, dir, 20*time.Millisecond)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		for n := 0; ctx.Err() == nil; n++ {
			if err := os.WriteFile(filepath.Join(dir, "a"), fmt.Append(nil, n), 0o600); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	settled(t, calls)
	cancel()
	must(t, <-done)
}

func TestMissingDirectory(t *testing.T) {
	if _, err := New(filepath.Join(t.TempDir(), "missing")); err == nil {
		t.Error("no error")
	}
}
