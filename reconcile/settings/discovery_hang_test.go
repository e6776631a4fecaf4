package settings

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/internal/follow"
	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/k8swatch/k8swatchtest"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/discover"
)

// discovery is a controller that finds its instances in a cluster that can hang. It
// knows one HAProxy from before.
type discovery struct {
	source *k8swatchtest.Source
	live   *Live
	loop   *reconcile.Loop
	known  *fakeTarget
	stop   context.CancelFunc
	ended  sync.WaitGroup

	mu   sync.Mutex
	hung map[string]chan struct{} // resources whose requests nobody answers before that is closed
	told []string
}

const discoverySettings = `
watchedResources:
  configs: {apiVersion: v1, resources: services}
haproxyConfig:
  template: |
    {%% for s in resources.configs.List() %%}
    # {{ s.Name }}
    {%% end %%}
dataplane: {podSelector: {matchLabels: {app: haproxy}}, scheme: https%s}
credentialsSecretRef: {name: %s}
`

const discoveryManifests = `
apiVersion: v1
kind: Secret
metadata: {name: credentials, namespace: edge}
data: {dataplane_username: YWRtaW4=, dataplane_password: c2VjcmV0}
---
apiVersion: v1
kind: Service
metadata: {namespace: default, name: web}
`

// inDiscovery plays f beside a controller, in virtual time.
func inDiscovery(t *testing.T, f func(t *testing.T, d *discovery)) {
	synctest.Test(t, func(t *testing.T) {
		d := &discovery{source: k8swatchtest.NewSource(k8swatchtest.Objects(discoveryManifests)...), known: &fakeTarget{name: "known"}, hung: map[string]chan struct{}{}}
		d.source.OnRequest(func(ctx context.Context, r k8swatchtest.Request) error {
			d.mu.Lock()
			hung := d.hung[r.Resource.Resource]
			d.mu.Unlock()
			if hung == nil {
				return nil
			}
			select {
			case <-hung:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		bus := eventbus.New(nil)
		var err error
		d.live, err = NewLive(LiveOptions{Source: d.source, Bus: bus, Program: ProgramOptions{Namespace: "edge"}})
		require.NoError(t, err)
		d.loop, err = d.live.NewLoop(reconcile.Options{Targets: []reconcile.Target{d.known}})
		require.NoError(t, err)
		eventbus.Subscribe(bus, func(_ context.Context, e eventbus.Delivery[discover.CredentialsInvalid]) {
			d.tell("%s: %v", e.Event.Secret, e.Event.Err)
		})
		eventbus.Subscribe(bus, func(_ context.Context, e eventbus.Delivery[discover.CredentialsUpdated]) {
			d.tell("%s is used", e.Event.Secret)
		})
		eventbus.Subscribe(bus, func(_ context.Context, e eventbus.Delivery[Invalid]) {
			d.tell("settings: %v", e.Event.Err)
		})
		bus.Start()
		var ctx context.Context
		ctx, d.stop = context.WithCancel(t.Context())
		d.ended.Go(func() { _ = d.live.Run(ctx) })
		d.ended.Go(func() { _ = d.loop.Run(ctx) })
		d.ended.Go(func() { _ = d.live.FollowPods(ctx) })
		defer func() { // also where a check in f ends the test
			d.stop()
			d.ended.Wait()
			require.NoError(t, bus.Close(context.Background()))
		}()
		f(t, d)
	})
}

func (d *discovery) tell(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.told = append(d.told, fmt.Sprintf(format, args...))
}

// says returns what was told since it was asked last.
func (d *discovery) says() []string {
	synctest.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	told := d.told
	d.told = nil
	return told
}

// hangs has nobody answer requests for a resource, from the next one on, before
// resume is called.
func (d *discovery) hangs(resource string) (resume func()) {
	hung := make(chan struct{})
	d.mu.Lock()
	d.hung[resource] = hung
	d.mu.Unlock()
	d.source.Drop()
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.hung, resource)
		close(hung)
	}
}

func (d *discovery) apply(t *testing.T, tls, secret string) error {
	return d.live.ApplyYAML(t.Context(), "s.yaml", fmt.Appendf(nil, discoverySettings, tls, secret))
}

// serves checks that a change reaches the HAProxy that is known, at once.
func (d *discovery) serves(t *testing.T, name string) {
	t.Helper()
	d.source.Apply(k8swatchtest.Objects("apiVersion: v1\nkind: Service\nmetadata: {namespace: default, name: " + name + "}\n")...)
	pass(2 * time.Second)
	texts := d.known.texts()
	require.NotEmpty(t, texts)
	require.Contains(t, texts[len(texts)-1], "# "+name+"\n")
}

// ends checks that everything ends when its context does.
func (d *discovery) ends(t *testing.T) {
	t.Helper()
	start := time.Now()
	d.stop()
	d.ended.Wait()
	require.Less(t, time.Since(start), time.Second)
}

// TestWhatFollowPodsReadsHangs: the instances that are known are
// served, somebody is told after a while what does not come, once, and that it came;
// it stands in the state all the time.
func TestWhatFollowPodsReadsHangs(t *testing.T) {
	const watched = "Secret edge/credentials"
	inDiscovery(t, func(t *testing.T, d *discovery) {
		resume := d.hangs("secrets")
		require.NoError(t, d.apply(t, "", "credentials"))
		d.serves(t, "one")
		require.Contains(t, d.live.State().Watched, watched)
		require.False(t, d.live.State().Watched[watched].Synced, "this is how health knows")
		require.Error(t, d.live.State().Watched[watched].Err)
		pass(follow.ReadTime - 2*time.Second - time.Millisecond)
		require.Empty(t, d.says(), "it may only be slow")
		pass(time.Millisecond)
		said := d.says()
		require.Len(t, said, 1)
		require.Contains(t, said[0], "edge/credentials: credentials: Secret edge/credentials: could not be read yet: ")
		require.Contains(t, said[0], "no answer yet")
		d.serves(t, "two")
		pass(10 * time.Minute)
		require.Empty(t, d.says(), "it was said")
		d.serves(t, "three")
		resume()
		pass(time.Second)
		require.Equal(t, []string{"edge/credentials is used"}, d.says())
		require.True(t, d.live.State().Watched[watched].Synced)
		require.Empty(t, d.loop.State().Instances, "that there are none is known now")
		d.ends(t)
		require.NotContains(t, d.live.State().Watched, watched)
	})
}

// TestOtherCredentialsHang: what the instances were found with stays, and what
// newer settings name keeps nobody from being ready.
func TestOtherCredentialsHang(t *testing.T) {
	inDiscovery(t, func(t *testing.T, d *discovery) {
		require.NoError(t, d.apply(t, "", "credentials"))
		pass(time.Second)
		require.Equal(t, []string{"edge/credentials is used"}, d.says())
		require.NoError(t, d.loop.SetTargets(d.known)) // as if it had been found
		d.hangs("secrets")
		require.NoError(t, d.apply(t, "", "others"))
		d.serves(t, "one")
		watched := d.live.State().Watched
		require.NotContains(t, watched, "Secret edge/credentials")
		require.True(t, watched["Secret edge/others"].Synced)
		require.Equal(t, k8swatch.PhaseStarting, watched["Secret edge/others"].Phase)
		pass(follow.ReadTime)
		said := d.says()
		require.Len(t, said, 1)
		require.Contains(t, said[0], "edge/others: credentials: Secret edge/others: could not be read yet: ")
		d.serves(t, "two")

		require.NoError(t, d.apply(t, "", "thirds"))
		pass(follow.ReadTime - time.Millisecond)
		require.Empty(t, d.says(), "another one has its own time")
		pass(time.Millisecond)
		require.Len(t, d.says(), 1)
		require.Len(t, d.loop.State().Instances, 1)
		d.ends(t)
	})
}

// TestPodsHang: settings that select them do not take effect before they are
// there; where they were there, what was found stays.
func TestPodsHang(t *testing.T) {
	t.Run("from the beginning", func(t *testing.T) {
		inDiscovery(t, func(t *testing.T, d *discovery) {
			d.hangs("pods")
			err := d.apply(t, "", "credentials")
			var sync *k8swatch.SyncError
			require.ErrorAs(t, err, &sync)
			require.Equal(t, "pods", sync.Resource.Resource)
			said := d.says()
			require.Len(t, said, 1)
			require.Contains(t, said[0], "settings: ")
			require.Contains(t, said[0], "pods")
			require.Contains(t, d.live.State().Error, "no answer yet")
			d.ends(t)
		})
	})
	t.Run("later", func(t *testing.T) {
		inDiscovery(t, func(t *testing.T, d *discovery) {
			require.NoError(t, d.apply(t, "", "credentials"))
			pass(time.Second)
			require.NoError(t, d.loop.SetTargets(d.known))
			d.hangs("pods")
			d.serves(t, "one")
			pods := d.live.State().Watched[haproxyPods]
			require.Equal(t, k8swatch.PhaseStale, pods.Phase)
			require.ErrorContains(t, pods.Err, "no answer yet")
			pass(time.Hour)
			d.serves(t, "two")
			require.Len(t, d.loop.State().Instances, 1)
			d.ends(t)
		})
	})
}
