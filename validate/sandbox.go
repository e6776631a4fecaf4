package validate

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/hapticsdk/haptic/dataplane"
)

// sandbox is a folder of its own, laid out as the target's, in which haproxy
// checks a copy of a configuration.
type sandbox struct {
	dir    string
	config string     // path of the copy of haproxy.cfg
	base   string     // of the target
	moved  []movedDir // the longest target first
	back   *strings.Replacer
}

// movedDir is a folder of the target and where the sandbox has it.
type movedDir struct{ target, local string }

// newSandbox writes the files. The caller removes the sandbox, also after an
// error when it is not nil.
func newSandbox(cfg *dataplane.Config, layout dataplane.Layout) (*sandbox, error) {
	dir, err := os.MkdirTemp("", "haproxy-check-")
	if err != nil {
		return nil, fmt.Errorf("folder for the check: %w", err)
	}
	s := &sandbox{dir: dir, config: filepath.Join(dir, "haproxy.cfg")}
	if strings.ContainsAny(dir, " \t\"'\\#$") {
		return s, fmt.Errorf("folder for the check: %q cannot be written into a configuration", dir)
	}
	if err := s.layOut(layout); err != nil {
		return s, err
	}
	for _, f := range cfg.Files() {
		content := f.Content
		if f.Kind == dataplane.CRTList {
			content = []byte(s.rewrite(string(content)))
		}
		// Certificates have private keys in them.
		if err := os.WriteFile(filepath.Join(s.local(layout.Dir(f.Kind)), f.Name), content, 0o600); err != nil {
			return s, fmt.Errorf("file for the check: %w", err)
		}
	}
	if err := os.WriteFile(s.config, []byte(s.rewrite(cfg.Main())), 0o600); err != nil {
		return s, fmt.Errorf("file for the check: %w", err)
	}
	return s, nil
}

// layOut makes the folders for files. Those below the target's base lie in the
// same place below the sandbox, so that relative paths hold, and beside them
// what else the base has on this machine.
func (s *sandbox) layOut(layout dataplane.Layout) error {
	s.base = filepath.Dir(layout.ConfigPath())
	names := map[string]string{}
	for kind, name := range map[dataplane.FileKind]string{dataplane.Map: ".maps", dataplane.Certificate: ".ssl", dataplane.General: ".general"} {
		target := layout.Dir(kind)
		if have, twice := names[target]; !twice || name < have {
			names[target] = name
		}
	}
	for target, name := range names {
		if below, err := filepath.Rel(s.base, target); err == nil && below != ".." && !strings.HasPrefix(below, "../") {
			name = below
		}
		local := filepath.Join(s.dir, name)
		if err := os.MkdirAll(local, 0o700); err != nil {
			return fmt.Errorf("folder for the check: %w", err)
		}
		s.moved = append(s.moved, movedDir{target, local})
	}
	sort.Slice(s.moved, func(i, j int) bool { return len(s.moved[i].target) > len(s.moved[j].target) })
	pairs := []string{s.config, layout.ConfigPath()}
	for _, m := range s.moved {
		pairs = append(pairs, m.local, m.target)
	}
	s.back = strings.NewReplacer(append(pairs, s.dir, s.base)...)
	return s.linkBase()
}

// linkBase makes what the base has on this machine beside the files of
// configurations, such as a folder of error pages, reachable by relative paths.
// Where files of configurations lie in the base itself, folders alone are.
func (s *sandbox) linkBase() error {
	entries, err := os.ReadDir(s.base)
	if err != nil {
		return nil // it need not exist here
	}
	for _, entry := range entries {
		if entry.Name() == filepath.Base(s.config) || s.local(s.base) != "" && !entry.IsDir() {
			continue
		}
		err := os.Symlink(filepath.Join(s.base, entry.Name()), filepath.Join(s.dir, entry.Name()))
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("folder for the check: %w", err)
		}
	}
	return nil
}

// local returns where the sandbox has a folder for files of the target, or "".
func (s *sandbox) local(target string) string {
	for _, m := range s.moved {
		if m.target == target {
			return m.local
		}
	}
	return ""
}

// rewrite puts the folders of the sandbox in the place of the target's. Line
// feeds stay, and so do line numbers.
func (s *sandbox) rewrite(text string) string {
	var b strings.Builder
	b.Grow(len(text) + len(text)/8)
	done := 0
	for i := 0; ; {
		slash := strings.IndexByte(text[i:], '/')
		if slash < 0 {
			break
		}
		start := i + slash
		i = start + 1
		for i < len(text) && pathByte(text[i]) {
			i++
		}
		if start > 0 && pathByte(text[start-1]) {
			continue
		}
		if local, rest, ok := s.move(text[start:i], text[:start]); ok {
			b.WriteString(text[done:start])
			b.WriteString(local)
			b.WriteString(rest)
			done = i
		}
	}
	b.WriteString(text[done:])
	return b.String()
}

// move splits a path into the folder of the sandbox that it lies in and the
// rest. No file of a configuration lies in a folder below those of the layout,
// so such a path stays what it is. The base itself moves behind the words from
// which relative paths start.
func (s *sandbox) move(path, before string) (local, rest string, ok bool) {
	for _, m := range s.moved {
		rest, below := strings.CutPrefix(path, m.target)
		if below && (rest == "" || rest[0] == '/') {
			if strings.Contains(strings.Trim(rest, "/"), "/") {
				return "", "", false
			}
			return m.local, rest, true
		}
	}
	if strings.TrimRight(path, "/") != s.base {
		return "", "", false
	}
	before = strings.TrimRight(before[max(0, len(before)-40):], " \t\"'")
	for _, word := range []string{"crt-base", "ca-base", "key-base", "origin"} {
		if strings.HasSuffix(before, word) {
			return s.dir, path[len(s.base):], true
		}
	}
	return "", "", false
}

// pathByte reports the characters that a path goes on with.
func pathByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("/._-", c) >= 0
}

// remove leaves nothing behind.
func (s *sandbox) remove() error { return os.RemoveAll(s.dir) }
