package diff

import (
	"bytes"
	"slices"
	"strings"

	"github.com/hapticsdk/haptic/dataplane/internal/change"
	"github.com/hapticsdk/haptic/dataplane/internal/config"
)

// RuntimePart returns the running configuration after some of the steps that lead to desired.
// Those are the steps that need no reload and make sense before one. It returns running
// itself if there are none.
//
// A server waits for the reload if the backend changes its default-server, mode or balance,
// which also affect the server. A file waits if a line that names it changes. A map entry
// also waits if its value names a section that does not exist yet. It keeps its value if a line
// changes that has a variable of a line that names the map.
func RuntimePart(running, desired *config.Config, steps []change.Step, target change.Target) *config.Config {
	p := &part{running: running, desired: desired, steps: steps, target: target}
	partial := p.text()
	if files, changed := p.files(); changed {
		partial = partial.WithFiles(files)
	}
	if partial != running && change.ImpactOf(Compare(running, partial, target)) > change.Runtime {
		return running // better nothing than a reload
	}
	return partial
}

// part builds one partial configuration.
type part struct {
	running, desired *config.Config
	steps            []change.Step
	target           change.Target
}

// text returns the running configuration with the servers of the steps.
func (p *part) text() *config.Config {
	bySection := make(map[config.Key]map[string]*change.Step)
	coming := p.comingBackends()
	for i := range p.steps {
		s := &p.steps[i]
		if s.Kind != "server" || s.Impact != change.Runtime || !s.Ahead {
			continue
		}
		if bySection[s.Section] == nil {
			bySection[s.Section] = make(map[string]*change.Step)
		}
		bySection[s.Section][s.Name] = s
	}
	if len(bySection)+len(coming) == 0 {
		return p.running
	}
	return p.running.WithSections(func(s *config.Section) string {
		if steps, ok := bySection[s.Key()]; ok {
			return p.servers(s, steps) + coming[s.Key()]
		}
		return s.Text + coming[s.Key()]
	})
}

func (p *part) servers(s *config.Section, steps map[string]*change.Step) string {
	text := eachServer(s, func(name, line string) string {
		step, ok := steps[name]
		switch {
		case !ok:
			return line
		case step.Action == change.Delete:
			return ""
		}
		set := make(map[string]string)
		if do, ok := step.Do.(*change.SetServer); ok {
			for _, setting := range do.Set {
				set[setting.Row.Field] = setting.Written()
			}
		}
		return withValues(line, set)
	})
	var lines strings.Builder
	eachServer(p.desired.Index().Find(s.Key()), func(name, line string) string {
		if step := steps[name]; step != nil && step.Action == change.Create {
			lines.WriteString(line)
		}
		return ""
	})
	if lines.Len() == 0 {
		return text
	}
	body := strings.TrimRight(text, " \t\r\n")
	return body + "\n" + lines.String() + strings.TrimPrefix(text[len(body):], "\n")
}

// files returns the running files with the contents of the desired ones.
func (p *part) files() (files []config.File, changed bool) {
	files = slices.Clone(p.running.Files)
	waits := p.waitingFiles()
	for _, f := range p.desired.Files {
		at, ok := slices.BinarySearchFunc(files, f, config.CompareFiles)
		w := waits[fileID{string(f.Kind), f.Name}]
		switch {
		case w == nil || w.waits || ok && bytes.Equal(files[at].Content, f.Content):
			continue
		case !ok:
			files = slices.Insert(files, at, f)
		case f.Kind == config.Map && len(w.keys) > 0:
			files[at].Content = p.entries(files[at], f, w.keys)
		default:
			files[at].Content = f.Content
		}
		changed = true
	}
	return files, changed
}

type fileID struct{ kind, name string }

// fileWait says which part of a file has to wait for the reload.
type fileWait struct {
	waits bool
	keys  map[string]bool // of entries that wait
}

// waitingFiles collects a fileWait for each file that changes at runtime.
func (p *part) waitingFiles() map[fileID]*fileWait {
	changing := make(map[config.Key]bool) // sections with steps other than servers
	var coming []string
	for i := range p.steps {
		s := &p.steps[i]
		if s.Impact != change.Reload {
			continue
		}
		kind, name, _ := strings.Cut(s.Parent, " ")
		if s.Parent == "" {
			kind, name = s.Kind, s.Name
		}
		changing[config.Key{Kind: kind, Name: name}] = true
		if s.Action == change.Create && s.Parent == "" && s.Name != "" {
			coming = append(coming, s.Name, "")
		}
	}
	cut := strings.NewReplacer(coming...) // finds all names in one pass
	leads := func(value string) bool { return cut.Replace(value) != value }
	named, linked := p.named(changing)
	files := make(map[fileID]*fileWait)
	for i := range p.steps {
		s := &p.steps[i]
		id := fileID{s.Kind, s.Name}
		if kind, name, ok := strings.Cut(s.Parent, " "); ok {
			id = fileID{kind, name}
		}
		if s.Impact == change.None || s.Kind == "server" || s.Action == change.Delete && s.Parent == "" {
			continue
		}
		w := files[id]
		if w == nil {
			w = &fileWait{keys: make(map[string]bool), waits: named[id.name]}
			files[id] = w
		}
		w.waits = w.waits || s.Impact == change.Reload
		do, ok := s.Do.(*change.ChangeEntries)
		if !ok {
			continue
		}
		for _, e := range do.Entries {
			if e.Action != change.Delete && leads(e.Value) || e.Action == change.Update && linked[id.name] {
				w.keys[e.Key] = true
				w.waits = w.waits || do.Whole
			}
		}
	}
	return files
}

// named returns all words of these sections that stand on other lines after the change, the
// names of files among them. linked are the words of other lines that have a variable in common
// with one of those.
func (p *part) named(sections map[config.Key]bool) (named, linked map[string]bool) {
	named, linked = make(map[string]bool), make(map[string]bool)
	was, is := linesByWord(p.running, sections), linesByWord(p.desired, sections)
	for at, lines := range was {
		named[at.word] = named[at.word] || !slices.Equal(lines, is[at])
	}
	for at := range is {
		named[at.word] = named[at.word] || was[at] == nil
	}
	for at, lines := range is {
		for _, line := range lines {
			linked[at.word] = linked[at.word] || slices.ContainsFunc(namesIn(line), func(word string) bool { return isVariable(word) && named[word] })
		}
	}
	return named, linked
}

// isVariable reports whether a word is a variable with its scope, such as "txn.backend".
func isVariable(word string) bool {
	scope, _, ok := strings.Cut(word, ".")
	return ok && slices.Contains([]string{"proc", "sess", "txn", "req", "res", "check"}, scope)
}

// namesIn returns the words of a line.
func namesIn(line string) []string {
	return strings.FieldsFunc(line, func(r rune) bool { return r != '.' && !config.IsNameRune(r) })
}

// wordIn is a word in a section.
type wordIn struct {
	section config.Key
	word    string
}

// linesByWord returns the lines of some sections on which each word stands.
func linesByWord(c *config.Config, sections map[config.Key]bool) map[wordIn][]string {
	lines := make(map[wordIn][]string)
	for _, s := range c.Index().List {
		key := config.Key{Kind: s.Kind, Name: s.Name}
		if !sections[key] {
			continue
		}
		for line := range strings.Lines(s.Text) {
			line = strings.TrimSpace(line)
			for _, word := range namesIn(line) {
				at := wordIn{key, word}
				lines[at] = append(lines[at], line)
			}
		}
	}
	return lines
}

// entries returns the desired content of a map in which the keys in keep have their old
// values.
func (p *part) entries(old, now config.File, keep map[string]bool) []byte {
	was := newEntries(config.ParseMap(old.Content))
	var b bytes.Buffer
	for _, e := range config.ParseMap(now.Content) {
		values := []string{e.Value}
		if keep[e.Key] {
			values = was.values[e.Key]
		}
		for _, value := range values {
			b.WriteString(strings.TrimSpace(e.Key+" "+value) + "\n")
		}
	}
	return b.Bytes()
}
