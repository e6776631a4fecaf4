package render

import (
	"context"
	"strings"
	"testing"
	"testing/fstest"
	"unsafe"

	"github.com/stretchr/testify/require"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/templating"
)

// TestOrigins asks for each line of a configuration that several entries made.
func TestOrigins(t *testing.T) {
	engine, err := templating.Compile(fstest.MapFS{
		"haproxy.cfg":         {Data: []byte("global\n{% for ing in all %}\n# {{ ing.Name }}\n{% end %}\ndefaults")}, // no line feed
		"haproxy.d/empty.cfg": {Data: []byte("")},
		"haproxy.d/item.cfg":  {Data: []byte("backend {{ ing.Name }}\n{% if ing.Name != \"b\" %}    balance x{% end %}")},
		"haproxy.d/z.cfg":     {Data: []byte("# z\n")},
		"maps/x.map":          {Data: []byte("# none\n{% for ing in all %}{{ ing.Name }} y\n{% end %}")},
	}, &templating.Options{Vars: map[string]any{"all": []*networkingv1.Ingress(nil), "ing": (*networkingv1.Ingress)(nil)}})
	require.NoError(t, err)
	var all []*networkingv1.Ingress
	each := Each{Var: "ing"}
	for _, name := range []string{"a", "b", "c"} {
		ing := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Name: name}}
		all, each.Items = append(all, ing), append(each.Items, ing)
	}
	secret := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{Kind: "Secret"}, ObjectMeta: metav1.ObjectMeta{Name: "s"}}
	templates := &Templates{Engine: engine, Input: func(context.Context) (*Input, error) {
		return &Input{
			Vars: map[string]any{"all": all, "ing": (*networkingv1.Ingress)(nil)}, Each: map[string]Each{"haproxy.d/item.cfg": each},
			Files:  []dataplane.File{{Kind: dataplane.Certificate, Name: "s.pem"}},
			Owners: map[dataplane.Position][]any{{Kind: dataplane.Certificate, Name: "s.pem"}: {secret}},
		}, nil
	}}
	rendered, err := templates.Render(t.Context())
	require.NoError(t, err)

	var got strings.Builder
	say := func(at dataplane.Position, text string) {
		o, err := rendered.Origins.Origin(t.Context(), at)
		require.NoError(t, err)
		got.WriteString(text + " <-")
		if o.File != "" {
			got.WriteString(" " + reconcile.TemplateLine{File: o.File, Line: o.Line}.String())
		}
		for _, r := range resourcesOf(o.Owners) {
			got.WriteString(" " + r.String())
		}
		got.WriteString("\n")
	}
	n := 0
	for line := range strings.Lines(rendered.Config.Main()) {
		n++
		say(dataplane.Position{Line: n}, strings.TrimSpace(line))
	}
	say(dataplane.Position{Line: n + 1}, "(end)")
	say(dataplane.Position{}, "(no line)")
	say(dataplane.Position{Kind: dataplane.Map, Name: "x.map", Line: 3}, "(map)")
	say(dataplane.Position{Kind: dataplane.Certificate, Name: "s.pem"}, "(certificate)")
	say(dataplane.Position{Kind: dataplane.Map, Name: "other.map", Line: 3}, "(other)")
	require.Equal(t, `global <- haproxy.cfg:1
# a <- haproxy.cfg:3 Ingress a
# b <- haproxy.cfg:3 Ingress b
# c <- haproxy.cfg:3 Ingress c
defaults <- haproxy.cfg:5
backend a <- haproxy.d/item.cfg:1 Ingress a
balance x <- haproxy.d/item.cfg:2 Ingress a
backend b <- haproxy.d/item.cfg:1 Ingress b
backend c <- haproxy.d/item.cfg:1 Ingress c
balance x <- haproxy.d/item.cfg:2 Ingress c
# z <- haproxy.d/z.cfg:1
(end) <-
(no line) <-
(map) <- maps/x.map:2 Ingress b
(certificate) <- Secret s
(other) <-
`, got.String())
}

// FuzzSpans finds for each line the text that has it. Texts are put together in two
// ways, as parts and as a file, which are the same.
func FuzzSpans(f *testing.F) {
	for _, seed := range []string{"a\n|b|c\n", "||\n|x", "one", "a\nb|\n\n|c", "# x\na|\n# y\n \nb\n|#z|\n#|c"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed string) {
		texts := strings.Split(seed, "|")
		c := &chunk{}
		p := piece{madeTexts: &madeTexts{chunks: []*chunk{c}}}
		all := ""
		for i, s := range texts {
			if all != "" && s != "" && !strings.HasSuffix(all, "\n") {
				all += "\n"
			}
			all += s
			c.items, c.texts = append(c.items, i), append(c.texts, &text{string: s, lead: leadOf(s)})
		}
		require.Equal(t, all, string(p.fileContent(false)))
		require.Equal(t, strings.Join(texts, ""), string((&madeTexts{chunks: p.chunks}).fileContent(true)))
		parts := partsOf([]piece{p})
		require.Equal(t, all, strings.Join(parts, ""))
		for i, again := range partsOf([]piece{p}) {
			require.True(t, unsafe.StringData(parts[i]) == unsafe.StringData(again), "part %d is another string", i)
		}
		spans := spansOf([]piece{p})
		n := 0
		for line := range strings.Lines(all) {
			n++
			s, ok := spanOf(spans, n)
			require.True(t, ok)
			own := strings.Split(texts[s.item.(int)], "\n")
			require.Equal(t, strings.TrimSuffix(line, "\n"), own[n-s.before-1])
		}
		for _, outside := range []int{-1, 0, n + 1} {
			_, ok := spanOf(spans, outside)
			require.False(t, ok)
		}
	})
}
