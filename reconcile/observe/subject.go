package observe

import (
	"maps"
	"runtime/debug"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/fetch"
	"github.com/hapticsdk/haptic/reconcile/settings"
)

// Loop is what is read of a [reconcile.Loop].
type Loop interface {
	State() reconcile.State
	Validated() *dataplane.Config
}

// Subject is what is looked at, at each scrape and each request, besides the
// events on a bus. Every field may be zero; what it tells is then not shown. The
// functions are called from several goroutines.
type Subject struct {
	Loop Loop

	// Watched say how watches do: [k8swatch.Group.States] of each group.
	Watched []func() map[schema.GroupVersionResource]k8swatch.State

	// Settings is [settings.Live.State].
	Settings func() settings.State

	// HTTP is [fetch.Store.Resources].
	HTTP func() []fetch.Resource

	// Config is what the program was told, by flags for example. What it returns
	// goes through JSON and must be free of secrets.
	Config func() any

	// Credentials describes what opens the HAProxys.
	Credentials func() CredentialsInfo

	Version string  // of the program; zero: that which its module was built from
	Health  *Health // set by [New] where it is nil
}

// CredentialsInfo says of credentials all that may be said.
type CredentialsInfo struct {
	Source          string   `json:"source"`                    // "Secret default/haptic"
	Keys            []string `json:"keys"`                      // that there are
	ResourceVersion string   `json:"resourceVersion,omitempty"` // of the Secret
	Age             string   `json:"age,omitempty"`             // of the Secret
	Error           string   `json:"error,omitempty"`           // why they cannot be used
}

// watches are all watches by the name of their resource.
func (s *Subject) watches() map[string]k8swatch.State {
	all := map[string]k8swatch.State{}
	for _, states := range s.Watched {
		for gvr, state := range states() {
			name := gvr.GroupResource().String()
			if before, ok := all[name]; !ok || !state.Synced || before.Phase == k8swatch.PhaseSynced {
				all[name] = state // of two groups the one that is worse off
			}
		}
	}
	if s.Settings != nil {
		maps.Copy(all, s.Settings().Watched)
	}
	return all
}

// version is what runs.
func (s *Subject) version() string {
	if s.Version != "" {
		return s.Version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}
