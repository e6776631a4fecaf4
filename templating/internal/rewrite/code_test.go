package rewrite

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCallsOfRaw(t *testing.T) {
	tests := []struct{ src, want string }{
		{"{{ raw(x) }}", "{{ Raw(x) }}"},
		{"raw(x) {{ a }}", "raw(x) {{ a }}"},
		{"{% var a = raw(`raw(`) + \"raw(\\\"raw(\" %}", "{% var a = Raw(`raw(`) + \"raw(\\\"raw(\" %}"},
		{"{# raw(x) #}{{ x.raw(1) }}{{ draw(1) }}{{ raw (1) }}", "{# raw(x) #}{{ x.raw(1) }}{{ draw(1) }}{{ raw (1) }}"},
		{"{% raw %}{{ raw(x) }}{% end raw %}{{ raw(x) }}", "{% raw %}{{ raw(x) }}{% end raw %}{{ Raw(x) }}"},
		{"{% raw doc %}{% end %}{{ raw(x) }}{% end raw doc %}{{ raw(x) }}", "{% raw doc %}{% end %}{{ raw(x) }}{% end raw doc %}{{ Raw(x) }}"},
		{"{%% x = raw(y) %%}", "{%% x = Raw(y) %%}"},
		{"{{ raw(", "{{ Raw("},
		{"{% raw \xad %}{{ raw(x) }}", "{% raw \xad %}{{ raw(x) }}"},
	}
	for _, tt := range tests {
		if got, _ := prepare(tt.src); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.src, got, tt.want)
		}
	}
}

// FuzzCallsOfRaw checks that nothing but the case of one letter ever changes.
func FuzzCallsOfRaw(f *testing.F) {
	f.Add("{{ raw(x) }}{% raw %}{% end %}{# {{ raw(")
	f.Fuzz(func(t *testing.T, src string) {
		got, problem := prepare(src)
		require.False(t, problem == nil && len(got) != len(src), "%q became %q", src, got)
		require.Equal(t, strings.ReplaceAll(src, "Raw(", "raw("), strings.ReplaceAll(got, "Raw(", "raw("))
	})
}
