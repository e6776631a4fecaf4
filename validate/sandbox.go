package validate

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/internal/haproxyctl"
)

// sandbox is a folder with the layout of the instance, in which haproxy checks a copy of a
// configuration.
type sandbox struct {
	dir    string
	lock   *os.File // of dir
	config string   // path of the copy of haproxy.cfg
	moved  []moved  // folders outside of the instance's base come before the base
	back   *strings.Replacer
}

// moved is a folder of the instance and its place in the sandbox.
type moved struct{ target, local string }

// newSandbox writes the files, readable for the account. The caller must remove the sandbox
// if it is not nil, also after an error.
func newSandbox(cfg *dataplane.Config, layout dataplane.Layout, account *haproxyctl.Account) (*sandbox, error) {
	dir, err := os.MkdirTemp("", sandboxName)
	if err != nil {
		return nil, fmt.Errorf("folder for the check: %w", err)
	}
	s := &sandbox{dir: dir, config: filepath.Join(dir, "haproxy.cfg")}
	if err := s.hold(); err != nil {
		return s, fmt.Errorf("folder for the check: %w", err)
	}
	if strings.ContainsAny(dir, " \t\"'\\#$") {
		return s, fmt.Errorf("folder for the check: %q cannot be written into a configuration: set TMPDIR to another folder", dir)
	}
	if err := s.layOut(layout); err != nil {
		return s, fmt.Errorf("folder for the check: %w", err)
	}
	files := map[string]string{s.config: s.rewrite(cfg.Main())}
	for _, f := range cfg.Files() {
		content := string(f.Content)
		if f.Kind == dataplane.CRTList {
			content = s.rewrite(content)
		}
		files[s.move(layout.Path(f.Kind, f.Name))] = content
	}
	for path, content := range files {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil { // some have private keys
			return s, fmt.Errorf("file for the check: %w", err)
		}
	}
	if account == nil {
		return s, nil
	}
	if err := account.Reaches(dir); err != nil {
		return s, fmt.Errorf("folder for the check: set TMPDIR to another folder: %w", err)
	}
	return s, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, account.UID, account.GID))
	})
}

const sandboxName = "haproxy-check-"

// hold locks the sandbox while this process lives.
func (s *sandbox) hold() (err error) {
	if s.lock, err = os.Open(s.dir); err == nil {
		err = syscall.Flock(int(s.lock.Fd()), syscall.LOCK_EX)
	}
	return err
}

func (s *sandbox) remove() error {
	_ = s.lock.Close() // it is open for reading only
	return os.RemoveAll(s.dir)
}

// removeLeftovers removes the sandboxes of killed processes: they have private keys. It
// spares sandboxes of the last minute, because their process may not have locked them yet.
func removeLeftovers() {
	dirs, _ := filepath.Glob(filepath.Join(os.TempDir(), sandboxName+"*"))
	for _, dir := range dirs {
		info, err := os.Lstat(dir)
		if err != nil || !info.IsDir() || time.Since(info.ModTime()) < time.Minute {
			continue
		}
		if f, err := os.Open(dir); err == nil {
			if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
				_ = os.RemoveAll(dir)
			}
			_ = f.Close()
		}
	}
}

// layOut makes the folders for files. It links to everything else there on this machine,
// such as a folder of error pages. A configuration brings its own files, so layOut links
// only folders inside of the layout's folders.
func (s *sandbox) layOut(layout dataplane.Layout) error {
	base := filepath.Dir(layout.ConfigPath())
	s.moved = []moved{{base, s.dir}}
	ours := map[string]bool{}
	for _, kind := range []dataplane.FileKind{dataplane.General, dataplane.Map, dataplane.Certificate} {
		target := layout.Dir(kind)
		if s.move(target) == target {
			s.moved = slices.Insert(s.moved, 0, moved{target, filepath.Join(s.dir, "."+string(kind))})
		}
		ours[target] = true
		if err := os.MkdirAll(s.move(target), 0o700); err != nil {
			return err
		}
	}
	slices.SortStableFunc(s.moved, func(a, b moved) int { return len(b.target) - len(a.target) })
	pairs := []string{s.config, layout.ConfigPath()}
	for _, m := range s.moved {
		if m.target != base {
			pairs = append(pairs, m.local, m.target)
		}
	}
	s.back = strings.NewReplacer(append(pairs, s.dir, base)...)
	for _, target := range append(slices.Collect(maps.Keys(ours)), base) {
		entries, _ := os.ReadDir(target) // it need not exist here
		for _, entry := range entries {
			if entry.Name() == "haproxy.cfg" || ours[target] && !entry.IsDir() {
				continue
			}
			path := filepath.Join(target, entry.Name())
			if err := os.Symlink(path, s.move(path)); err != nil && !errors.Is(err, fs.ErrExist) {
				return err
			}
		}
	}
	return nil
}

// rewrite replaces the folders of the instance by those of the sandbox. Line feeds stay,
// and so do line numbers.
func (s *sandbox) rewrite(text string) string {
	var b strings.Builder
	b.Grow(len(text) + len(text)/8)
	done := 0
	for i := 0; ; {
		slash := strings.IndexByte(text[i:], '/')
		if slash < 0 {
			b.WriteString(text[done:])
			return b.String()
		}
		start := i + slash
		for i = start + 1; i < len(text) && pathByte(text[i]); i++ {
		}
		if start > 0 && pathByte(text[start-1]) {
			continue
		}
		if moved := s.move(text[start:i]); moved != text[start:i] {
			b.WriteString(text[done:start])
			b.WriteString(moved)
			done = i
		}
	}
}

// move returns the place in the sandbox of a path of the instance, or the path itself if it
// has none.
func (s *sandbox) move(path string) string {
	for _, m := range s.moved {
		rest, below := strings.CutPrefix(path, m.target)
		if below && (rest == "" || rest[0] == '/') && !strings.Contains(rest, "..") {
			return m.local + rest
		}
	}
	return path
}

// pathByte reports the characters inside a path.
func pathByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("/._-", c) >= 0
}
