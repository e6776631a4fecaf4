package k8swatch_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hapticsdk/haptic/k8swatch"
)

// TestFolderKinds: what nobody reads is told where it may be meant, once for each
// kind, and the rest of the file is used.
func TestFolderKinds(t *testing.T) {
	const rest = "; everything else in the file is in use"
	for head, want := range map[string]string{
		"networking.k8s.io/v1 Ingres":       "networking.k8s.io/v1 has no kind Ingres; did you mean Ingress?",
		"networking.k8s.io/v1 ingress":      "networking.k8s.io/v1 has no kind ingress; did you mean Ingress?",
		"v1 Ingress":                        "v1 has no kind Ingress; it has apiVersion networking.k8s.io/v1",
		"extensions/v1beta1 Ingress":        "nothing reads Ingress of extensions/v1beta1; did you mean apiVersion networking.k8s.io/v1?",
		"networking.k8s.io/v1beta1 Ingress": "nothing reads Ingress of networking.k8s.io/v1beta1; did you mean apiVersion networking.k8s.io/v1?",
		"networking.k8s.oi/v1 Ingress":      "nothing reads Ingress of networking.k8s.oi/v1; did you mean apiVersion networking.k8s.io/v1?",
		"networking.k8s.io/v2 Ingres":       "nothing reads Ingres of networking.k8s.io/v2; did you mean one of the ingresses of networking.k8s.io/v1?",
		"apps/v1 Deployment":                "", // of others
		"v1 Pod":                            "",
		"serving.knative.dev/v1 Service":    "",
		"example.com/v1 Route":              "",
	} {
		t.Run(head, func(t *testing.T) {
			version, kind, _ := strings.Cut(head, " ")
			dir, other := t.TempDir(), "---\napiVersion: "+version+"\nkind: "+kind+"\nmetadata: {name: %s}\n"
			write(t, filepath.Join(dir, "all.yaml"), fmt.Sprintf(ingressYAML, "good", "good.test")+fmt.Sprintf(other, "x")+fmt.Sprintf(other, "z"))
			_, got, said := restart(t, dir, "")
			if want != "" {
				want = "all.yaml:9: " + kind + " default/x and 1 more: " + want + rest
			}
			require.Equal(t, "good.test", got)
			require.Equal(t, want, said)
		})
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.yaml"), "kind: Ingress\nmetadata: {name: a}\n")
	if _, _, said := restart(t, dir, ""); !strings.Contains(said, "apiVersion or kind is missing; Ingress has apiVersion networking.k8s.io/v1") {
		t.Error(said)
	}
}

// TestFolderResources: a watched resource that no manifest has, and that is nearly one that there is,
// is told once, by whatever knows the right name. What is watched and has no manifests yet, and
// manifests of kinds that nobody watches, are no mistakes, though their names are alike.
func TestFolderResources(t *testing.T) {
	types := ownScheme()
	types.AddKnownTypeWithName(routes.GroupVersion().WithKind("Router"), &Route{})
	one := func(gv schema.GroupVersion, resource string) []schema.GroupVersionResource {
		return []schema.GroupVersionResource{gv.WithResource(resource)}
	}
	gateway := gatewayAPI("").GroupVersion()
	many := []schema.GroupVersionResource{routes, ingresses, services, secrets, discoveryv1.SchemeGroupVersion.WithResource("endpointslices"),
		corev1.SchemeGroupVersion.WithResource("endpoints"), gatewayAPI("httproutes"), gatewayAPI("gateways"), gatewayAPI("tcproutes")}
	manifests := func(heads ...string) (text string) {
		for _, head := range heads {
			version, kind, _ := strings.Cut(head, " ")
			text += "---\napiVersion: " + version + "\nkind: " + kind + "\nmetadata: {name: a}\n"
		}
		return strings.TrimPrefix(text, "---\n")
	}
	const route, ingress, none = "example.com/v1 Route", "networking.k8s.io/v1 Ingress", "# none yet\n"
	for _, tt := range []struct {
		name, text string
		watched    []schema.GroupVersionResource
		types      *runtime.Scheme
		want       string
	}{
		{"a kind of the folder", manifests(route), one(routes.GroupVersion(), "routs"), nil,
			"/f.yaml:1: Route default/a: nothing reads it; the routs of example.com/v1 are watched, and no manifest has any: did you mean to watch routes?; everything else in the file is in use"},
		{"the singular", manifests(route), one(routes.GroupVersion(), "route"), nil,
			"/f.yaml:1: Route default/a: nothing reads it; the route of example.com/v1 are watched, and no manifest has any: did you mean to watch routes?; everything else in the file is in use"},
		{"a kind of client-go", none, one(ingresses.GroupVersion(), "ingreses"), nil,
			": no manifest has any of the ingreses of networking.k8s.io/v1, which are watched; did you mean ingresses?"},
		{"beside manifests of that", manifests(ingress), one(ingresses.GroupVersion(), "ingreses"), nil,
			": no manifest has any of the ingreses of networking.k8s.io/v1, which are watched; did you mean ingresses?"},
		{"a type of the program", none, one(routes.GroupVersion(), "routs"), ownScheme(),
			": no manifest has any of the routs of example.com/v1, which are watched; did you mean routes?"},
		{"nobody knows", none, one(routes.GroupVersion(), "routs"), nil, ""},
		{"none yet", none, many, types, ""},
		{"another resource", manifests(route), one(routes.GroupVersion(), "gateways"), nil, ""},
		{"it is there", manifests(route), one(routes.GroupVersion(), "routes"), nil, ""},
		{"a type", manifests("example.com/v1 Router"), many, types, ""},
		{"two types", manifests("example.com/v1 Router", route), many, types, ""},
		{"of others", manifests("apps/v1 Deployment", "v1 ConfigMap", "serving.knative.dev/v1 Service"), many, types, ""},
		{"routes of others", manifests(gateway.String()+" TLSRoute", gateway.String()+" TCPRoute"), many, types, ""},
		{"routes of all", manifests(gateway.String()+" TLSRoute", gateway.String()+" HTTPRoute", gateway.String()+" GRPCRoute", gateway.String()+" UDPRoute"), many, types, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "f.yaml"), tt.text)
			told := make(chan string, 9)
			folder := mustFolder(t, dir, &k8swatch.FolderOptions{Scheme: tt.types, OnError: func(err error) { told <- err.Error() }})
			var all []*k8swatch.Watcher
			for _, gvr := range tt.watched {
				all = append(all, mustNew(t, folder, gvr, nil))
			}
			start(t, folder)
			for _, w := range all {
				start(t, w)
				require.NoError(t, errOf(w.WaitForSync(soon(t))))
			}
			if tt.want == "" {
				require.Empty(t, folder.Errors())
				return
			}
			require.Equal(t, dir+tt.want, <-told)
			require.Len(t, folder.Errors(), 1)
			require.EqualError(t, folder.Errors()[0], dir+tt.want)
			require.Empty(t, told)
		})
	}
}
