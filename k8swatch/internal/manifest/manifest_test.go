package manifest

import (
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// FuzzManifests: no file makes the decoder panic; each error has a line of the
// file, and each object a name and a line.
func FuzzManifests(f *testing.F) {
	for _, s := range []string{
		"apiVersion: v1\nkind: Service\nmetadata:\n  name: a\n---\nkind: x\n",
		"apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Secret\n  metadata: {name: s}\n  stringData: {a: 1}\n",
		"{\"apiVersion\":\"v1\",\"kind\":\"Service\",\"metadata\":{\"name\":\"a\"},\"spec\":{\"ports\":[{\"port\":\"x\"}]}}",
		"a: &a [*a]\n", "---\n---\n", "apiVersion: networking.k8s.io/v1\nkind: IngressList\nitems: [{metadata: {name: x}}, 3]\n",
		"apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {x: \"?\"}\n", "<<: {kind: x}\n", "? [a]\n: b\n", "\ufeffkind: x",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		found, errs := Parse("f.yaml", []byte(text))
		lines := strings.Count(text, "\n") + 1
		for _, err := range errs {
			if err.Line < 1 || err.Line > lines {
				t.Fatalf("line %d: %v in a file of %d lines", err.Line, err.Err, lines)
			}
		}
		for _, m := range found {
			if m.GetName() == "" || m.Line < 1 || m.Line > lines {
				t.Fatalf("%s at %d of %d lines", m.GetName(), m.Line, lines)
			}
		}
	})
}
