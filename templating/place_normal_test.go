package templating_test

import (
	_ "embed"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/templating"
)

//go:embed testdata/normal.txt
var normalLines string

// TestNormalLines has lines of configurations as ingress controllers write them, with
// their values between «»: none is refused.
func TestNormalLines(t *testing.T) {
	value := regexp.MustCompile("«(.*?)»")
	for line := range strings.Lines(normalLines) {
		var values []string
		template := value.ReplaceAllStringFunc(line, func(v string) string {
			values = append(values, strings.Trim(v, "«»"))
			return fmt.Sprintf("{{ v[%d] }}", len(values)-1)
		})
		e, err := templating.Compile(files("haproxy.cfg", template), &templating.Options{Vars: map[string]any{"v": []string(nil)}})
		if err == nil {
			_, err = e.Render(t.Context(), "haproxy.cfg", map[string]any{"v": values})
		}
		require.NoError(t, err)
	}
}

// TestListsOfAnyLength are written by loops.
func TestListsOfAnyLength(t *testing.T) {
	const list = "{% for i := 0; i < 20; i++ %} {{ x }}{{ i }}{% end %}"
	for _, template := range []string{"compression type" + list, "compression algo" + list, "retry-on" + list, "http-request lua.f" + list + " if { path /a }", "description" + list} {
		_, err := render(t, "a", "haproxy.cfg", template)
		check(t, "", err, "", "")
	}
	for _, template := range []string{"unsetenv" + list, "option" + list} {
		_, err := render(t, "a", "haproxy.cfg", template)
		check(t, "", err, "", "cannot choose")
	}
}
