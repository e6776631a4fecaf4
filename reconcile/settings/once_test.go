package settings

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/internal/follow"
	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/k8swatch/k8swatchtest"
	"github.com/hapticsdk/haptic/reconcile"
)

const onceManifests = `
apiVersion: v1
kind: ConfigMap
metadata: {name: good, namespace: edge}
data:
  settings.yaml: |
    haproxyConfig: {template: "# hello\n"}
    dataplane: {podSelector: {matchLabels: {app: haproxy}}, port: 1}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: nopods, namespace: edge}
data: {settings.yaml: 'haproxyConfig: {template: "# hello\n"}'}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: wrong, namespace: edge}
data: {settings.yaml: "haproxyConfg: {}"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: otherkey, namespace: edge}
data: {settings: ""}
---
apiVersion: v1
kind: Secret
metadata: {name: haptic-credentials, namespace: edge}
data: {dataplane_username: YWRtaW4=, dataplane_password: c2VjcmV0}
---
apiVersion: v1
kind: Secret
metadata: {name: partial, namespace: other}
data: {dataplane_username: YWRtaW4=}
---
apiVersion: v1
kind: Pod
metadata: {name: haproxy-0, namespace: edge, labels: {app: haproxy}}
status: {podIP: 127.0.0.1, containerStatuses: [{name: dataplane, ready: true, state: {running: {}}}]}
`

// TestOnce: settings are read and the instances found once, or the error says what is
// wrong, 10 s later at the latest.
func TestOnce(t *testing.T) {
	for name, c := range map[string]struct {
		configMap, secret string
		edit              func(*k8swatchtest.Source)
		applied, found    string // errors
	}{
		"the default Secret": {configMap: "good"},
		"another Secret":     {configMap: "good", secret: "mine", found: "credentials: Secret edge/mine: it does not exist"},
		"of another namespace": {configMap: "good", secret: "other/partial",
			found: "credentials: Secret other/partial: missing or empty: dataplane_password"},
		"no settings":    {configMap: "missing", applied: "settings ConfigMap edge/missing: it does not exist"},
		"wrong settings": {configMap: "wrong", applied: "ConfigMap edge/wrong settings.yaml:1:1: haproxyConfg: unknown key; did you mean haproxyConfig?\nConfigMap edge/wrong settings.yaml:1:1: haproxyConfig: missing"},
		"another key":    {configMap: "otherkey", applied: "ConfigMap edge/otherkey: the key settings.yaml is missing\nConfigMap edge/otherkey: unknown key \"settings\", only settings.yaml is read"},
		"no selector":    {configMap: "nopods", found: "the settings select no pods: dataplane.podSelector is missing"},
		"no pods": {configMap: "good", edit: func(s *k8swatchtest.Source) {
			s.Edit(services.GroupVersion().WithResource("pods"), "edge", "haproxy-0", func(o k8swatch.Object) { o.SetLabels(nil) })
		}, found: "no HAProxy is found: no pod of namespace edge with the labels app=haproxy has a container dataplane that is ready"},
		"no right to read": {configMap: "good", edit: func(s *k8swatchtest.Source) { s.Forbid(services.GroupVersion().WithResource("configmaps")) },
			applied: "settings ConfigMap edge/good: could not be read yet: "},
		"no right to read Secrets": {configMap: "good", edit: func(s *k8swatchtest.Source) { s.Forbid(services.GroupVersion().WithResource("secrets")) },
			found: "credentials: Secret edge/haptic-credentials: could not be read yet: "},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := k8swatchtest.NewSource(k8swatchtest.Objects(onceManifests)...)
				if c.edit != nil {
					c.edit(source)
				}
				live, err := NewLive(LiveOptions{Source: source, Secret: c.secret, Program: ProgramOptions{Namespace: "edge"}})
				require.NoError(t, err)
				loop, err := live.NewLoop(reconcile.Options{})
				require.NoError(t, err)
				ctx, stop := context.WithCancel(t.Context())
				var wg sync.WaitGroup
				wg.Go(func() { _ = live.Run(ctx) })
				defer wg.Wait()
				defer stop()
				begin := time.Now()
				err = live.ApplyConfigMap(ctx, "edge", c.configMap)
				if c.applied != "" {
					require.ErrorContains(t, err, c.applied)
				} else {
					require.NoError(t, err)
					err = live.FindPods(ctx)
				}
				require.LessOrEqual(t, time.Since(begin), follow.ReadTime)
				switch {
				case c.applied != "":
				case c.found != "":
					require.ErrorContains(t, err, c.found)
				default:
					require.NoError(t, err)
					require.Equal(t, "edge/haproxy-0", loop.State().Instances[0].Name)
				}
			})
		})
	}
}

// TestFindPodsAgain: each call looks anew, and does not say what the one before found.
func TestFindPodsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := k8swatchtest.NewSource(k8swatchtest.Objects(onceManifests)...)
		live, err := NewLive(LiveOptions{Source: source, Program: ProgramOptions{Namespace: "edge"}})
		require.NoError(t, err)
		loop, err := live.NewLoop(reconcile.Options{})
		require.NoError(t, err)
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { _ = live.Run(ctx) })
		defer wg.Wait()
		defer stop()
		require.NoError(t, live.ApplyConfigMap(ctx, "edge", "good"))
		require.NoError(t, live.FindPods(ctx))
		source.Edit(services.GroupVersion().WithResource("pods"), "edge", "haproxy-0", func(o k8swatch.Object) { o.SetLabels(nil) })
		synctest.Wait()
		require.ErrorContains(t, live.FindPods(ctx), "no HAProxy is found")
		require.Empty(t, loop.State().Instances)
	})
}

// TestPodsOfNewSettings: pods that new settings select never get the password of those
// before, also where somebody looks while the new ones take effect.
func TestPodsOfNewSettings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := k8swatchtest.NewSource(k8swatchtest.Objects(onceManifests + `
---
apiVersion: v1
kind: Pod
metadata: {name: other-0, namespace: edge, labels: {app: other}}
status: {podIP: 127.0.0.2, containerStatuses: [{name: dataplane, ready: true, state: {running: {}}}]}
`)...)
		var live *Live
		var loop *reconcile.Loop
		var during []string
		instances := func() (names []string) {
			for _, i := range loop.State().Instances {
				names = append(names, i.Name)
			}
			return names
		}
		live, err := NewLive(LiveOptions{Source: source, Program: ProgramOptions{Namespace: "edge"}, OnApply: func(*Program) {
			live.Discovery().Look()
			synctest.Wait()
			during = instances()
		}})
		require.NoError(t, err)
		loop, err = live.NewLoop(reconcile.Options{})
		require.NoError(t, err)
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { _ = live.Run(ctx) })
		wg.Go(func() { _ = live.FollowPods(ctx) })
		defer wg.Wait()
		defer stop()
		require.NoError(t, live.ApplyConfigMap(ctx, "edge", "good"))
		synctest.Wait()
		require.Equal(t, []string{"edge/haproxy-0"}, instances())
		text := "haproxyConfig: {template: \"# hello\\n\"}\ndataplane: {podSelector: {matchLabels: {app: other}}, port: 1}\ncredentialsSecretRef: {name: partial, namespace: other}\n"
		require.NoError(t, live.ApplyYAML(ctx, "s.yaml", []byte(text)))
		require.Equal(t, []string{"edge/haproxy-0"}, during)
		synctest.Wait()
		require.Equal(t, []string{"edge/haproxy-0"}, instances(), "the new Secret is not usable")
	})
}
