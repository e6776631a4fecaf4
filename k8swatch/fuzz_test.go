package k8swatch

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"testing"
)

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
		found, errs := parseManifests("f.yaml", []byte(text))
		lines := strings.Count(text, "\n") + 1
		for _, err := range errs {
			var m *ManifestError
			if !errors.As(err, &m) || m.Line < 1 || m.Line > lines {
				t.Fatalf("%v in a file of %d lines", err, lines)
			}
		}
		for _, m := range found {
			if m.obj.GetName() == "" || m.line < 1 || m.line > lines {
				t.Fatalf("%s at %d of %d lines", m, m.line, lines)
			}
		}
	})
}

// FuzzEncodeKey: the encoded keys sort and match prefixes as their parts do.
func FuzzEncodeKey(f *testing.F) {
	f.Add("a", "b", "a", "")
	f.Add("a\x00", "b", "a", "\x00b")
	f.Add("a\x00\x01b", "", "a", "b")
	f.Fuzz(func(t *testing.T, a1, a2, b1, b2 string) {
		a, b := []string{a1, a2}, []string{b1, b2}
		ea, eb := encodeKey(a), encodeKey(b)
		if got, want := cmp.Compare(ea, eb), slices.Compare(a, b); got != want {
			t.Fatalf("%q and %q compare as %d, want %d", a, b, got, want)
		}
		if got, want := strings.HasPrefix(ea, encodeKey(b[:1])), a1 == b1; got != want {
			t.Fatalf("%q begins with %q: %v", a, b1, got)
		}
	})
}
