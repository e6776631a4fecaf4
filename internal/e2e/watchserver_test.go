package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/hapticsdk/haptic/k8swatch"
)

// wire is the network between a watcher and the API server.
type wire struct {
	listener net.Listener
	running  sync.WaitGroup

	mu      sync.Mutex
	open    map[net.Conn]struct{}
	refused bool // connections are closed as soon as they are open
	silent  bool // connections stay open and nothing passes
}

func newWire(t testing.TB) *wire {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(apiHost, "0"))
	must(t, err)
	w := &wire{listener: l, open: map[net.Conn]struct{}{}}
	w.running.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			w.running.Go(func() { w.connect(in) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		w.cut()
		w.running.Wait()
	})
	return w
}

// join counts a connection as open, unless it is to be refused.
func (w *wire) join(c net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.refused {
		_ = c.Close()
		return false
	}
	w.open[c] = struct{}{}
	return true
}

func (w *wire) leave(c net.Conn) {
	_ = c.Close()
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.open, c)
}

func (w *wire) connect(in net.Conn) {
	if !w.join(in) {
		return
	}
	defer w.leave(in)
	out, err := net.Dial("tcp", net.JoinHostPort(apiHost, apiPort))
	if err != nil || !w.join(out) {
		return
	}
	defer w.leave(out)
	var back sync.WaitGroup
	back.Go(func() { w.pipe(in, out) })
	w.pipe(out, in)
	back.Wait()
}

// pipe ends both directions when one ends.
func (w *wire) pipe(to, from net.Conn) {
	defer to.Close()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		w.mu.Lock()
		silent := w.silent
		w.mu.Unlock()
		if err != nil {
			return
		}
		if !silent {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
	}
}

// cut ends all connections, wherever in an answer they are.
func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.open {
		_ = c.Close()
	}
}

func (w *wire) refuse(on bool) {
	w.mu.Lock()
	w.refused = on
	w.mu.Unlock()
	if on {
		w.cut()
	}
}

func (w *wire) silence(on bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.silent = on
}

// watchServer is the real API server as one under test.
type watchServer struct {
	*kube
	wire    *wire
	source  *k8swatch.Cluster
	dynamic *dynamic.DynamicClient // past the wire, for custom resources
}

func newWatchServer(t *testing.T) *watchServer {
	t.Helper()
	s := &watchServer{kube: newKube(t), wire: newWire(t)}
	s.source = s.connect(apiToken, nil)
	var err error
	s.dynamic, err = dynamic.NewForConfig(env.cluster.config)
	s.must(err)
	t.Cleanup(func() {
		err := env.cluster.client.CoreV1().ConfigMaps(s.ns).DeleteCollection(context.Background(), metav1.DeleteOptions{}, metav1.ListOptions{})
		if err != nil {
			t.Error(err)
		}
	})
	return s
}

// connect returns the cluster, at the end of the wire, for who has the token.
// Options may say when a connection counts as lost.
func (s *watchServer) connect(token string, opts *k8swatch.ClusterOptions) *k8swatch.Cluster {
	s.t.Helper()
	if opts == nil {
		opts = &k8swatch.ClusterOptions{}
	}
	config, err := clientcmd.LoadFromFile(env.cluster.kubeconfig)
	s.must(err)
	for _, c := range config.Clusters {
		c.Server = "https://" + s.wire.listener.Addr().String()
	}
	for _, user := range config.AuthInfos {
		user.Token = token
	}
	file := filepath.Join(s.t.TempDir(), "kubeconfig")
	s.must(clientcmd.WriteToFile(*config, file))
	opts.Kubeconfig, opts.QPS, opts.Burst = file, 1000, 1000
	source, err := k8swatch.NewCluster(opts)
	s.must(err)
	s.t.Cleanup(source.Close)
	return source
}

func (s *watchServer) Source() k8swatch.MetadataSource { return s.source }
func (s *watchServer) Namespace() string               { return s.ns }

func (s *watchServer) Apply(ctx context.Context, cm *corev1.ConfigMap) error {
	client := env.cluster.client.CoreV1().ConfigMaps(s.ns)
	_, err := client.Update(ctx, cm, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		_, err = client.Create(ctx, cm, metav1.CreateOptions{})
	}
	return err
}

func (s *watchServer) Delete(ctx context.Context, name string) error {
	return env.cluster.client.CoreV1().ConfigMaps(s.ns).Delete(ctx, name, metav1.DeleteOptions{})
}

// Compact makes the API server forget its cache of events as well: only another
// one does.
func (s *watchServer) Compact(ctx context.Context) error {
	if err := compactEtcd(ctx); err != nil {
		return err
	}
	env.cluster.api.kill()
	return env.cluster.startAPI()
}

// compactEtcd makes etcd forget all revisions before the current one.
func compactEtcd(ctx context.Context) error {
	var now struct {
		Header struct {
			Revision string `json:"revision"`
		} `json:"header"`
	}
	if err := askEtcd(ctx, "range", map[string]any{"key": []byte("none")}, &now); err != nil {
		return err
	}
	return askEtcd(ctx, "compaction", map[string]any{"revision": now.Header.Revision, "physical": true}, nil)
}

// Settle waits until check returns nil.
func (s *watchServer) Settle(check func() error) error {
	return poll(s.t.Context(), patience, check)
}

// askEtcd calls etcd's gateway for JSON.
func askEtcd(ctx context.Context, call string, ask map[string]any, answer any) error {
	body, err := json.Marshal(ask)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://127.0.0.1:2379/v3/kv/"+call, bytes.NewReader(body))
	if err != nil {
		return err
	}
	transport := &http.Transport{DisableKeepAlives: true}
	resp, err := (&http.Client{Transport: transport, Timeout: 10 * time.Second}).Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK && !bytes.Contains(text, []byte("has been compacted")) {
		return fmt.Errorf("etcd %s: %s: %s", call, resp.Status, text)
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(text, answer)
}
