package dataplane_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
)

var update = flag.Bool("update", false, "write the plans that come out into testdata/diff")

// readCase makes the two configurations of a case: current is nil if it has no
// text.
func readCase(t *testing.T, archive *txtar.Archive) (current, desired *dataplane.Config) {
	t.Helper()
	texts := make(map[string]string)
	files := make(map[string][]dataplane.File)
	for _, f := range archive.Files {
		side, rest, _ := strings.Cut(f.Name, "/")
		kind, name, isFile := strings.Cut(rest, "/")
		if isFile {
			files[side] = append(files[side], dataplane.File{Kind: dataplane.FileKind(kind), Name: name, Content: f.Data})
		} else {
			texts[side] = string(f.Data)
		}
	}
	configs := make(map[string]*dataplane.Config)
	for side, text := range texts {
		if side == "plan" {
			continue
		}
		c, err := dataplane.NewConfig(text, files[side]...)
		require.NoError(t, err)
		configs[side] = c
	}
	return configs["current"], configs["desired"]
}

func TestDiff(t *testing.T) {
	t.Parallel()
	cases, err := filepath.Glob("testdata/diff/*.txtar")
	require.NoError(t, err)
	require.NotEmpty(t, cases)
	for _, file := range cases {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			require.NoError(t, err)
			current, desired := readCase(t, archive)
			plan, err := dataplane.Diff(current, desired)
			require.NoError(t, err)
			got := plan.String()
			n := len(archive.Files) - 1
			if *update {
				if archive.Files[n].Name != "plan" {
					archive.Files = append(archive.Files, txtar.File{Name: "plan"})
					n++
				}
				archive.Files[n].Data = []byte(got)
				require.NoError(t, os.WriteFile(file, txtar.Format(archive), 0o644))
			}
			require.Equal(t, "plan", archive.Files[n].Name)
			if diff := cmp.Diff(string(archive.Files[n].Data), got); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
			checkPlan(t, plan)

			// There is nothing left to do, and nothing to do without a change.
			for _, c := range []*dataplane.Config{desired, current} {
				if c == nil {
					continue
				}
				copied, err := dataplane.NewConfig(c.Main(), c.Files()...)
				require.NoError(t, err)
				none, err := dataplane.Diff(c, copied)
				require.NoError(t, err)
				require.True(t, none.Empty(), "%s", none)
			}
			// What is a difference one way is one the other way.
			if current != nil {
				back, err := dataplane.Diff(desired, current)
				require.NoError(t, err)
				require.Equal(t, plan.Empty(), back.Empty())
				checkPlan(t, back)
			}
		})
	}
}

// checkPlan checks what holds for every plan.
func checkPlan(t *testing.T, plan *dataplane.Plan) {
	t.Helper()
	raw, err := json.Marshal(plan)
	require.NoError(t, err)
	var again dataplane.Plan
	require.NoError(t, json.Unmarshal(raw, &again))
	require.Empty(t, cmp.Diff(plan, &again))
	for _, text := range []string{string(raw), plan.String(), fmt.Sprintf("%#v", plan)} {
		require.NotContains(t, text, "hunter")
	}
	for _, op := range plan.Ops {
		require.Equal(t, op.Impact == dataplane.ImpactReload, op.Reason != "", "%+v", op)
	}
}

func TestDiffWithoutDesired(t *testing.T) {
	t.Parallel()
	_, err := dataplane.Diff(nil, nil)
	require.Error(t, err)
}

// Whatever differs between two texts shows, and a text does not differ from
// itself.
func FuzzDiff(f *testing.F) {
	f.Add("backend a\n server a 1.2.3.4:80\n", "backend a\n server b 1.2.3.4:80 check\n")
	f.Add("global\n a b\ndefaults\n x\nlisten l\n server a :1\n", "defaults\n x\nglobal\n \"a\" b # c\n")
	f.Fuzz(func(t *testing.T, a, b string) {
		one, err := dataplane.NewConfig(a + "\n")
		if err != nil {
			return
		}
		two, err := dataplane.NewConfig(b + "\n")
		if err != nil {
			return
		}
		plan, err := dataplane.Diff(one, two)
		require.NoError(t, err)
		back, err := dataplane.Diff(two, one)
		require.NoError(t, err)
		require.Equal(t, plan.Empty(), back.Empty(), "%s\n%s", plan, back)
		inA, okA := meaning(a)
		inB, okB := meaning(b)
		if plan.Empty() && okA && okB {
			require.Equal(t, inA, inB)
		}
	})
}

// meaning is a text without what certainly means nothing. It knows less than
// Diff, so texts with quotes and the like are left out, and those in which a
// keyword repeats, as a later line may replace an earlier one.
func meaning(text string) (string, bool) {
	if strings.ContainsAny(text, "\"'\\$#[]") || strings.Contains(text, "enabled") {
		return "", false
	}
	var lines []string
	seen := make(map[string]bool)
	for l := range strings.Lines(text) {
		words := strings.FieldsFunc(l, func(r rune) bool { return r == ' ' || r == '\t' || r == '\n' || r == '\r' })
		if len(words) == 0 || len(words) == 1 && words[0] == "global" {
			continue
		}
		if seen[words[0]] || words[0] == "no" || words[0] == "option" || slices.Contains(words, "from") {
			return "", false
		}
		seen[words[0]] = true
		slices.Sort(words)
		lines = append(lines, strings.Join(words, " "))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n"), true
}

// Every certificate of 10,000 hosts at once, as at the first deployment.
func BenchmarkDiffCertificates(b *testing.B) {
	var list strings.Builder
	files := make([]dataplane.File, 0, 10001)
	for i := range brief(10000) {
		name := fmt.Sprintf("host-%d.pem", i)
		fmt.Fprintf(&list, "/etc/haproxy/ssl/%s host-%d.test\n", name, i)
		files = append(files, dataplane.File{Kind: dataplane.Certificate, Name: name, Content: []byte(name)})
	}
	files = append(files, dataplane.File{Kind: dataplane.CRTList, Name: "list.txt", Content: []byte(list.String())})
	const main = "frontend web\n    bind :443 ssl crt-list /etc/haproxy/general/list.txt\n"
	desired, err := dataplane.NewConfig(main, files...)
	require.NoError(b, err)
	current, err := dataplane.NewConfig(main, files[len(files)-1])
	require.NoError(b, err)
	for b.Loop() {
		if plan, err := dataplane.Diff(current, desired); err != nil || len(plan.Ops) != len(files)-1 {
			b.Fatal(plan, err)
		}
	}
}
