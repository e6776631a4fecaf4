package k8swatch_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hapticsdk/haptic/k8swatch"
)

// TestHealthyFolderIsSilent: what is watched and has no manifests yet, and manifests
// of kinds that nobody watches, are no mistakes, though their names are alike.
func TestHealthyFolderIsSilent(t *testing.T) {
	types := ownScheme()
	types.AddKnownTypeWithName(routes.GroupVersion().WithKind("Router"), &Route{})
	gateway := schema.GroupVersion{Group: "gateway.networking.k8s.io", Version: "v1"}
	for name, text := range map[string]string{
		"none":         "# none yet\n",
		"a type":       "apiVersion: example.com/v1\nkind: Router\nmetadata: {name: a}\n",
		"two types":    "apiVersion: example.com/v1\nkind: Router\nmetadata: {name: a}\n---\napiVersion: example.com/v1\nkind: Route\nmetadata: {name: a}\n",
		"others":       "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\napiVersion: serving.knative.dev/v1\nkind: Service\nmetadata: {name: a}\n",
		"gateway":      "apiVersion: gateway.networking.k8s.io/v1\nkind: TLSRoute\nmetadata: {name: a}\n---\napiVersion: gateway.networking.k8s.io/v1\nkind: TCPRoute\nmetadata: {name: a}\n",
		"gateway both": "apiVersion: gateway.networking.k8s.io/v1\nkind: TLSRoute\nmetadata: {name: a}\n---\napiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: a}\n---\napiVersion: gateway.networking.k8s.io/v1\nkind: GRPCRoute\nmetadata: {name: a}\n---\napiVersion: gateway.networking.k8s.io/v1\nkind: UDPRoute\nmetadata: {name: a}\n",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, "f.yaml"), []byte(text), 0o600))
			folder, err := k8swatch.NewFolder(dir, &k8swatch.FolderOptions{Scheme: types})
			require.NoError(t, err)
			for _, gvr := range []schema.GroupVersionResource{routes, ingresses, services, corev1.SchemeGroupVersion.WithResource("secrets"),
				discoveryv1.SchemeGroupVersion.WithResource("endpointslices"), corev1.SchemeGroupVersion.WithResource("endpoints"),
				gateway.WithResource("httproutes"), gateway.WithResource("gateways"), gateway.WithResource("tcproutes")} {
				mustNew(t, folder, gvr, nil)
			}
			require.Empty(t, folder.Errors())
		})
	}
}
