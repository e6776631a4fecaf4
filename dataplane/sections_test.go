package dataplane_test

import (
	"fmt"
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
	require.Equal(t, strings.Count(text, "\n"), cfg.LineCount())
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
