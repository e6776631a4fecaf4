package validate

import (
	"fmt"
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

// layOut makes the folders for files.
func (s *sandbox) layOut(layout dataplane.Layout) error {
	names := map[string]string{}
	for kind, name := range map[dataplane.FileKind]string{dataplane.Map: "maps", dataplane.Certificate: "ssl", dataplane.General: "general"} {
		target := layout.Dir(kind)
		if have, twice := names[target]; !twice || name < have {
			names[target] = name
		}
	}
	pairs := []string{s.config, layout.ConfigPath()}
	for target, name := range names {
		local := filepath.Join(s.dir, name)
		if err := os.Mkdir(local, 0o700); err != nil {
			return fmt.Errorf("folder for the check: %w", err)
		}
		s.moved = append(s.moved, movedDir{target, local})
		pairs = append(pairs, local, target)
	}
	sort.Slice(s.moved, func(i, j int) bool { return len(s.moved[i].target) > len(s.moved[j].target) })
	s.back = strings.NewReplacer(pairs...)
	return nil
}

func (s *sandbox) local(target string) string {
	for _, m := range s.moved {
		if m.target == target {
			return m.local
		}
	}
	return s.dir
}

// rewrite puts the folders of the sandbox in the place of the target's. Line
// feeds stay, and so do line numbers.
func (s *sandbox) rewrite(text string) string {
	var b strings.Builder
	b.Grow(len(text) + len(text)/8)
	for text != "" {
		i := strings.IndexByte(text, '/')
		if i < 0 {
			break
		}
		b.WriteString(text[:i])
		boundary := i == 0 && b.Len() == 0 || i > 0 && !pathByte(text[i-1])
		text = text[i:]
		length := 1
		if boundary {
			for _, m := range s.moved {
				rest, ok := strings.CutPrefix(text, m.target)
				if ok && (rest == "" || rest[0] == '/' || !pathByte(rest[0])) {
					b.WriteString(m.local)
					text, length = rest, 0
					break
				}
			}
		}
		// The rest of this path has no boundary in it.
		for length > 0 && length < len(text) && pathByte(text[length]) {
			length++
		}
		b.WriteString(text[:length])
		text = text[length:]
	}
	b.WriteString(text)
	return b.String()
}

// pathByte reports the characters that a path goes on with.
func pathByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("/._-", c) >= 0
}

// remove leaves nothing behind.
func (s *sandbox) remove() error { return os.RemoveAll(s.dir) }
