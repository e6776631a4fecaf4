package validate

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
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

// movedDir is a folder of the target and its place in the sandbox.
type movedDir struct{ target, local string }

// newSandbox writes the files. The caller removes the sandbox when it is not
// nil, also after an error.
func newSandbox(cfg *dataplane.Config, layout dataplane.Layout) (*sandbox, error) {
	dir, err := os.MkdirTemp("", "haproxy-check-")
	if err != nil {
		return nil, fmt.Errorf("folder for the check: %w", err)
	}
	s := &sandbox{dir: dir, config: filepath.Join(dir, "haproxy.cfg")}
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
		files[filepath.Join(s.local(layout.Dir(f.Kind)), f.Name)] = content
	}
	for path, content := range files {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil { // some have private keys
			return s, fmt.Errorf("file for the check: %w", err)
		}
	}
	return s, nil
}

// layOut makes the folders for files. Folders below the target's base lie in the
// same place below the sandbox, so that relative paths hold.
func (s *sandbox) layOut(layout dataplane.Layout) error {
	s.base = filepath.Dir(layout.ConfigPath())
	for _, kind := range []dataplane.FileKind{dataplane.General, dataplane.Map, dataplane.Certificate} {
		target := layout.Dir(kind)
		if s.local(target) != "" {
			continue
		}
		below, err := filepath.Rel(s.base, target)
		if err != nil || below == ".." || strings.HasPrefix(below, "../") {
			below = "." + string(kind)
		}
		local := filepath.Join(s.dir, below)
		if err := os.MkdirAll(local, 0o700); err != nil {
			return err
		}
		s.moved = append(s.moved, movedDir{target, local})
	}
	slices.SortFunc(s.moved, func(a, b movedDir) int { return cmp.Compare(len(b.target), len(a.target)) })
	pairs := []string{s.config, layout.ConfigPath()}
	for _, m := range s.moved {
		pairs = append(pairs, m.local, m.target)
	}
	s.back = strings.NewReplacer(append(pairs, s.dir, s.base)...)
	return s.linkBase()
}

// linkBase makes reachable by relative paths what else the base has on this
// machine, such as a folder of error pages. It links only folders when files of
// configurations lie in the base itself.
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
			return err
		}
	}
	return nil
}

// local returns the place of one of the target's folders for files, or "".
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
			b.WriteString(text[done:])
			return b.String()
		}
		start := i + slash
		for i = start + 1; i < len(text) && pathByte(text[i]); i++ {
		}
		if start > 0 && pathByte(text[start-1]) {
			continue
		}
		if moved := s.move(text[start:i], text[:start]); moved != "" {
			b.WriteString(text[done:start])
			b.WriteString(moved)
			done = i
		}
	}
}

// basePaths are the words from which relative paths start.
var basePaths = []string{"crt-base", "ca-base", "key-base", "origin"}

// move returns a path in the sandbox, or "" for one that stays. No file of a
// configuration lies in a folder below those of the layout, so that such a path
// stays. The base itself moves only behind words from which relative paths start.
func (s *sandbox) move(path, before string) string {
	for _, m := range s.moved {
		rest, below := strings.CutPrefix(path, m.target)
		if below && (rest == "" || rest[0] == '/') {
			if strings.Contains(strings.Trim(rest, "/"), "/") {
				return ""
			}
			return m.local + rest
		}
	}
	before = strings.TrimRight(before[max(0, len(before)-40):], " \t\"'")
	for _, word := range basePaths {
		if strings.TrimRight(path, "/") == s.base && strings.HasSuffix(before, word) {
			return s.dir + path[len(s.base):]
		}
	}
	return ""
}

// pathByte reports the characters that a path goes on with.
func pathByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("/._-", c) >= 0
}
