package render

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hapticsdk/haptic/internal/viewtest"
	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/templating"
)

// shopSite is what templates see of a Service, and shopServer of an endpoint: the objects that
// they are made of stand in their fields.
type (
	shopSite struct {
		Name    string
		Servers []shopServer
		Service *corev1.Service
	}
	shopServer struct {
		Address string
		Slice   *discoveryv1.EndpointSlice
	}
)

// shop has Services that all use one EndpointSlice.
type shop struct {
	services []k8swatch.Object
	slices   []k8swatch.Object
	version  int
	view     *viewtest.View
}

func (s *shop) meta(name string) metav1.ObjectMeta {
	s.version++
	return metav1.ObjectMeta{Namespace: "demo", Name: name, ResourceVersion: fmt.Sprint(s.version)}
}

func (s *shop) slice(name, address string) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{ObjectMeta: s.meta(name), Endpoints: []discoveryv1.Endpoint{{Addresses: []string{address}}}}
}

func (s *shop) input(context.Context) (*Input, error) {
	var byKind [2][]k8swatch.Object
	for _, o := range s.view.Reads() {
		_, slice := o.(*discoveryv1.EndpointSlice)
		byKind[map[bool]int{true: 1}[slice]] = append(byKind[map[bool]int{true: 1}[slice]], o.(k8swatch.Object))
	}
	one, err1 := k8swatch.NewSnapshot(corev1.SchemeGroupVersion.WithResource("services"), nil, byKind[0]...)
	two, err2 := k8swatch.NewSnapshot(discoveryv1.SchemeGroupVersion.WithResource("endpointslices"), nil, byKind[1]...)
	if err1 != nil || err2 != nil {
		return nil, fmt.Errorf("%v %v", err1, err2)
	}
	services, slices := k8swatch.Read[*corev1.Service](one), k8swatch.Read[*discoveryv1.EndpointSlice](two)
	var sites []*shopSite
	for _, svc := range services.List() {
		it := &shopSite{Name: svc.Name, Service: svc}
		if slice := slices.GetSingle("demo", "shared"); slice != nil {
			it.Servers = append(it.Servers, shopServer{slice.Endpoints[0].Addresses[0], slice})
		}
		sites = append(sites, it)
	}
	return &Input{Vars: map[string]any{"sites": sites, "services": services, "slices": slices}}, nil
}

// TestARendererInGo: objects that are held back are so for it too, and those in the fields of its values answer, without code of its own. A bad EndpointSlice
// of 200 Services is named once, and all have the next one at once.
func TestARendererInGo(t *testing.T) {
	const services = 200
	for name, body := range map[string]string{
		"values": "{% for s in sites %}\nbackend {{ s.Name }}\n{% for server in s.Servers %}\n    # at {{ server.Address }}\n{% end %}\n{% end %}\n",
		"readers in templates": "{% for s in services.List() %}\nbackend {{ s.Name }}\n{% if l := slices.GetSingle(s.Namespace, \"shared\"); l != nil %}\n" +
			"    # at {{ l.Endpoints[0].Addresses[0] }}\n{% end %}\n{% end %}\n",
	} {
		for _, pure := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", pure ", pure), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					engine, err := templating.Compile(fstest.MapFS{"haproxy.cfg": {Data: []byte("global\n" + body)}}, &templating.Options{Vars: map[string]any{
						"sites": []*shopSite(nil), "services": k8swatch.Reader[*corev1.Service]{}, "slices": k8swatch.Reader[*discoveryv1.EndpointSlice]{}}})
					require.NoError(t, err)
					s := &shop{}
					s.view = &viewtest.View{KeyOf: keyOf, List: func() (all []any) {
						for _, o := range slices.Concat(s.services, s.slices) {
							all = append(all, o)
						}
						return all
					}}
					for i := range services {
						s.services = append(s.services, &corev1.Service{ObjectMeta: s.meta(fmt.Sprint("s", i))})
					}
					loop, err := reconcile.New(reconcile.Options{Renderer: &Templates{Engine: engine, Pure: pure, Input: s.input}, View: s.view, Validator: refusesBad{}})
					require.NoError(t, err)
					act := func(address string) string {
						s.slices = []k8swatch.Object{s.slice("other", "fine"), s.slice("shared", address)}
						time.Sleep(time.Second)
						_, err = loop.Once(t.Context())
						require.NoError(t, err)
						require.Equal(t, services, strings.Count(loop.Validated().Main(), "backend "), "all are there")
						return loop.Validated().Main()
					}
					for _, c := range []struct {
						address, serves string
						held            []string
					}{{"bad", "", []string{"shared"}}, {"one", "# at one\n", nil}, {"bad", "# at one\n", []string{"shared"}}, {"bad", "# at one\n", []string{"shared"}}} {
						text := act(c.address)
						require.Equal(t, c.held, quarantined(loop))
						if c.serves != "" {
							require.Equal(t, services, strings.Count(text, c.serves))
						}
					}
					time.Sleep(5 * time.Second) // it changed three times
					require.Equal(t, services, strings.Count(act("two"), "# at two\n"), "at once, before the minute of a trial is over")
					require.Empty(t, quarantined(loop))
				})
			})
		}
	}
}
