package validate_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/hapticsdk/haptic/validate"
)

// TestSpecification runs both phases on the broken configurations in
// testdata/spec. A case is a file of an archive, named in words: the text of
// haproxy.cfg. Behind it stand the files that it brings, such as
// "maps/hosts.map", and two more:
//
//   - "says", a table of what must be found: phase, place, section, and a part
//     of the message. All that is found must be in the table, and the other way
//     round. A phase that is followed by a version, "semantics 3.0", is that of
//     binaries from this version on, up to the next one that is named; "accepted"
//     says that nothing is found.
//   - "fixed", the smallest change that makes both phases accept the
//     configuration: "- text" is replaced by the "+ text" behind it.
//
// What all cases need to start stands behind their text, see [listener].
// HAPROXY_BIN names another haproxy than that on the PATH. It needs not take the
// fixed ones again unless -fixed says so.
func TestSpecification(t *testing.T) {
	t.Parallel()
	needHAProxy(t)
	archives, err := filepath.Glob("testdata/spec/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatal("no archives", err)
	}
	v := &validate.Validator{Binary: os.Getenv("HAPROXY_BIN"), NoInherit: true, Timeout: patience}
	version := versionOf(t, v)
	for _, archive := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(archive), ".txtar"), func(t *testing.T) {
			for _, c := range readSpec(t, archive) {
				c.byVersion = filepath.Base(archive) == "versions.txtar"
				t.Run(c.name, func(t *testing.T) {
					t.Parallel()
					c.run(t, v, version)
				})
			}
		})
	}
}

var fixedToo = flag.Bool("fixed", false, "run haproxy over the fixed configurations of TestSpecification, too")

// listener makes haproxy start, whatever stands above it.
const listener = `
defaults listener
  mode http
  timeout connect 1s
  timeout client 1s
  timeout server 1s
frontend listener from listener
  bind 127.0.0.1:9999
`

// specCase is one broken configuration.
type specCase struct {
	name  string
	files []txtar.File // the first is haproxy.cfg
	fixed string
	says  []saying

	byVersion bool // what no change makes right for all of them
}

// saying is a row of what must be found.
type saying struct {
	phase                   validate.Phase
	since                   [2]int // zero for all versions
	place, section, message string
}

func readSpec(t *testing.T, path string) []*specCase {
	t.Helper()
	archive, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var cases []*specCase
	for _, f := range archive.Files {
		if f.Name != "says" && f.Name != "fixed" && !strings.Contains(f.Name, "/") {
			main := txtar.File{Name: "haproxy.cfg", Data: slices.Concat(f.Data, []byte(listener))}
			cases = append(cases, &specCase{name: f.Name, files: []txtar.File{main}})
			continue
		}
		c := cases[len(cases)-1]
		switch f.Name {
		case "says":
			c.says = readSayings(t, string(f.Data))
		case "fixed":
			c.fixed = string(f.Data)
		default:
			c.files = append(c.files, f)
		}
	}
	return cases
}

func readSayings(t *testing.T, table string) (says []saying) {
	t.Helper()
	for row := range strings.Lines(table) {
		cells := strings.SplitN(row, "|", 4)
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		phase, since, _ := strings.Cut(cells[0], " ")
		s := saying{phase: validate.Phase(phase)}
		if since != "" {
			s.since = parseVersion(t, since)
		}
		switch {
		case len(cells) == 4:
			s.place, s.section, s.message = cells[1], cells[2], cells[3]
		case len(cells) != 2 || cells[1] != "accepted":
			t.Fatalf("row %q", row)
		}
		says = append(says, s)
	}
	return says
}

// of returns the rows of one phase that hold for a version.
func (c *specCase) of(phase validate.Phase, version [2]int) (rows []saying) {
	var since [2]int
	for _, s := range c.says {
		if s.phase == phase && slices.Compare(s.since[:], version[:]) <= 0 && slices.Compare(s.since[:], since[:]) > 0 {
			since = s.since
		}
	}
	for _, s := range c.says {
		if s.phase == phase && s.since == since && s.place != "" {
			rows = append(rows, s)
		}
	}
	return rows
}

func (c *specCase) run(t *testing.T, v *validate.Validator, version [2]int) {
	cfg := config(t, withMaterial(t, c.files))
	_, semantics := v.Semantics(t.Context(), cfg)
	for phase, err := range map[validate.Phase]error{validate.PhaseSyntax: validate.Syntax(cfg), validate.PhaseSemantics: semantics} {
		found := foundIn(t, err)
		c.compare(t, phase, found, c.of(phase, version))
		for _, f := range found {
			c.placed(t, f)
		}
	}
	if c.fixed == "" {
		if len(c.of(validate.PhaseSemantics, version)) > 0 && !c.byVersion {
			t.Error("there is no fixed one")
		}
		return
	}
	fixed := config(t, withMaterial(t, c.fix(t)))
	err := v.Syntax(fixed)
	if err == nil && *fixedToo {
		_, err = v.Semantics(t.Context(), fixed)
	}
	if err != nil {
		t.Errorf("the fixed one: %v", err)
	}
}

func foundIn(t *testing.T, err error) []validate.Finding {
	t.Helper()
	var invalid *validate.Error
	if err != nil && !errors.As(err, &invalid) {
		t.Fatal(err)
	}
	if invalid == nil {
		return nil
	}
	return invalid.Findings
}

// compare holds what was found against the rows of the table.
func (c *specCase) compare(t *testing.T, phase validate.Phase, found []validate.Finding, want []saying) {
	same := slices.EqualFunc(found, want, func(f validate.Finding, s saying) bool {
		return place(f) == s.place && f.Section == s.section && s.message != "" && strings.Contains(f.Message, s.message)
	})
	if same {
		return
	}
	var got strings.Builder
	for _, f := range found {
		fmt.Fprintf(&got, "%s | %s | %s | %s\n", phase, place(f), f.Section, f.Message)
	}
	t.Errorf("%s found\n%swant\n%+v", phase, &got, want)
}

// place is the file, as named in the archive, and the line.
func place(f validate.Finding) string {
	name := strings.TrimPrefix(f.File, "/etc/haproxy/")
	if f.Line > 0 {
		name += fmt.Sprintf(":%d", f.Line)
	}
	return name
}

// ownPath is what may not get out of the folder of the check.
var ownPath = regexp.MustCompile(`haproxy-check-|/\.(map|certificate|general)/`)

// placed checks what holds for each finding: the text is that of its line, and
// nothing names the folder of the check.
func (c *specCase) placed(t *testing.T, f validate.Finding) {
	t.Helper()
	if ownPath.MatchString(f.String()) {
		t.Errorf("names the folder of the check: %s", f)
	}
	if f.Text == "" || strings.Contains(f.Text, "(secret)") {
		return
	}
	for _, file := range c.files {
		if file.Name != strings.TrimPrefix(f.File, "/etc/haproxy/") {
			continue
		}
		lines := strings.Split(string(file.Data), "\n")
		if f.Line < 1 || f.Line > len(lines) || strings.TrimSpace(lines[f.Line-1]) != f.Text {
			t.Errorf("text %q is not that of line %d", f.Text, f.Line)
		}
	}
}

// fix makes the twin that must be accepted.
func (c *specCase) fix(t *testing.T) []txtar.File {
	t.Helper()
	files := slices.Clone(c.files)
	for change := range strings.SplitSeq("\n"+strings.TrimSuffix(c.fixed, "\n"), "\n- ") {
		if change == "" {
			continue
		}
		old, with, _ := strings.Cut(change, "\n+ ")
		with = strings.ReplaceAll(with, "\n+ ", "\n")
		at := slices.IndexFunc(files, func(f txtar.File) bool { return strings.Contains(string(f.Data), old) })
		if at < 0 {
			t.Fatalf("%q stands nowhere", old)
		}
		files[at].Data = []byte(strings.Replace(string(files[at].Data), old, with, 1))
	}
	return files
}
