package ingress

import (
	"cmp"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/reconcile/cases"
	"github.com/hapticsdk/haptic/reconcile/render"
	"github.com/hapticsdk/haptic/templating"
)

// Settings is what the flags say that templates print.
type Settings struct {
	HTTP, HTTPS   string   // addresses to listen on, with commas between: see Binds
	Socket        string   // runtime socket
	MaxConn       int      // 0: whatever HAProxy finds fit
	HardStopAfter string   // a duration of HAProxy: "30m"
	TrustProxy    []string // ranges of addresses whose X-Forwarded headers are believed
	Fleet         string   // one word that all instances of this controller share, and no others
	SpareBackends int      // that wait for new ones, see dataplane.SparePrefix
	AccessLog     string   // "http" or "json"; "": there is none
	AcceptProxy   []string // ranges of addresses whose connections begin with the PROXY protocol
	ErrorPages    []string // codes that have a page, a file of the kind general such as 503.http
	HTTP3         string   // "quic4" or "quic6"; "": it is not served
	LimitedQUIC   bool     // its TLS library has no QUIC of its own
	Stats         string   // address for the page of statistics; "": there is none
	TLSSocket     string   // where HAProxy gets what it does not pass through
	ExternalName  bool     // HAProxy looks up names
	Nameservers   []string // that it asks; none: those of /etc/resolv.conf
}

// HasPage reports whether there is a page for a code of HTTP.
func (s Settings) HasPage(code string) bool { return slices.Contains(s.ErrorPages, code) }

// Bind is an address to listen on.
type Bind struct {
	Address string
	Only6   bool // connections of IPv4 come by another one
}

// Binds takes addresses apart that have commas between, such as ":8080,[::]:8080".
func (s Settings) Binds(addresses string) (all []Bind) {
	for at := range strings.SplitSeq(addresses, ",") {
		all = append(all, Bind{at, strings.HasPrefix(at, "[") && at != addresses})
	}
	return all
}

// BackendEntry is the template that is rendered for each backend.
const BackendEntry = "haproxy.d/backend.cfg"

// TCPEntry is the template that is rendered for each TCP service.
const TCPEntry = "haproxy.d/tcp.cfg"

// Input is what the templates see of the routes. Delete from Each the entries of which
// [EachOf] says that their templates are not written for one item.
func (r *Routes) Input(settings Settings) *render.Input {
	in := &render.Input{
		Vars: map[string]any{"settings": settings, "hosts": r.Hosts, "wildcards": r.Wildcards, "exact": r.Exact, "prefix": r.Prefix, "patterns": r.Patterns, "canaries": r.Canaries, "userlists": r.Userlists,
			"certificates": r.Certificates, "fallback": r.Default, "fallbackNames": r.defaultNames(), "noRoute": cmp.Or(r.NoRoute, "no-route"), "defaultCertificate": r.DefaultCertificate, "tcp": (*TCPService)(nil),
			"passed": r.Passed, "streams": r.Streams, "backends": r.Backends,
			"backend": (*Backend)(nil), "route": (*Path)(nil), "host": (*Host)(nil), "certificate": (*TLSCertificate)(nil), "userlist": (*Userlist)(nil)},
		Each:    r.each(settings),
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

// lists are the routes as items of templates. Routes that follow others share them, so
// that an item that stays is the same pointer, and only the others are rendered.
type lists struct {
	backends         itemsOf[*Backend]
	exact, prefix    itemsOf[Path]
	patterns         itemsOf[Path]
	userlists        itemsOf[Userlist]
	passed           itemsOf[Path]
	hosts, wildcards itemsOf[Host]
	certificates     itemsOf[TLSCertificate]
}

// itemsOf are the items of a sorted list, behind one that is nil: the head of the file.
type itemsOf[T any] struct {
	list []T
	all  []any
}

// take makes the items of a list. Those that equal one of the list before are the same.
func (it *itemsOf[T]) take(list []T, compare func(a, b T) int, equal func(a, b *T) bool) []any {
	old, were := it.list, it.all
	if were != nil && len(list) == len(old) && (len(old) == 0 || &list[0] == &old[0]) {
		return were
	}
	all, j := make([]any, 1, len(list)+1), 0
	all[0] = (*T)(nil)
	for i := range list {
		for j < len(old) && compare(old[j], list[i]) < 0 {
			j++
		}
		if j < len(old) && equal(&old[j], &list[i]) {
			all = append(all, were[j+1])
			continue
		}
		item := list[i] // a pointer into the list would keep all of it
		all = append(all, &item)
	}
	it.list, it.all = list, all
	return all
}

// takeBackends is take for pointers, without a head.
func (l *lists) takeBackends(list []*Backend) []any {
	it := &l.backends
	if len(list) == len(it.list) && (len(list) == 0 || &list[0] == &it.list[0]) {
		return it.all
	}
	it.list, it.all = list, make([]any, len(list))
	for i, b := range list {
		it.all[i] = b
	}
	return it.all
}

func itemsOfTCP(list []*TCPService) []any {
	all := make([]any, len(list))
	for i, s := range list {
		all[i] = s
	}
	return all
}

func same[T comparable](a, b *T) bool { return *a == *b }

func (c *TLSCertificate) equal(d *TLSCertificate) bool {
	return c.File == d.File && c.Secret == d.Secret && slices.Equal(c.Hosts, d.Hosts) && slices.Equal(c.Except, d.Except)
}

// each are the entries that can be rendered for each item of a list, where they are
// written for that.
func (r *Routes) each(settings Settings) map[string]render.Each {
	if r.lists == nil {
		r.lists = &lists{}
	}
	l := r.lists
	exact, prefix := l.exact.take(r.Exact, Path.compare, same), l.prefix.take(r.Prefix, Path.compare, same)
	patterns := l.patterns.take(r.Patterns, Path.byLength, same)
	exactNames, prefixNames, patternNames := exact, prefix, patterns
	if settings.AccessLog == "" {
		exactNames, prefixNames, patternNames = exact[:1], prefix[:1], patterns[:1]
	}
	return map[string]render.Each{
		"maps/passed.map":            {Var: "route", Items: l.passed.take(r.Passed, Path.compare, same)},
		TCPEntry:                     {Var: "tcp", Items: itemsOfTCP(r.TCP)},
		BackendEntry:                 {Var: "backend", Items: l.takeBackends(r.Backends)},
		"maps/paths_reg.map":         {Var: "route", Items: patterns},
		"haproxy.d/userlist.cfg":     {Var: "userlist", Items: l.userlists.take(r.Userlists, Userlist.compare, (*Userlist).equal)},
		"maps/exact.map":             {Var: "route", Items: exact},
		"maps/prefix.map":            {Var: "route", Items: prefix},
		"maps/names-exact.map":       {Var: "route", Items: exactNames},
		"maps/names-prefix.map":      {Var: "route", Items: prefixNames},
		"maps/names_reg.map":         {Var: "route", Items: patternNames},
		"maps/hosts.map":             {Var: "host", Items: l.hosts.take(r.Hosts, Host.compare, same)},
		"maps/wildcards.map":         {Var: "host", Items: l.wildcards.take(r.Wildcards, Host.byLength, same)},
		"crt-lists/certificates.txt": {Var: "certificate", Items: l.certificates.take(r.Certificates, TLSCertificate.compare, (*TLSCertificate).equal)},
	}
}

// listOf names the variable that has all items of an entry.
var listOf = map[string]string{ // constant in effect
	"maps/exact.map": "exact", "maps/prefix.map": "prefix", "maps/paths_reg.map": "patterns", "haproxy.d/userlist.cfg": "userlists", "maps/hosts.map": "hosts", "maps/wildcards.map": "wildcards",
	"maps/passed.map": "passed", "maps/names-exact.map": "exact", "maps/names-prefix.map": "prefix", "maps/names_reg.map": "patterns",
	"crt-lists/certificates.txt": "certificates",
}

// EachOf returns the entries of templates that are written for one item. Others use the
// list: templates of a user's own may do it either way.
func EachOf(engine *templating.Engine) map[string]bool {
	entries := map[string]bool{}
	for entry, each := range new(Routes).each(Settings{}) {
		uses := engine.Uses(entry)
		entries[entry] = slices.Contains(uses, each.Var) && !slices.Contains(uses, listOf[entry])
	}
	return entries
}
