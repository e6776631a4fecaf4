package e2e

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// blindfold is the way of one controller to the API server. On, it lets through what is
// about Leases, and nothing else.
type blindfold struct {
	*httptest.Server
	proxy *httputil.ReverseProxy

	mu   sync.Mutex
	on   bool
	ends map[*http.Request]func() // of requests under way
}

func newBlindfold(t *testing.T) *blindfold {
	t.Helper()
	transport, err := rest.TransportFor(env.cluster.config)
	must(t, err)
	to, err := url.Parse(env.cluster.config.Host)
	must(t, err)
	b := &blindfold{ends: map[*http.Request]func(){}, proxy: &httputil.ReverseProxy{Transport: transport, FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}}
	b.Server = httptest.NewServer(http.HandlerFunc(b.serve))
	t.Cleanup(func() {
		b.set(true)
		b.Close()
	})
	return b
}

func (b *blindfold) serve(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/apis/coordination.k8s.io/") {
		b.proxy.ServeHTTP(w, r)
		return
	}
	ctx, end := context.WithCancel(r.Context())
	defer end()
	b.mu.Lock()
	on := b.on
	b.ends[r] = end
	b.mu.Unlock()
	if on {
		http.Error(w, "blindfolded", http.StatusServiceUnavailable)
	} else {
		b.proxy.ServeHTTP(w, r.WithContext(ctx))
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.ends, r)
}

// set also ends the watches that are open.
func (b *blindfold) set(on bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.on = on
	for _, end := range b.ends {
		end()
	}
}

// kubeconfig returns one that goes this way.
func (b *blindfold) kubeconfig(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"e2e": {Server: b.URL}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"e2e": {}},
		Contexts:       map[string]*clientcmdapi.Context{"e2e": {Cluster: "e2e", AuthInfo: "e2e"}},
		CurrentContext: "e2e",
	}, file)
	must(t, err)
	return file
}

// TestStaleStandby: a standby whose watches are broken when it wins the Lease does not
// take back what the leader before it deployed, and goes on once they are mended.
func TestStaleStandby(t *testing.T) {
	b := newBlindfold(t)
	p := newPair(t, "-kubeconfig", b.kubeconfig(t))
	v := p.leader.visit()
	serves := func(n string) func() error { return v.expect("web.test", "/", endpoint(host(n), backendPort)) }
	eventually(t, "the site answers", serves("10"))
	b.set(true)
	p.endpoints("web", backendPort, host("20"))
	eventually(t, "the leader deploys a change that the standby does not see", serves("20"))

	mark := time.Now()
	p.leader.stop()
	eventually(t, "the standby wins the Lease", func() error {
		if _, ok := takenOver(p.leases(), mark); !ok {
			return errors.New("it has not")
		}
		return nil
	})
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); <-time.After(20 * time.Millisecond) {
		if err := serves("20")(); err != nil {
			t.Fatal("after the standby won the Lease: ", err)
		}
	}
	b.set(false)
	p.endpoints("web", backendPort, host("21"))
	eventually(t, "the standby deploys", serves("21"))
	if at, ok := p.ofStandby.first(mark); !ok {
		t.Errorf("it was not the standby: %v", at)
	}
}
