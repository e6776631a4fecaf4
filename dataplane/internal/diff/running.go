package diff

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/hapticsdk/haptic/dataplane/internal/change"
	"github.com/hapticsdk/haptic/dataplane/internal/config"
	"github.com/hapticsdk/haptic/internal/haproxycfg"
)

// Running returns the configuration that a process runs: it has loaded stored and was changed
// since. It returns stored itself if nothing differs.
func Running(stored *config.Config, p *change.Process) *config.Config {
	running := runningText(stored, p)
	if files, changed := runningFiles(stored, p); changed {
		running = running.WithFiles(files)
	}
	return running
}

// WithDrift adds steps for what another writer changed in the stored files only. These
// differences are not among the steps from running to desired.
func WithDrift(steps []change.Step, stored, running, desired *config.Config, target change.Target) []change.Step {
	if stored == running {
		return steps
	}
	type subject struct{ kind, name, parent string }
	known := make(map[subject]bool, len(steps))
	for i := range steps {
		known[subject{steps[i].Kind, steps[i].Name, steps[i].Parent}] = true
	}
	for _, s := range Compare(stored, desired, target) {
		if !known[subject{s.Kind, s.Name, s.Parent}] {
			s.Impact, s.Reason, s.Do = change.None, "only the stored file differs: another writer changed it", nil
			steps = append(steps, s)
		}
	}
	return steps
}

func runningText(stored *config.Config, p *change.Process) *config.Config {
	x := stored.Index()
	if p.Servers == nil || x.Conditional() {
		return stored
	}
	counts := make(map[string]int) // number of servers in the process, by backend
	for ref := range p.Servers {
		counts[ref.Backend]++
	}
	byBackend := sync.OnceValue(func() map[string][]string {
		all := make(map[string][]string)
		for ref := range p.Servers {
			all[ref.Backend] = append(all[ref.Backend], ref.Server)
		}
		return all
	})
	inherits := slices.ContainsFunc(x.List, func(s *config.Section) bool {
		return s.Kind == "defaults" && strings.Contains(s.Text, defaultServer)
	})
	return stored.WithSections(func(s *config.Section) string {
		if s.Kind != "backend" && s.Kind != "listen" || s.Nth > 0 {
			return s.Text
		}
		if p.Lacks(s.Name) {
			return ""
		}
		if !inherits && asLoaded(s, p, counts[s.Name]) {
			return s.Text
		}
		return runningSection(x, s, p, byBackend()[s.Name])
	})
}

// runningSection returns the text of a section with the servers of the process.
func runningSection(x *config.Index, s *config.Section, p *change.Process, names []string) string {
	b := newBackend(x, s, s.Lines())
	b.read(s.Lines(), b.defaultServer)
	if b.obscure || len(names) == 0 && len(b.servers) > 0 { // the process does not report its servers
		return s.Text
	}
	return runningServers(b, p, names)
}

// runningServers returns the text of a backend with the servers of the process.
func runningServers(b *backend, p *change.Process, names []string) string {
	text := eachServer(b.section, func(name, line string) string {
		state, ok := p.Servers[b.ref(name)]
		if !ok {
			return ""
		}
		if set := change.Drifted(&b.servers[b.byName[name]], state); len(set) > 0 {
			return withValues(line, set)
		}
		return line
	})
	slices.Sort(names)
	for _, name := range names {
		state := p.Servers[b.ref(name)]
		switch {
		case b.has(name) || !state.Address.IsValid():
		case state.State == change.Ready:
			text += "  server " + name + " " + state.Address.String() + "\n"
		case change.IsSpare(b.section.Name): // elsewhere it may be a server that goes but still has connections
			text += "  server " + name + " " + state.Address.String() + " disabled\n"
		}
	}
	return text
}

// runningFiles returns the files with their contents in the process.
func runningFiles(stored *config.Config, p *change.Process) (files []config.File, changed bool) {
	files = slices.Clone(stored.Files)
	for i, f := range files {
		switch f.Kind {
		case config.Map:
			content, ok := p.Maps[f.Name]
			if ok && !sameEntries(f.Content, []byte(content)) && !WrittenByRules(stored.Index(), f.Name) {
				files[i].Content, changed = []byte(content), true
			}
		case config.Certificate:
			is, ok := p.Certificates[f.Name]
			if want := config.Fingerprint(f.Content); ok && want != "" && is != want {
				files[i].Content, changed = []byte("# another one, with fingerprint "+is+"\n"), true
			}
		}
	}
	return files, changed
}

// WrittenByRules reports whether rules of the configuration change a map.
func WrittenByRules(x *config.Index, name string) bool {
	return slices.ContainsFunc(x.List, func(s *config.Section) bool {
		for after := s.Text; ; {
			var more bool
			_, after, more = strings.Cut(after, "-map(")
			if !more {
				return false
			}
			if path, _, _ := strings.Cut(after, ")"); strings.Contains(path, name) {
				return true
			}
		}
	})
}

func sameEntries(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	x, y := config.ParseMap(a), config.ParseMap(b)
	byKey := func(a, b config.MapEntry) int { return strings.Compare(a.Key+" "+a.Value, b.Key+" "+b.Value) }
	slices.SortFunc(x, byKey)
	slices.SortFunc(y, byKey)
	return slices.Equal(x, y)
}

// eachServer returns the text of a section, with each server line replaced by the result of
// other. An empty result removes the server.
func eachServer(s *config.Section, other func(name, line string) string) string {
	var b strings.Builder
	for line := range strings.Lines(s.Text) {
		words, err := haproxycfg.Fields(line)
		if err == nil && len(words) > 2 && words[0] == "server" {
			line = other(words[1], line)
		}
		b.WriteString(line)
	}
	return b.String()
}

// withValues returns a server line with other values for fields that change at runtime.
func withValues(line string, set map[string]string) string {
	words, err := haproxycfg.RawFields(line)
	if err != nil {
		return line
	}
	out := slices.Clone(words[:3])
	if address, ok := set["address"]; ok {
		out[2] = address
	}
	for i := 3; i < len(words); i++ {
		_, other := set[words[i]]
		switch {
		case other && i+1 < len(words): // a keyword with its value
			i++
		case set["state"] != "" && (words[i] == "disabled" || words[i] == "enabled"):
		default:
			out = append(out, words[i])
		}
	}
	for _, field := range slices.Sorted(maps.Keys(set)) {
		switch field {
		case "address":
		case "state":
			out = append(out, set[field])
		default:
			out = append(out, field, set[field])
		}
	}
	return "  " + strings.Join(out, " ") + "\n"
}
