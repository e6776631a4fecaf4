package ingress

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/hapticsdk/haptic/k8swatch"
)

// TestMistakes plants each mistake of testdata/mistakes.txtar, and wants the lines
// that it says.
func TestMistakes(t *testing.T) {
	text, err := os.ReadFile("testdata/mistakes.txtar")
	require.NoError(t, err)
	parts := strings.Split("\n"+string(text), "\n-- ")
	_, shop, _ := strings.Cut(parts[1], " --\n")
	for _, part := range parts[2:] {
		name, mistake, found := strings.Cut(part, " --\n")
		require.True(t, found, part)
		t.Run(name, func(t *testing.T) {
			manifests, want, serves := plant(t, shop, strings.TrimSpace(mistake))
			r := worldOf(t, manifests).build()
			var said, servers []string
			for _, refusal := range r.Refused {
				said = append(said, map[bool]string{false: "> ", true: "! "}[refusal.Warning]+refusal.String())
			}
			for _, b := range r.Backends.Slice() {
				for _, s := range b.Servers {
					servers = append(servers, s.Address)
				}
			}
			require.Equal(t, want, said)
			require.Equal(t, serves, strings.Join(servers, " "))
		})
	}
}

// plant changes the manifests as a case says.
func plant(t *testing.T, shop, mistake string) (manifests string, want []string, serves string) {
	t.Helper()
	mistake, besides, _ := strings.Cut(mistake, "\n---\n")
	serves = "192.0.2.1:8080 192.0.2.2:8080"
	for line := range strings.Lines(mistake) {
		line = strings.TrimSuffix(line, "\n")
		older, newer, change := strings.Cut(line+" ", " => ")
		without, drops := strings.CutPrefix(line, "without ")
		servers, other := strings.CutPrefix(line, "serves")
		switch {
		case strings.HasPrefix(line, "> "), strings.HasPrefix(line, "! "):
			want = append(want, line)
		case other:
			serves = strings.TrimSpace(servers)
		case change:
			require.Contains(t, shop, older)
			shop = strings.Replace(shop, older, strings.ReplaceAll(strings.TrimSuffix(newer, " "), `\n`, "\n"), 1)
		case drops:
			docs := strings.Split(shop, "---\n")
			shop = strings.Join(slices.DeleteFunc(docs, func(doc string) bool { return strings.Contains(doc, without) }), "---\n")
		default:
			require.Empty(t, line)
		}
	}
	if besides != "" {
		shop += "---\n" + besides + "\n"
	}
	return shop, want, serves
}

// worldOf is the cluster of a folder of manifests.
func worldOf(t *testing.T, manifests string) *world {
	t.Helper()
	objects, err := k8swatch.ParseManifests("shop.yaml", []byte(manifests))
	require.NoError(t, err, manifests)
	w := newWorld()
	for _, object := range objects {
		name := object.GetNamespace() + "/" + object.GetName()
		switch o := object.(type) {
		case *networkingv1.Ingress:
			w.ingresses = append(w.ingresses, o)
		case *networkingv1.IngressClass:
			w.classes = append(w.classes, o)
		case *corev1.Service:
			w.services[name] = o
		case *discoveryv1.EndpointSlice:
			service := o.Namespace + "/" + o.Labels[discoveryv1.LabelServiceName]
			w.slices[service] = append(w.slices[service], o)
		}
	}
	return w
}
