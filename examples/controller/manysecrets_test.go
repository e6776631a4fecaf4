package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/examples/controller/ingress"
	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/k8swatch/k8swatchtest"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/kit"
)

// victims is a namespace that uses all that an Ingress can name a Secret for.
const victims = `
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: ours}
spec: {controller: ` + ingress.ControllerName + `}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  namespace: shop
  name: web
  annotations:
    nginx.ingress.kubernetes.io/auth-type: basic
    nginx.ingress.kubernetes.io/auth-secret: shop/users
    haproxy.org/server-ca: ca
spec:
  ingressClassName: ours
  tls: [{hosts: [shop.demo.test], secretName: tls}]
  rules: [{host: shop.demo.test, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}}]
---
apiVersion: v1
kind: Service
metadata: {namespace: shop, name: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: v1
kind: Secret
metadata: {namespace: shop, name: users}
type: Opaque
stringData: {auth: "mia:$5$rounds=1000$saltsalt$cuaC4.oiZoSEjFiNIoQFROlQSTJGLaOnUwSLS/Yxm85"}
`

// tlsSecret is a Secret with a certificate of shop.demo.test.
func tlsSecret(t *testing.T, namespace, name string) *corev1.Secret {
	crt, key := issue(t, 1, 90*24*time.Hour)
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{corev1.TLSCertKey: crt, corev1.TLSPrivateKeyKey: key}}
}

// stuffed is a Secret of 750 KB.
func stuffed(name string, of corev1.SecretType) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "hostile", Name: name}, Type: of,
		Data: map[string][]byte{corev1.TLSCertKey: make([]byte, 750_000), corev1.TLSPrivateKeyKey: {}}}
}

// ofSource is a controller of a cluster in memory, whose watchers are synced.
func ofSource(t *testing.T, source *k8swatchtest.Source, flags ...string) *controller {
	t.Helper()
	cfg, err := parseFlags(append(flags, "-default-certificate", "shop/default", "-debounce", "1ms"), kit.NewLog(t.Output()))
	require.NoError(t, err)
	c := &controller{cfg: cfg, log: slog.New(slog.DiscardHandler), bus: eventbus.New(nil), source: &kit.Source{Source: source}}
	require.NoError(t, c.newWatchers())
	c.loop, err = reconcile.New(reconcile.Options{
		Renderer:  reconcile.RendererFunc(func(context.Context) (*reconcile.Rendered, error) { return nil, errors.New("nothing renders") }),
		Validator: reconcile.ValidatorFunc(func(context.Context, *dataplane.Config) error { return nil }),
		View:      c.view,
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- c.watchers.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	_, err = c.watchers.WaitForSync(ctx)
	require.NoError(t, err)
	return c
}

// render returns the routes of now.
func (c *controller) render(t *testing.T) *ingress.Routes {
	t.Helper()
	in, err := c.input(t.Context())
	require.NoError(t, err)
	in.Accepted()
	return c.routes.Load()
}

// until waits for a condition.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !holds(); <-time.After(time.Millisecond) {
		require.True(t, time.Now().Before(deadline), "waited in vain for %s", what)
	}
}

func heap() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// secretsRefused are the reports that are of Secrets, sorted as they come.
func secretsRefused(r *ingress.Routes) (all []string) {
	for _, refused := range r.Refused {
		if strings.Contains(refused.String(), "Secret ") {
			all = append(all, refused.String())
		}
	}
	return all
}

// TestSecretsThatNobodyNames: they take no memory, and the first render has all that are named.
// A namespace that names more than it has room for is refused by name, and no other is.
func TestSecretsThatNobodyNames(t *testing.T) {
	source := k8swatchtest.NewSource(k8swatchtest.Objects(victims)...)
	own, ca := tlsSecret(t, "shop", "tls"), tlsSecret(t, "shop", "ca")
	source.Apply(own, tlsSecret(t, "shop", "default"), ca)
	for i := range 60 {
		source.Apply(stuffed(fmt.Sprint("tls-", i), corev1.SecretTypeTLS), stuffed(fmt.Sprint("opaque-", i), corev1.SecretTypeOpaque))
	}
	before := heap()
	c := ofSource(t, source)
	c.newModel(nil)
	r := c.render(t)
	require.Empty(t, secretsRefused(r))
	require.Len(t, r.Certificates, 1)
	require.NotEmpty(t, r.DefaultCertificate)
	require.Equal(t, 1, r.Userlists.Len())
	require.Less(t, heap()-before, 10<<20, "bytes for 120 Secrets of 750 KB that nobody names")

	// A rotation is live, and so is a Secret that is named from now on.
	rotated := tlsSecret(t, "shop", "tls")
	source.Apply(rotated)
	until(t, "the rotation", func() bool {
		r := c.render(t)
		require.Len(t, r.Certificates, 1)
		return strings.Contains(fmt.Sprint(r.Certificates[0].Secret.Data), fmt.Sprint(rotated.Data[corev1.TLSCertKey]))
	})

	many := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "hostile", Name: "many"}}
	class := "ours"
	many.Spec.IngressClassName = &class
	for i := range 50 {
		many.Spec.TLS = append(many.Spec.TLS, networkingv1.IngressTLS{Hosts: []string{fmt.Sprintf("h%d.test", i)}, SecretName: fmt.Sprint("tls-", i)})
	}
	source.Apply(many)
	until(t, "the Ingress", func() bool { return strings.Contains(fmt.Sprint(secretsRefused(c.render(t))), "hostile/tls-49") })
	r = c.render(t)
	beyond := 0
	for _, refused := range secretsRefused(r) {
		require.Contains(t, refused, "hostile/tls-", "another namespace is refused")
		if strings.Contains(refused, "(secret-bytes-per-namespace)") {
			beyond++
			require.Contains(t, refused, "what is named of namespace hostile has 15.")
		}
	}
	require.Equal(t, 50-22, beyond, "22 of 750 KB fit into 16 MiB:\n%s", strings.Join(secretsRefused(r), "\n"))
	require.Len(t, r.Certificates, 1)
	require.Less(t, heap()-before, 28<<20, "bytes for 50 more that an Ingress names")
	runtime.KeepAlive(source)
}

// TestTheCertificateOfWhatIsDeployed: a new process finds the Secret with which a host is served,
// even if the Ingress names another one by now, which is not good.
func TestTheCertificateOfWhatIsDeployed(t *testing.T) {
	source := k8swatchtest.NewSource(k8swatchtest.Objects(victims)...)
	served := tlsSecret(t, "shop", "before")
	bad := stuffed("tls", corev1.SecretTypeTLS)
	bad.Namespace = "shop"
	source.Apply(served, bad)
	content := append(append([]byte{}, served.Data[corev1.TLSCertKey]...), served.Data[corev1.TLSPrivateKeyKey]...)
	previous, err := dataplane.NewConfig("global\n",
		dataplane.File{Kind: dataplane.Map, Name: "hosts.map", Content: []byte("shop.demo.test shop\n")},
		dataplane.File{Kind: dataplane.CRTList, Name: "certificates.txt", Content: []byte("/etc/haproxy/ssl/shop_before.pem shop.demo.test\n")},
		dataplane.File{Kind: dataplane.Certificate, Name: "shop_before.pem", Content: content},
	)
	require.NoError(t, err)
	c := ofSource(t, source)
	c.holdDeployed(t.Context(), previous)
	c.newModel(previous)
	r := c.render(t)
	require.Len(t, r.Certificates, 1, "%v", r.Refused)
	require.Equal(t, "before", r.Certificates[0].Secret.Name)
}

// TestObjectsWithoutNumber: annotations that nothing reads are held as far as their namespace has
// room, and another namespace is served.
func TestObjectsWithoutNumber(t *testing.T) {
	t.Parallel()
	source := k8swatchtest.NewSource(k8swatchtest.Objects(victims)...)
	source.Apply(tlsSecret(t, "shop", "tls"), tlsSecret(t, "shop", "default"), tlsSecret(t, "shop", "ca"))
	for i := range 400 {
		junk := metav1.ObjectMeta{Namespace: "hostile", Name: fmt.Sprint("x", i), Annotations: map[string]string{"junk": strings.Repeat("x", 200_000)}}
		source.Apply(&networkingv1.Ingress{ObjectMeta: junk}, &corev1.Service{ObjectMeta: junk})
	}
	c := ofSource(t, source, "-limit", "object-bytes-per-namespace=8000000")
	c.newModel(nil)
	r := c.render(t)
	require.Len(t, r.Certificates, 1)
	require.Equal(t, 1, r.Prefix.Len())
	for _, w := range []*k8swatch.Watcher{c.ingresses[0], c.services[0]} {
		require.Equal(t, 400-39, w.State().Refused)
		require.Equal(t, 39+1, w.State().Objects)
	}
}
