package discover

import (
	"context"
	"encoding/pem"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/k8swatch/k8swatchtest"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/event"
)

// canary is in every password: nothing may print it.
const canary = "c4nary"

// follows is a follower that runs, and what it tells.
type follows struct {
	*Follower
	source *k8swatchtest.Source

	mu        sync.Mutex
	targets   []string
	passwords map[string]string // by instance
	told      []string
}

// inFollower plays f beside a follower of the pods app=haproxy of the namespace edge.
func inFollower(t *testing.T, w Wanted, f func(t *testing.T, s *follows)) {
	synctest.Test(t, func(t *testing.T) {
		s := &follows{source: k8swatchtest.NewSource()}
		bus := eventbus.New(nil)
		eventbus.Subscribe(bus, func(_ context.Context, d eventbus.Delivery[any]) {
			var line string
			switch e := d.Event.(type) {
			case CredentialsUpdated:
				line = e.Report().Sentence + ": " + e.Secret
			case CredentialsInvalid:
				line = e.Report().Sentence
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			s.told = append(s.told, line)
		})
		bus.Start()
		var err error
		s.Follower, err = NewFollower(FollowerOptions{Source: s.source, Bus: bus,
			SetTargets: func(targets ...reconcile.Target) error {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.targets = nil
				for _, t := range targets {
					s.targets = append(s.targets, t.Name())
				}
				return nil
			},
			OnFound: func(_ context.Context, endpoints []dataplane.Endpoint, _ []*corev1.Pod) {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.passwords = map[string]string{}
				for _, e := range endpoints {
					s.passwords[e.Name+e.URL] = e.Password
				}
			}})
		require.NoError(t, err)
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { _ = s.Run(ctx) })
		defer func() {
			stop()
			wg.Wait()
			require.NoError(t, bus.Close(context.Background()))
			require.Empty(t, s.Watches())
		}()
		require.NoError(t, s.Set(w))
		f(t, s)
	})
}

// expect waits for the world to settle, and checks what is deployed to and what was
// told since the last call. Nothing has the canary.
func (s *follows) expect(t *testing.T, targets string, told ...string) {
	t.Helper()
	time.Sleep(5 * time.Second)
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	require.Equal(t, targets, strings.Join(s.targets, " "))
	require.Equal(t, told, s.told)
	require.NotContains(t, fmt.Sprintf("%+v %+v %v %+v", s.told, s.Credentials(), s.Check(), s.Watches()), canary)
	s.told = nil
}

func podOf(namespace, name string, label string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": label}},
		Status: corev1.PodStatus{PodIP: "192.0.2.1", ContainerStatuses: []corev1.ContainerStatus{
			{Name: "dataplane", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}}}
}

// secretOf has the keys but for those that are changed: to no value they are left out.
func secretOf(password string, change map[string]string) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "edge", Name: DefaultSecret}, Data: map[string][]byte{
		KeyDataplaneUsername: []byte("admin"), KeyDataplanePassword: []byte(canary + password)}}
	for key, value := range change {
		if s.Data[key] = []byte(value); value == "-" {
			delete(s.Data, key)
		}
	}
	return s
}

var edgePods = Wanted{Selector: "app=haproxy", Pods: PodOptions{Namespace: "edge"}, Secret: "edge/" + DefaultSecret}

// TestFollowerCredentials: what is wrong with a Secret is said once, by key; what was in
// use stays in use, also for new pods; and the end is said.
func TestFollowerCredentials(t *testing.T) {
	const secret = "credentials: Secret edge/haptic-credentials: "
	inFollower(t, edgePods, func(t *testing.T, s *follows) {
		s.source.Apply(podOf("edge", "haproxy-0", "haproxy"))
		s.expect(t, "", "no HAProxy can be reached: "+secret+"it does not exist")
		require.EqualError(t, s.Wait(t.Context()), secret+"it does not exist")
		require.Equal(t, CredentialsInfo{Source: "Secret edge/haptic-credentials", Error: secret + "it does not exist"}, s.Credentials())
		require.NoError(t, s.Check(), "there is a pod")
		for key, why := range map[string]string{KeyDataplaneUsername: "-", KeyDataplanePassword: ""} {
			s.source.Apply(secretOf("one", map[string]string{key: why}))
			s.expect(t, "", "no HAProxy can be reached: "+secret+"missing or empty: "+key)
		}
		s.source.Apply(secretOf("one", nil))
		s.expect(t, "edge/haproxy-0", "credentials are in use: edge/haptic-credentials")
		require.NoError(t, s.Wait(t.Context()))
		info := s.Credentials()
		require.Len(t, info.Keys, 2)
		require.True(t, info.InUse)
		require.Empty(t, info.Error)

		s.source.Delete(secretOf("", nil))
		s.expect(t, "edge/haproxy-0", "the credentials from before stay in use: "+secret+"it does not exist")
		require.True(t, s.Credentials().InUse)
		require.NotEmpty(t, s.Credentials().Error)
		s.source.Apply(podOf("edge", "haproxy-1", "haproxy"))
		s.expect(t, "edge/haproxy-0 edge/haproxy-1")
		require.Equal(t, canary+"one", s.passwords["edge/haproxy-1https://192.0.2.1:5555"])

		// Pods of other labels were not what the password was for.
		w := edgePods
		w.Selector = "app=other"
		s.source.Apply(podOf("edge", "other-0", "other"))
		require.NoError(t, s.Set(w))
		s.expect(t, "edge/haproxy-0 edge/haproxy-1")
		require.NoError(t, s.Set(edgePods))

		s.source.Apply(secretOf("two", nil))
		s.expect(t, "edge/haproxy-0 edge/haproxy-1", "credentials are in use: edge/haptic-credentials")
		require.Equal(t, canary+"two", s.passwords["edge/haproxy-0https://192.0.2.1:5555"])
	})
}

// TestFollowerPods: only those of the namespace count, unless all are said. That there
// are none is said, and no longer when one comes.
func TestFollowerPods(t *testing.T) {
	const none = "no HAProxy is found: no pod of namespace edge with the labels app=haproxy has a container dataplane that is ready"
	inFollower(t, edgePods, func(t *testing.T, s *follows) {
		s.expect(t, "", "no HAProxy can be reached: credentials: Secret edge/haptic-credentials: it does not exist")
		require.EqualError(t, s.Check(), none, "both are said")
		s.source.Apply(secretOf("", nil), podOf("evil", "haproxy-0", "haproxy"), podOf("edge", "other", "web"))
		s.expect(t, "", "credentials are in use: edge/haptic-credentials")
		require.EqualError(t, s.Check(), none)
		require.Empty(t, s.passwords)
		s.source.Apply(podOf("edge", "haproxy-0", "haproxy"))
		s.expect(t, "edge/haproxy-0")
		require.NoError(t, s.Check())
		require.Len(t, s.passwords, 1)

		w := edgePods
		w.Pods.Namespace = AllNamespaces
		require.NoError(t, s.Set(w))
		s.expect(t, "edge/haproxy-0 evil/haproxy-0")
		require.NoError(t, s.Set(Wanted{}))
		s.expect(t, "")
		require.EqualError(t, s.Check(), "no instance is named: neither pods by their labels nor URLs")
	})
}

// TestFollowerURLs: those need no Secret where credentials are given.
func TestFollowerURLs(t *testing.T) {
	w := Wanted{URLs: []string{"http://192.0.2.1:5555", "ftp://192.0.2.2"}, Credentials: Credentials{DataplaneUsername: "u", DataplanePassword: canary}}
	inFollower(t, w, func(t *testing.T, s *follows) {
		s.expect(t, "http://192.0.2.1:5555")
		require.ErrorContains(t, s.Check(), "ftp://192.0.2.2")
		require.Equal(t, CredentialsInfo{Source: "environment", InUse: true}, s.Credentials())
		w.Credentials = Credentials{}
		require.NoError(t, s.Set(w))
		s.expect(t, "http://192.0.2.1:5555", "the credentials from before stay in use: credentials: there are none: name a Secret, or give a user name and a password")
	})
}

// TestFollowerListFails: a list of pods that fails for a while takes no target away, and
// is tried again.
func TestFollowerListFails(t *testing.T) {
	var mu sync.Mutex
	var fails error
	w := edgePods
	w.List = func(context.Context) ([]*corev1.Pod, error) {
		mu.Lock()
		defer mu.Unlock()
		if fails != nil {
			return nil, fails
		}
		return []*corev1.Pod{podOf("edge", "haproxy-0", "haproxy")}, nil
	}
	change := func(err error) { mu.Lock(); defer mu.Unlock(); fails = err }
	inFollower(t, w, func(t *testing.T, s *follows) {
		s.expect(t, "", "no HAProxy can be reached: credentials: Secret edge/haptic-credentials: it does not exist")
		s.source.Apply(secretOf("", nil))
		s.expect(t, "edge/haproxy-0", "credentials are in use: edge/haptic-credentials")
		change(fmt.Errorf("boom"))
		s.Look()
		s.expect(t, "edge/haproxy-0")
		s.expect(t, "edge/haproxy-0")
		s.expect(t, "edge/haproxy-0")
		require.EqualError(t, s.Check(), "pods: could not be read yet: boom")
		change(nil)
		time.Sleep(10 * time.Second)
		s.expect(t, "edge/haproxy-0")
		require.NoError(t, s.Check())
	})
}

// TestFollowerCAFile: that a file is in order again is said, too, where the credentials
// are from the environment.
func TestFollowerCAFile(t *testing.T) {
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	good := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	file := filepath.Join(t.TempDir(), "ca.pem")
	w := Wanted{URLs: []string{"https://192.0.2.1:5555"}, Credentials: Credentials{DataplaneUsername: "u", DataplanePassword: canary}, TLS: TLS{CAFile: file}}
	bus, told := eventbus.New(nil), make(chan string, 9)
	eventbus.Subscribe(bus, func(_ context.Context, d eventbus.Delivery[event.Event]) { told <- d.Event.Report().Sentence })
	bus.Start()
	f, err := NewFollower(FollowerOptions{Bus: bus, SetTargets: func(...reconcile.Target) error { return nil }})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	for _, text := range []string{string(good), "broken", string(good), string(good)} {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		wrong, missing := f.find(ctx, &w)
		f.report(&w, wrong, missing)
	}
	stop()
	f.wg.Wait()
	require.NoError(t, bus.Close(context.Background()))
	close(told)
	var all []string
	for sentence := range told {
		all = append(all, sentence)
	}
	require.Equal(t, []string{"the credentials from before stay in use: TLS: " + file + ": CA: no certificate", "credentials are in use"}, all)
}

// TestWantedIsChecked: the error names the field.
func TestWantedIsChecked(t *testing.T) {
	none := func(...reconcile.Target) error { return nil }
	_, err := NewFollower(FollowerOptions{})
	require.EqualError(t, err, "discover: FollowerOptions.SetTargets is missing")
	for want, w := range map[string]Wanted{
		"PodOptions.Namespace is missing: pods of all namespaces would get the password": {Selector: "a=b"},
		`PodOptions.Scheme "ftp"`:                       {Selector: "a=b", Pods: PodOptions{Namespace: "edge", Scheme: "ftp"}},
		"Wanted.Selector: ":                             {Selector: "a in b", Pods: PodOptions{Namespace: "edge"}},
		"Wanted.URLs and Wanted.Selector exclude each":  {Selector: "a=b", URLs: []string{"http://a"}},
		`Wanted.Secret "x": want namespace/name`:        {URLs: []string{"http://a"}, Secret: "x"},
		`Wanted.TLS.CASecret "/x": want namespace/name`: {URLs: []string{"http://a"}, TLS: TLS{CASecret: "/x"}},
		"FollowerOptions.Source is missing":             {URLs: []string{"http://a"}, Secret: "a/x"},
	} {
		opts := FollowerOptions{SetTargets: none, Source: k8swatchtest.NewSource()}
		if strings.HasPrefix(want, "FollowerOptions") {
			opts.Source = nil
		}
		f, err := NewFollower(opts)
		require.NoError(t, err)
		require.ErrorContains(t, f.Set(w), want)
	}
}
