package settings

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hapticsdk/haptic/k8swatch/k8swatchtest"
)

// wrongSettings returns the pairs of testdata/wrong.txtar: settings, and all that
// is said of them.
func wrongSettings(t *testing.T) *txtar.Archive {
	archive, err := txtar.ParseFile("testdata/wrong.txtar")
	require.NoError(t, err)
	require.Greater(t, len(archive.Files), 100)
	return archive
}

// TestWrongSettings: everything that is wrong is said at once, each with its line
// and column, and nothing that is in a template. UPDATE=1 writes what is said anew.
func TestWrongSettings(t *testing.T) {
	archive := wrongSettings(t)
	for i := 0; i < len(archive.Files); i += 2 {
		settings, want := archive.Files[i], &archive.Files[i+1]
		require.Equal(t, "errors", want.Name, "behind %s", settings.Name)
		t.Run(settings.Name, func(t *testing.T) {
			_, err := ParseProgram("s.yaml", settings.Data, &ProgramOptions{Namespace: "edge"})
			var all Errors
			require.ErrorAs(t, err, &all)
			for _, e := range all {
				require.Positive(t, e.Line, e.Error())
				require.Positive(t, e.Column, e.Error())
				require.LessOrEqual(t, e.Line, strings.Count(string(settings.Data), "\n")+1, e.Error())
			}
			require.NotContains(t, err.Error(), "CANARY")
			if os.Getenv("UPDATE") != "" {
				want.Data = []byte(err.Error() + "\n")
			}
			require.Equal(t, string(want.Data), err.Error()+"\n")
		})
	}
	if os.Getenv("UPDATE") != "" {
		require.NoError(t, os.WriteFile("testdata/wrong.txtar", txtar.Format(archive), 0o644))
	}
}

// TestWrongSettingsLive: none of them takes anything away from what runs: the
// watchers go on without another LIST, and what changes is deployed as before.
func TestWrongSettingsLive(t *testing.T) {
	archive := wrongSettings(t)
	runLive(t, func(ctx context.Context, t *testing.T, l *liveTest) {
		require.NoError(t, l.live.ApplyYAML(ctx, "s.yaml", []byte(liveSettings)))
		l.happened()
		version, watcher, requests := l.live.State().Version, l.live.current.watchers["configs"].full, l.listed("configmaps")
		for i := 0; i < len(archive.Files); i += 2 {
			require.Error(t, l.live.ApplyYAML(ctx, "s.yaml", archive.Files[i].Data), archive.Files[i].Name)
			state := l.live.State()
			require.Equal(t, version, state.Version, archive.Files[i].Name)
			require.NotEmpty(t, state.Error, archive.Files[i].Name)
			require.NotContains(t, state.Error, "CANARY", archive.Files[i].Name)
		}
		require.NotContains(t, strings.Join(l.happened(), ""), "CANARY")
		require.Same(t, watcher, l.live.current.watchers["configs"].full)
		require.Len(t, l.live.current.watchers, 1)
		require.Equal(t, requests, l.listed("configmaps"), "nothing was listed again")
		require.Zero(t, l.listed("pods"), "nothing of them was watched")
		require.Len(t, l.target.texts(), 1, "nothing of them was deployed")
		l.source.Apply(configMapObjects("two")...)
		l.happened()
		require.Contains(t, l.deployed(), "# two\n")
	})
}

func configMapObjects(name string) []runtime.Object {
	return k8swatchtest.Objects("apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: default, name: " + name + "}\n")
}

// TestLiveFlips: a ConfigMap of settings that is good, bad, gone and good again in
// no time ends on what it said last, and its watchers never begin anew.
func TestLiveFlips(t *testing.T) {
	runLive(t, func(ctx context.Context, t *testing.T, l *liveTest) {
		settings := func(text string) []runtime.Object {
			return k8swatchtest.Objects("apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: haptic, name: settings}\ndata:\n  settings.yaml: |\n    " +
				strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n    ") + "\n")
		}
		good := func(greeting string) []runtime.Object {
			return settings(strings.Replace(liveSettings, "hello", greeting, 1))
		}
		ctx, stop := context.WithCancel(ctx)
		done := make(chan error)
		go func() { done <- l.live.FollowConfigMap(ctx, "haptic", "settings") }()
		defer func() { stop(); require.NoError(t, <-done) }()
		l.source.Apply(good("one")...)
		l.happened()
		require.Contains(t, l.deployed(), "# one\n")
		watcher := l.live.current.watchers["configs"].full

		requests := l.listed("configmaps")
		for range 20 {
			l.source.Apply(settings("maps: [")...)
			l.source.Apply(good("two")...)
			l.source.Delete(good("two")...)
			l.source.Apply(settings(strings.Replace(liveSettings, "resources: configmaps", "resources: nothings, apiVersion: absent.test/v1", 1))...)
		}
		l.source.Apply(good("three")...)
		l.happened()
		require.Contains(t, l.deployed(), "# three\n")
		require.Empty(t, l.live.State().Error)
		require.Same(t, watcher, l.live.current.watchers["configs"].full)
		require.Equal(t, requests, l.listed("configmaps"), "nothing was listed again")

		// Gone, and nothing stops; made again, and it counts.
		l.source.Delete(good("three")...)
		require.Contains(t, strings.Join(l.happened(), ""), "it does not exist")
		require.Contains(t, l.deployed(), "# three\n")
		l.source.Apply(good("four")...)
		l.happened()
		require.Contains(t, l.deployed(), "# four\n")
		require.Equal(t, requests, l.listed("configmaps"), "nothing was listed again")
	})
}

// TestLiveNotInstalled: settings that watch what the cluster does not know are
// refused by name, and those before stay; once it is there they take effect.
func TestLiveNotInstalled(t *testing.T) {
	runLive(t, func(ctx context.Context, t *testing.T, l *liveTest) {
		routes := schema.GroupVersionResource{Group: "example.test", Version: "v1", Resource: "routes"}
		l.source.Uninstall(routes)
		require.NoError(t, l.live.ApplyYAML(ctx, "s.yaml", []byte(liveSettings)))
		l.happened()
		requests := l.listed("configmaps")
		next := strings.Replace(liveSettings, "haproxyConfig", "  routes: {apiVersion: example.test/v1, resources: routes}\nhaproxyConfig", 1)
		next = strings.Replace(next, "hello", "with {{ len(resources.routes.List()) }} routes", 1)
		err := l.live.ApplyYAML(ctx, "s.yaml", []byte(next))
		require.ErrorContains(t, err, "routes.example.test")
		l.happened()
		require.Contains(t, l.deployed(), "# hello\n")
		require.Len(t, l.live.current.watchers, 1)

		l.source.Install(routes)
		l.source.Apply(k8swatchtest.Objects(route("a", "one"))...)
		require.NoError(t, l.live.ApplyYAML(ctx, "s.yaml", []byte(next)))
		l.happened()
		require.Contains(t, l.deployed(), "# with 1 routes\n")
		require.Equal(t, requests, l.listed("configmaps"), "nothing was listed again")
	})
}
