package dataplane_test

import (
	"math/rand"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/internal/haproxycfg"
)

func diffOf(t testing.TB, current, desired string) *dataplane.Plan {
	t.Helper()
	return planOf(t, textOf(t, current), textOf(t, desired))
}

func planOf(t testing.TB, current, desired *dataplane.Config) *dataplane.Plan {
	t.Helper()
	plan, err := dataplane.Diff(current, desired)
	require.NoError(t, err)
	return plan
}

func textOf(t testing.TB, text string) *dataplane.Config {
	t.Helper()
	c, err := dataplane.NewConfig(text)
	require.NoError(t, err)
	return c
}

// corpus returns whole configurations by name.
func corpus(t testing.TB) map[string]string {
	t.Helper()
	archive, err := txtar.ParseFile(filepath.Join("testdata", "corpus.txtar"))
	require.NoError(t, err)
	texts := make(map[string]string)
	for _, f := range archive.Files {
		texts[f.Name] = string(f.Data)
	}
	return texts
}

// What the Dataplane API does to a text is no difference.
func TestDiffOfNormalised(t *testing.T) {
	t.Parallel()
	for name, text := range corpus(t) {
		t.Run(name, func(t *testing.T) {
			normalised, err := haproxycfg.Normalise(text)
			require.NoError(t, err)
			require.NotEqual(t, text, normalised)
			require.True(t, diffOf(t, text, normalised).Empty(), "%s", diffOf(t, text, normalised))
			require.True(t, diffOf(t, normalised, text).Empty(), "%s", diffOf(t, normalised, text))
		})
	}
}

// Every text of the corpus and of the cases of Diff.
func allTexts(t testing.TB) map[string]string {
	t.Helper()
	texts := corpus(t)
	cases, err := filepath.Glob("testdata/diff/*.txtar")
	require.NoError(t, err)
	for _, file := range cases {
		archive, err := txtar.ParseFile(file)
		require.NoError(t, err)
		for _, f := range archive.Files {
			if strings.HasSuffix(f.Name, "haproxy.cfg") {
				texts[filepath.Base(file)+"/"+f.Name] = string(f.Data)
			}
		}
	}
	return texts
}

// Blanks, comments, line ends and the Dataplane API change nothing.
func TestDiffOfTheSame(t *testing.T) {
	t.Parallel()
	for name, text := range allTexts(t) {
		t.Run(name, func(t *testing.T) {
			for _, other := range []string{
				text, strings.ReplaceAll(text, "\n", "\r\n"), strings.ReplaceAll(text, "\n", " # comment\n"),
				strings.ReplaceAll(text, "\n", "\n\n# comment\n"), strings.ReplaceAll(text, "\n    ", "\n\t "),
			} {
				if !readable(text) && strings.Contains(other, " # comment\n") {
					continue // within a quote that is not closed it is none
				}
				require.True(t, diffOf(t, text, other).Empty(), "%s", diffOf(t, text, other))
				require.True(t, diffOf(t, other, text).Empty(), "%s", diffOf(t, other, text))
			}
			if normalised, err := haproxycfg.Normalise(text); err == nil {
				require.True(t, diffOf(t, text, normalised).Empty(), "%s", diffOf(t, text, normalised))
			}
		})
	}
}

// readable reports whether all lines can be cut into words.
func readable(text string) bool {
	for l := range strings.Lines(text) {
		if _, err := haproxycfg.Fields(l); err != nil {
			return false
		}
	}
	return true
}

// shuffled returns the text with its sections, and the lines within them, in
// another order: of lines with one keyword, the order stays.
func shuffled(text string, r *rand.Rand) string {
	var sections []string
	for _, s := range haproxycfg.Split(text) {
		lines := slices.Collect(strings.Lines(s.Text))
		head := s.Header - s.Line + 1
		if s.Kind == "listen" || s.Kind == "" {
			sections = append(sections, s.Text)
			continue
		}
		body := lines[head:]
		keys := make([]int, len(body))
		byKeyword := map[string][]int{}
		keyword := func(l string) string {
			words := strings.Fields(l)
			if len(words) == 0 {
				return ""
			}
			switch w := words[0]; w {
			case "option", "timeout", "compression", "hold":
				return words[0] + words[1]
			case "default-server", "server-template", "errorfile", "errorloc302", "http-error":
				return "group"
			case "server":
				return "group"
			case "force-persist", "ignore-persist":
				return "persistence"
			}
			return words[0]
		}
		for i, l := range body {
			keys[i] = r.Intn(1000)
			byKeyword[keyword(l)] = append(byKeyword[keyword(l)], i)
		}
		for _, at := range byKeyword { // the keys of one keyword ascend
			mine := make([]int, len(at))
			for i, j := range at {
				mine[i] = keys[j]
			}
			slices.Sort(mine)
			for i, j := range at {
				keys[j] = mine[i]
			}
		}
		order := make([]int, len(body))
		for i := range order {
			order[i] = i
		}
		slices.SortStableFunc(order, func(a, b int) int { return keys[a] - keys[b] })
		var b strings.Builder
		b.WriteString(strings.Join(lines[:head], ""))
		for _, i := range order {
			b.WriteString(body[i])
		}
		sections = append(sections, b.String())
	}
	r.Shuffle(len(sections), func(i, j int) { sections[i], sections[j] = sections[j], sections[i] })
	above := func(section string) int { // what others read stays above them
		if kinds := haproxycfg.Split(section); kinds[0].Kind == "global" || kinds[0].Kind == "crt-store" {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(sections, func(a, b string) int { return above(a) - above(b) })
	return strings.Join(sections, "")
}

func TestDiffOfAnotherOrder(t *testing.T) {
	t.Parallel()
	normalised, err := haproxycfg.Normalise(corpus(t)["everything.cfg"]) // each proxy names its defaults
	require.NoError(t, err)
	for seed := range int64(20) {
		other := shuffled(normalised, rand.New(rand.NewSource(seed)))
		plan := diffOf(t, normalised, other)
		require.True(t, plan.Empty(), "seed %d: %s\n%s", seed, plan, other)
	}
}

// Whatever line goes, comes or reads otherwise, shows, both ways, and without
// secrets.
func TestDiffOfEveryLine(t *testing.T) {
	t.Parallel()
	void := map[string]bool{} // lines that a later one replaces
	for _, l := range []string{`log-format "%ci:%cp [%tr] %ft"`, "mode tcp"} {
		void[l] = true
	}
	for name, text := range corpus(t) {
		lines := slices.Collect(strings.Lines(text))
		whole := textOf(t, text)
		first, distance := each(t, 3)
		for i := first; i < len(lines); i += distance {
			l := strings.TrimSpace(lines[i])
			if l == "" || l[0] == '#' || l == "global" {
				continue
			}
			with := func(replace ...string) string {
				return strings.Join(slices.Concat(lines[:i], replace, lines[i+1:]), "")
			}
			changed := []string{with("    " + l + "x\n")}
			if !strings.HasPrefix(lines[i], " ") {
				changed = nil // a header
			}
			changed = append(changed, with(lines[i], "    bogus x\n"))
			if !void[l] {
				changed = append(changed, with())
			}
			for _, other := range changed {
				if void[l] && !strings.Contains(other, "bogus") {
					continue
				}
				changed := textOf(t, other)
				plan := planOf(t, whole, changed)
				require.False(t, plan.Empty(), "%s: %s", name, l)
				require.False(t, planOf(t, changed, whole).Empty(), "%s: %s", name, l)
				checkPlan(t, plan)
			}
		}
	}
}

// What the Dataplane API makes of any text is no difference, where it takes it.
func FuzzDiffOfNormalised(f *testing.F) {
	for _, text := range corpus(f) {
		f.Add(text)
	}
	f.Add("defaults\n mode http\nbackend b\n server a :1\n option httpchk\n")
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := dataplane.NewConfig(text); err != nil {
			return
		}
		normalised, err := haproxycfg.Normalise(text)
		if err != nil || normalised == "" || !strings.HasSuffix(normalised, "\n") {
			return
		}
		there, back := diffOf(t, text, normalised), diffOf(t, normalised, text)
		require.Equal(t, there.Empty(), back.Empty())
	})
}
