package dataplane_test

import (
	"errors"
	"fmt"
	"math/rand"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
)

func TestSections(t *testing.T) {
	t.Parallel()
	const text = "# first\n\nglobal\n  maxconn 7 # seven\n# the shop\nbackend shop\n  server a 192.0.2.1:80\n" +
		"  server \"b c\" 192.0.2.2:80\n  # server d\n  servers no\n  server \"\n\"global\"\n  nbthread 2\n"
	cfg, err := dataplane.NewConfig(text)
	require.NoError(t, err)
	var heads []string
	var all strings.Builder
	for _, s := range cfg.Sections() {
		heads = append(heads, fmt.Sprintf("%s %s %d", s.Kind, s.Name, s.Line))
		require.True(t, strings.HasPrefix(strings.Join(strings.SplitAfter(text, "\n")[s.Line-1:], ""), s.Text))
		all.WriteString(s.Text)
	}
	require.Equal(t, []string{"  1", "global  3", "backend shop 5", "global  12"}, heads)
	require.Equal(t, text, all.String())
	sections := cfg.Sections()
	require.Empty(t, sections[0].Lines(""))
	require.Equal(t, [][]string{{"maxconn", "7"}}, sections[1].Lines(""))
	require.Equal(t, [][]string{{"server", "a", "192.0.2.1:80"}, {"server", "b c", "192.0.2.2:80"}}, sections[2].Lines("server"))
	require.Len(t, sections[2].Lines(""), 3)
	require.Empty(t, sections[2].Lines("backend"), "that is its header")
	unnamed, err := dataplane.NewConfig("defaults\n  mode http\n")
	require.NoError(t, err)
	require.Empty(t, unnamed.Sections()[0].Name)
	sections[1].Kind = "changed"
	require.Equal(t, "global", cfg.Sections()[1].Kind)
}

func ExampleConfig_Sections() {
	cfg, err := dataplane.NewConfig("global\n  maxconn 100\nbackend shop\n  server s1 192.0.2.1:80\n")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, s := range cfg.Sections() {
		fmt.Printf("%d %s %q\n", s.Line, s.Kind, s.Name)
	}
	// Output:
	// 1 global ""
	// 3 backend "shop"
}

func ExampleSection_Lines() {
	cfg, err := dataplane.NewConfig("backend shop\n  balance leastconn\n  server s1 192.0.2.1:80 # \"first\"\n")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, words := range cfg.Sections()[0].Lines("server") {
		fmt.Println(words[1], words[2])
	}
	// Output: s1 192.0.2.1:80
}

// The stretches lead from one list of sections to the other, and hold nothing that
// stands at the same end of both.
func TestStretchesSplice(t *testing.T) {
	t.Parallel()
	for seed := range int64(300) {
		rng := rand.New(rand.NewSource(seed))
		var before, after []string
		for range rng.Intn(60) {
			before = append(before, fmt.Sprintf("backend b%d\n  mode http\n", rng.Intn(40)))
		}
		if rng.Intn(3) == 0 {
			before = append(before, "defaults\n  mode tcp\n", "backend last\n")
		}
		for _, s := range before {
			switch rng.Intn(12) {
			case 0:
			case 1:
				after = append(after, s, fmt.Sprintf("backend n%d\n", rng.Intn(5)))
			case 2:
				after = append(after, s+"  balance source\n")
			default:
				after = append(after, s)
			}
		}
		if cut := rng.Intn(20); cut < len(after) {
			after = append(after[:cut:cut], after[min(len(after), cut+rng.Intn(20)):]...)
		}
		old, err1 := dataplane.NewConfigFrom(nil, append([]string{"global\n"}, before...))
		now, err2 := dataplane.NewConfigFrom(old, append([]string{"global\n"}, after...))
		require.NoError(t, errors.Join(err1, err2))
		was, is := old.Sections(), now.Sections()
		var spliced []dataplane.Section
		at := 0
		for _, s := range dataplane.Stretches(old, now) {
			spliced = append(spliced, was[at:s.OldIndex]...)
			require.Equal(t, was[s.OldIndex:s.OldIndex+len(s.Before)], s.Before)
			require.Len(t, spliced, s.NewIndex)
			require.Equal(t, is[s.NewIndex:s.NewIndex+len(s.After)], s.After)
			require.False(t, len(s.Before)+len(s.After) == 0)
			spliced = append(spliced, s.After...)
			at = s.OldIndex + len(s.Before)
		}
		spliced = append(spliced, was[at:]...)
		require.Len(t, spliced, len(is), "seed %d", seed)
		for i := range is {
			require.Equal(t, is[i].Text, spliced[i].Text, "seed %d", seed)
		}
	}
	empty, err := dataplane.NewConfig("global\n")
	require.NoError(t, err)
	require.Len(t, dataplane.Stretches(nil, empty), 1)
	require.Empty(t, dataplane.Stretches(empty, empty))
	require.Equal(t, 1, empty.LineCount())
}
