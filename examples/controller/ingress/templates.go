package ingress

import (
	"io/fs"
	"maps"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/reconcile/cases"
	"github.com/hapticsdk/haptic/reconcile/render"
	"github.com/hapticsdk/haptic/templating"
)

// Settings is what the flags say that templates print.
type Settings struct {
	HTTP, HTTPS   string   // addresses to listen on
	Socket        string   // runtime socket
	MaxConn       int      // 0: whatever HAProxy finds fit
	HardStopAfter string   // a duration of HAProxy: "30m"
	TrustProxy    []string // ranges of addresses whose X-Forwarded headers are believed
	Fleet         string   // one word that all instances of this controller share, and no others
	SpareBackends int      // that wait for new ones, see dataplane.SparePrefix
}

// BackendEntry is the template that is rendered for each backend.
const BackendEntry = "haproxy.d/backend.cfg"

// Input is what the templates see of the routes. Delete from Each the entries of which
// [EachOf] says that their templates are not written for one item.
func (r *Routes) Input(settings Settings) *render.Input {
	in := &render.Input{
		Vars: map[string]any{"settings": settings, "hosts": r.Hosts, "wildcards": r.Wildcards, "exact": r.Exact, "prefix": r.Prefix,
			"certificates": r.Certificates, "fallback": r.Default, "backends": r.Backends,
			"backend": (*Backend)(nil), "route": (*Path)(nil), "host": (*Host)(nil), "certificate": (*TLSCertificate)(nil)},
		Each:    r.each(),
		Files:   r.Files,
		Owners:  r.FileOwners,
		Refused: r.Refused,

		Accepted: r.Accepted,
	}
	maps.Copy(in.Vars, render.HostVars())
	return in
}

// Compile type-checks templates. They see the variables that Input gives, the
// function path(kind, name), which says where a file lies for HAProxy, and
// pathResolver, which says the same by pathResolver.GetPath(name, kind).
func Compile(files fs.FS, layout dataplane.Layout) (*templating.Engine, error) {
	return templating.Compile(cases.Without(files), &templating.Options{
		Globals: map[string]any{
			"pathResolver": render.PathResolver{Layout: layout},
			"path":         func(kind, name string) string { return layout.Path(dataplane.FileKind(kind), name) },
		},
		Vars: new(Routes).Input(Settings{}).Vars,
	})
}
