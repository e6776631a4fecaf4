package k8swatch_test

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/hapticsdk/haptic/k8swatch"
)

// apiServer answers lists over HTTP/2 with TLS, and keeps watches open.
type apiServer struct {
	*httptest.Server
	mu       sync.Mutex
	requests []string
	told     bool // of an ingress that came later, which is in lists from then on
}

func newAPIServer(t *testing.T) *apiServer {
	s := &apiServer{}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func (s *apiServer) serve(w http.ResponseWriter, r *http.Request) {
	watched, of := r.URL.Query().Get("watch") != "", path.Base(r.URL.Path)
	s.mu.Lock()
	s.requests = append(s.requests, fmt.Sprintf("%s %s %s %s", r.Proto, r.URL.Path, r.Header.Get("Accept"), r.URL.RawQuery))
	s.told = s.told || watched && of == "ingresses"
	told := s.told
	s.mu.Unlock()
	switch {
	case watched:
		w.Header().Set("Content-Type", "application/json")
		if of == "ingresses" {
			fmt.Fprint(w, `{"type":"ADDED","object":{"apiVersion":"networking.k8s.io/v1","kind":"Ingress",
				"metadata":{"namespace":"shop","name":"late","resourceVersion":"8"}}}`)
		}
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	case of == "ingresses":
		list := &networkingv1.IngressList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}, Items: []networkingv1.Ingress{*ingress("shop", "web", "a.test")}}
		if told {
			late := ingress("shop", "late")
			late.ResourceVersion, list.ResourceVersion = "8", "8"
			list.Items = append(list.Items, *late)
		}
		list.SetGroupVersionKind(networkingv1.SchemeGroupVersion.WithKind("IngressList"))
		w.Header().Set("Content-Type", runtime.ContentTypeProtobuf)
		if err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(list, w); err != nil {
			panic(err)
		}
	case of == "routes":
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"apiVersion":"example.com/v1","kind":"RouteList","metadata":{"resourceVersion":"7"},"items":[
			{"apiVersion":"example.com/v1","kind":"Route","metadata":{"namespace":"shop","name":"r"},"spec":{"host":"r.test"}}]}`)
	default:
		status := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "", errors.New("no")).Status()
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		if err := scheme.Codecs.LegacyCodec(schema.GroupVersion{Version: "v1"}).Encode(&status, w); err != nil {
			panic(err)
		}
	}
}

func (s *apiServer) kubeconfig(t *testing.T, url string) string {
	path := filepath.Join(t.TempDir(), "kubeconfig")
	write(t, path, fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: %q, insecure-skip-tls-verify: true}}]
users: [{name: u, user: {token: hunter2}}]
contexts: [{name: x, context: {cluster: c, user: u, namespace: mine}}]
current-context: x
`, url))
	return path
}

func TestCluster(t *testing.T) {
	server := newAPIServer(t)
	c, err := k8swatch.NewCluster(&k8swatch.ClusterOptions{Kubeconfig: server.kubeconfig(t, server.URL), UserAgent: "test"})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	require.Equal(t, float32(50), c.RESTConfig().QPS)
	typed := mustNew(t, c, ingresses, &k8swatch.Options{NoWatchList: true, LabelSelector: "app=x"})
	untyped := mustNew(t, c, routes, &k8swatch.Options{NoWatchList: true, Namespace: "shop", IndexBy: []string{"spec.host"}})
	forbidden := mustNew(t, c, schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, &k8swatch.Options{NoWatchList: true, Namespace: "shop"})
	for _, w := range []*k8swatch.Watcher{typed, untyped, forbidden} {
		start(t, w)
	}
	synced(t, typed, 1)
	synced(t, untyped, 1)
	if got := k8swatch.Read[*networkingv1.Ingress](typed.Snapshot()).GetSingle("shop", "web"); got == nil || got.Spec.Rules[0].Host != "a.test" || got.Kind != "Ingress" {
		t.Errorf("typed %+v", got)
	}
	require.NotNil(t, untyped.Snapshot().GetSingle("r.test"), "the custom resource is not there")
	_, err = forbidden.WaitForSync(soon(t))
	var sync *k8swatch.SyncError
	if !errors.As(err, &sync) || !errors.Is(err, k8swatch.ErrForbidden) || sync.Verb != "list" || !apierrors.IsForbidden(err) ||
		!strings.HasPrefix(err.Error(), "cannot list secrets in namespace shop: forbidden") {
		t.Errorf("got %v", err)
	}
	server.mu.Lock()
	defer server.mu.Unlock()
	all := strings.Join(server.requests, "\n")
	for _, want := range []string{
		"HTTP/2.0 /apis/networking.k8s.io/v1/ingresses application/vnd.kubernetes.protobuf,application/json",
		"labelSelector=app%3Dx",
		"HTTP/2.0 /apis/example.com/v1/namespaces/shop/routes application/json",
		"HTTP/2.0 /api/v1/namespaces/shop/secrets application/vnd.kubernetes.protobuf",
	} {
		require.Contains(t, all, want)
	}
}

func TestNewClusterRefuses(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	require.ErrorContains(t, errOf(k8swatch.NewCluster(&k8swatch.ClusterOptions{Kubeconfig: missing})), missing)
	t.Setenv("KUBECONFIG", missing)
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	_, err := k8swatch.NewCluster(nil)
	require.ErrorIs(t, err, k8swatch.ErrNoCluster)
	require.Equal(t, "k8swatch: no cluster: not in a pod, and neither ClusterOptions.Kubeconfig, $KUBECONFIG nor ~/.kube/config names one", err.Error())
}

// halfOpen is a network that can swallow everything without closing anything.
type halfOpen struct {
	net.Listener
	target  string
	swallow atomic.Bool
	wg      sync.WaitGroup
	mu      sync.Mutex
	open    []net.Conn
}

// heal ends the silence and resets what was opened in it.
func (h *halfOpen) heal() {
	h.swallow.Store(false)
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.open {
		c.Close()
	}
}

func newHalfOpen(t *testing.T, target string) *halfOpen {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	h := &halfOpen{Listener: l, target: target}
	h.wg.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			h.wg.Go(func() { h.connect(in) })
		}
	})
	t.Cleanup(func() { l.Close(); h.wg.Wait() })
	return h
}

func (h *halfOpen) connect(in net.Conn) {
	defer in.Close()
	h.mu.Lock()
	h.open = append(h.open, in)
	h.mu.Unlock()
	out, err := net.Dial("tcp", h.target)
	if err != nil {
		return
	}
	defer out.Close()
	pipe := func(to, from net.Conn) {
		buf := make([]byte, 4096)
		for {
			n, err := from.Read(buf)
			if err != nil {
				to.Close()
				return
			}
			if !h.swallow.Load() {
				_, _ = to.Write(buf[:n])
			}
		}
	}
	var back sync.WaitGroup
	back.Go(func() { pipe(in, out) })
	pipe(out, in)
	back.Wait()
}

// TestHalfOpen: without pings the watch would be silent for ever.
func TestHalfOpen(t *testing.T) {
	server := newAPIServer(t)
	network := newHalfOpen(t, server.Listener.Addr().String())
	c, err := k8swatch.NewCluster(&k8swatch.ClusterOptions{
		Kubeconfig: server.kubeconfig(t, "https://"+network.Addr().String()),
		// Long enough for a busy machine to answer most pings. One that is lost by
		// mistake has the objects read again: they are the same.
		ReadIdleTimeout: 50 * time.Millisecond, PingTimeout: 500 * time.Millisecond,
	})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	w := watching(t, c, ingresses, &k8swatch.Options{NoWatchList: true}, 1)
	eventually(t, "the watch is open", func() bool { return w.Snapshot().Len() == 2 })
	network.swallow.Store(true)
	var s k8swatch.State
	eventually(t, "the silence is found", func() bool { s = w.State(); return s.Phase == k8swatch.PhaseStale })
	if s.StaleSince.IsZero() || s.Objects != 2 || !errors.Is(s.Err, k8swatch.ErrUnreachable) {
		t.Errorf("state %+v", s)
	}
	network.heal()
	eventually(t, "the return is found", func() bool { return w.State().Phase == k8swatch.PhaseSynced })
}

// TestClusterClose: no connection that is opened late outlives it. A transport
// goes on dialling for a request that was given up.
func TestClusterClose(t *testing.T) {
	server := newAPIServer(t)
	c, err := k8swatch.NewCluster(&k8swatch.ClusterOptions{Kubeconfig: server.kubeconfig(t, server.URL)})
	require.NoError(t, err)
	dial, address := c.RESTConfig().Dial, server.Listener.Addr().String()
	before, err := dial(t.Context(), "tcp", address)
	require.NoError(t, err)
	c.Close()
	require.ErrorIs(t, errOf(before.Read(make([]byte, 1))), net.ErrClosed, "open before Close")
	require.ErrorIs(t, errOf(dial(t.Context(), "tcp", address)), net.ErrClosed, "opened after Close")
}
