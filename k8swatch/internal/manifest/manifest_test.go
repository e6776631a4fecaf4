package manifest

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hapticsdk/haptic/k8swatch/internal/memapi"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestTextsStayAsTheyAre: a text is decoded as kubectl does, however it is written.
func TestTextsStayAsTheyAre(t *testing.T) {
	for written, want := range map[string]string{
		">\n    a\n      b\n    c\n": "a\n  b\nc\n",
		">+\n    a\n\n    b\n\n":     "a\nb\n\n",
		">-\n    a\n    b\n":         "a b",
		"|\n    a\n      b\n\n":      "a\n  b\n",
		"|+\n    a\n\n":              "a\n\n",
		`"a\n  b"`:                   "a\n  b",
	} {
		found, errs := Parse("f.yaml", []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  k: "+written), memapi.Types{})
		require.Empty(t, errs, "%q", written)
		require.Equal(t, want, found[0].Object.(*corev1.ConfigMap).Data["k"], "%q gives", written)
	}
	found, errs := Parse("f.yaml", []byte("apiVersion: x/v1\nkind: X\nmetadata: {name: a}\nspec: {a, b: , c: ~}\n"), memapi.Types{})
	require.Empty(t, errs)
	for k, v := range found[0].Object.(*unstructured.Unstructured).Object["spec"].(map[string]any) {
		require.Nil(t, v, k)
	}
}

// TestErrorsRepeatNoValue: the value may be that of a Secret.
func TestErrorsRepeatNoValue(t *testing.T) {
	for _, value := range []string{"!!int hunter2", "!!timestamp hunter2", "!!binary hunter2%", "[hunter2]", "{<<: hunter2}"} {
		found, errs := Parse("f.yaml", []byte("apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData:\n  k: "+value+"\n"), memapi.Types{})
		if len(found) > 0 || len(errs) != 1 || strings.Contains(errs[0].Err.Error(), "hunter") {
			t.Errorf("%s: %v %v", value, found, errs)
		}
	}
}

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
		found, errs := Parse("f.yaml", []byte(text), memapi.Types{})
		lines := strings.Count(text, "\n") + 1
		for _, err := range errs {
			require.GreaterOrEqual(t, err.Line, 1)
			require.LessOrEqual(t, err.Line, lines)
		}
		for _, m := range found {
			if m.GetName() == "" || m.Line < 1 || m.Line > lines {
				t.Fatalf("%s at %d of %d lines", m.GetName(), m.Line, lines)
			}
		}
	})
}
