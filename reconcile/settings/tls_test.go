package settings

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hapticsdk/haptic/dataplane/dataplanetest"
	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/k8swatch/k8swatchtest"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/discover"
)

// authority issues certificates.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  string
}

func newAuthority(t *testing.T) *authority {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	a := &authority{t: t, key: key, cert: &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "a CA"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign}}
	der, err := x509.CreateCertificate(rand.Reader, a.cert, a.cert, key.Public(), key)
	require.NoError(t, err)
	a.cert, err = x509.ParseCertificate(der)
	require.NoError(t, err)
	a.pem = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	return a
}

// issue makes a certificate for a name, and its key.
func (a *authority) issue(name string) (certificate, key []byte) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(a.t, err)
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}, a.cert, private.Public(), a.key)
	require.NoError(a.t, err)
	text, err := x509.MarshalECPrivateKey(private)
	require.NoError(a.t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: text})
}

func (a *authority) pair(name string) *tls.Certificate {
	pair, err := tls.X509KeyPair(a.issue(name))
	require.NoError(a.t, err)
	return &pair
}

// tlsStage is a HAProxy pod whose Dataplane API speaks https as
// haproxy.edge.test.
type tlsStage struct {
	t      *testing.T
	api    *dataplanetest.Server
	secure *httptest.Server
	serves atomic.Pointer[tls.Certificate]
	source *k8swatchtest.Source
	live   *Live
	loop   *reconcile.Loop

	mu     sync.Mutex
	events []string
}

func secret(name string, data map[string]string) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "edge", Name: name}, Data: map[string][]byte{}}
	for key, text := range data {
		s.Data[key] = []byte(text)
	}
	return s
}

func newTLSStage(t *testing.T, server *tls.Certificate) *tlsStage {
	s := &tlsStage{t: t, api: dataplanetest.New(t, nil)}
	s.serves.Store(server)
	s.secure = httptest.NewUnstartedServer(s.api)
	s.secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.secure.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { // also for one that names no server
		return &tls.Config{Certificates: []tls.Certificate{*s.serves.Load()}}, nil
	}}
	s.secure.StartTLS()
	t.Cleanup(s.secure.Close)
	s.source = k8swatchtest.NewSource(k8swatchtest.Objects(`
apiVersion: v1
kind: Pod
metadata: {name: haproxy-0, namespace: edge, labels: {app: haproxy}}
status: {podIP: 127.0.0.1, containerStatuses: [{name: dataplane, ready: true, state: {running: {}}}]}
---
apiVersion: v1
kind: Secret
metadata: {name: haproxy-credentials, namespace: edge}
data: {dataplane_username: YWRtaW4=, dataplane_password: c2VjcmV0}
`)...)
	return s
}

func note[E any](s *tlsStage, bus *eventbus.Bus) {
	eventbus.Subscribe(bus, func(_ context.Context, d eventbus.Delivery[E]) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.events = append(s.events, fmt.Sprintf("%T %+v", d.Event, d.Event))
	})
}

// run runs everything until the test ends.
func (s *tlsStage) run() {
	bus := eventbus.New(nil)
	var err error
	s.live, err = NewLive(LiveOptions{Source: s.source, Bus: bus, Program: ProgramOptions{Namespace: "edge"}})
	require.NoError(s.t, err)
	s.loop, err = s.live.NewLoop(reconcile.Options{})
	require.NoError(s.t, err)
	note[discover.CredentialsInvalid](s, bus)
	note[discover.CredentialsUpdated](s, bus)
	note[reconcile.InstanceDeploymentFailed](s, bus)
	bus.Start()
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = s.live.Run(ctx) })
	wg.Go(func() { _ = s.loop.Run(ctx) })
	wg.Go(func() { _ = s.live.FollowPods(ctx) })
	s.t.Cleanup(func() {
		stop()
		wg.Wait()
		_ = bus.Close(context.Background())
	})
}

// apply has settings with a text and what they say of TLS.
func (s *tlsStage) apply(text, tls string) error {
	u, err := url.Parse(s.secure.URL)
	require.NoError(s.t, err)
	return s.live.ApplyYAML(s.t.Context(), "s.yaml", fmt.Appendf(nil, `
haproxyConfig: {template: "# %s\n"}
dataplane:
  podSelector: {matchLabels: {app: haproxy}}
  port: %s
  tls: {%s}
credentialsSecretRef: {name: haproxy-credentials}
reconcile: {retryInterval: 10ms, retryMaxInterval: 50ms, minDeploymentInterval: 10ms, debounceInterval: 10ms}
`, text, u.Port(), tls))
}

func (s *tlsStage) until(what string, is func() bool) {
	s.t.Helper()
	if !assert.Eventually(s.t, is, 60*time.Second, 5*time.Millisecond) {
		s.t.Fatalf("%s does not come: %v", what, s.said(""))
	}
}

// said returns the events that have a text.
func (s *tlsStage) said(text string) (found []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.events {
		if strings.Contains(e, text) {
			found = append(found, e)
		}
	}
	return found
}

func (s *tlsStage) has(text string) func() bool {
	return func() bool { return strings.Contains(s.api.Raw(), "# "+text+"\n") }
}

// TestFollowPodsTLS: a CA stands in a Secret or a file; one that is rotated is
// trusted on the next call, and until then the instance is not.
func TestFollowPodsTLS(t *testing.T) {
	for name, c := range map[string]struct {
		tls string
		put func(s *tlsStage, file, pem string)
	}{
		"Secret": {"caSecretRef: {name: ca}", func(s *tlsStage, _, pem string) {
			s.source.Apply(secret("ca", map[string]string{"ca.crt": pem}))
		}},
		"file": {"caFile: FILE", func(s *tlsStage, file, pem string) {
			require.NoError(s.t, os.WriteFile(file+".new", []byte(pem), 0o600))
			require.NoError(s.t, os.Rename(file+".new", file))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			first, second := newAuthority(t), newAuthority(t)
			s := newTLSStage(t, first.pair("haproxy.edge.test"))
			file := filepath.Join(t.TempDir(), "ca.pem")
			settings := strings.ReplaceAll(c.tls, "FILE", file) + ", serverName: haproxy.edge.test"
			s.run()
			require.NoError(t, s.apply("one", settings))
			s.until("the report", func() bool { return len(s.said("CredentialsInvalid")) > 0 })
			require.Empty(t, s.api.Requests(), "nothing goes to an instance that cannot be checked")
			c.put(s, file, first.pem)
			s.until("the first deployment", s.has("one"))

			s.serves.Store(second.pair("haproxy.edge.test"))
			s.secure.CloseClientConnections()
			require.NoError(t, s.apply("two", settings))
			s.until("the refusal", func() bool { return len(s.said("unknown authority")) > 0 })
			require.False(t, s.has("two")())
			c.put(s, file, "not a certificate")
			s.until("the report", func() bool { return len(s.said("CA: no certificate")) > 0 })
			c.put(s, file, "# both, for a while\n"+first.pem+second.pem)
			s.until("the deployment with the new CA", s.has("two"))
			require.NoError(t, s.apply("three", settings))
			s.until("the next deployment", s.has("three"))
		})
	}
}

// TestFollowPodsTLSChecks: who does not prove to be the HAProxy is not told the
// password.
func TestFollowPodsTLSChecks(t *testing.T) {
	const client = ""
	for name, c := range map[string]struct{ tls, refused string }{
		"the name of another":    {"caSecretRef: {name: ca}, serverName: api.edge.test", "valid for haproxy.edge.test, not api.edge.test"},
		"the address as name":    {"caSecretRef: {name: ca}", "cannot validate certificate for 127.0.0.1"},
		"nothing said":           {"", "cannot validate certificate for 127.0.0.1"},
		"the CAs of the system":  {"serverName: haproxy.edge.test", "unknown authority"},
		"the right one, by name": {"caSecretRef: {name: ca}, serverName: haproxy.edge.test", ""},
	} {
		t.Run(name, func(t *testing.T) {
			ca := newAuthority(t)
			s := newTLSStage(t, ca.pair("haproxy.edge.test"))
			s.source.Apply(secret("ca", map[string]string{"ca.crt": ca.pem}))
			s.run()
			require.NoError(t, s.apply("one", c.tls))
			if c.refused == "" {
				s.until("the deployment", s.has("one"))
				return
			}
			s.until("the refusal", func() bool { return len(s.said(c.refused)) > 0 })
			require.Empty(t, s.api.Requests())
		})
	}
}

// TestFollowPodsOfOneNamespace: a pod with the labels, in a namespace of somebody
// else, is not even watched; and settings that leave the namespace open are refused
// where the controller does not know its own.
func TestFollowPodsOfOneNamespace(t *testing.T) {
	ca := newAuthority(t)
	s := newTLSStage(t, ca.pair("haproxy.edge.test"))
	s.source.Apply(secret("ca", map[string]string{"ca.crt": ca.pem}))
	evil, err := s.source.Fetch(t.Context(), corev1.SchemeGroupVersion.WithResource("pods"), "edge", "haproxy-0")
	require.NoError(t, err)
	pod := evil.(*corev1.Pod).DeepCopy()
	pod.Namespace = "evil"
	s.source.Apply(pod)
	s.run()
	require.NoError(t, s.apply("{{ len(controller.haproxy_pods.List()) }}", "caSecretRef: {name: ca}, serverName: haproxy.edge.test"))
	s.until("the deployment", s.has("1"))
	instances := s.loop.State().Instances
	require.Len(t, instances, 1)
	require.Equal(t, "edge/haproxy-0", instances[0].Name)

	text := []byte("haproxyConfig: {template: x}\ndataplane: {podSelector: {matchLabels: {a: b}}}\n")
	_, err = ParseProgram("s.yaml", text, nil)
	require.ErrorContains(t, err, "s.yaml:2:26: dataplane.podSelector: no namespace: pods of all namespaces would get the password")
	live, err := NewLive(LiveOptions{Source: s.source})
	require.NoError(t, err)
	require.ErrorContains(t, live.FollowPods(t.Context()), "needs ProgramOptions.Namespace")
}

// TestDataplaneTLSConfig: what cannot be read whole is not trusted in part, and an
// error has nothing of a key.
func TestDataplaneTLSConfig(t *testing.T) {
	ca := newAuthority(t)
	_, key := ca.issue("controller")
	for name, c := range map[string]struct{ ca, want string }{
		"two CAs, with remarks":       {"# one\n" + ca.pem + "two\n" + ca.pem, ""},
		"no CA":                       {"", "CA: no certificate"},
		"a key in place of a CA":      {string(key), "CA: block 1 is a EC PRIVATE KEY, not a CERTIFICATE"},
		"a CA that is cut short":      {ca.pem + ca.pem[:100], "CA: 1 of 2 blocks cannot be read"},
		"a CA that is no certificate": {ca.pem + "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "CA: certificate 2: "},
	} {
		config, err := TLS{CAFile: "/ca.pem"}.discovery("edge").Config([]byte(c.ca))
		if c.want != "" {
			require.ErrorContains(t, err, c.want, name)
			require.NotContains(t, err.Error(), strings.Split(string(key), "\n")[1])
			continue
		}
		require.NoError(t, err, name)
		require.False(t, config.InsecureSkipVerify, name)
		require.EqualValues(t, tls.VersionTLS12, config.MinVersion, name)
	}
	config, err := TLS{}.discovery("edge").Config(nil)
	require.NoError(t, err)
	require.Nil(t, config, "Go's defaults")
}
