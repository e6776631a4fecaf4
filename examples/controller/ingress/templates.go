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

// Settings are the flags that templates print.
type Settings struct {
	HTTP, HTTPS   string   // addresses to listen on, with commas between: see Binds
	Socket        string   // runtime socket
	MaxConn       int      // 0: HAProxy decides
	HardStopAfter string   // a duration of HAProxy: "30m"
	TrustProxy    []string // ranges of addresses whose X-Forwarded headers are believed
	Fleet         string   // one word for all instances of this controller, and for no others
	SpareBackends int      // that wait for new Services, see dataplane.SparePrefix
	AccessLog     string   // "http" or "json"; "": none
	AcceptProxy   []string // ranges of addresses whose connections begin with the PROXY protocol
	ErrorPages    []string // codes with a page: a general file such as 503.http
	HTTP3         string   // "quic4" or "quic6"; "": no HTTP/3
	LimitedQUIC   bool     // its TLS library has no QUIC of its own
	Stats         string   // address for the page of statistics; "": none
	TLSSocket     string   // where HAProxy gets the connections that it does not pass through
	ExternalName  bool     // HAProxy looks up the names of Services
	Nameservers   []string // for look-ups; none: those of /etc/resolv.conf
}

// HasPage reports whether a status code has a page.
func (s Settings) HasPage(code string) bool { return slices.Contains(s.ErrorPages, code) }

// Bind is an address to listen on.
type Bind struct {
	Address string
	Only6   bool // another bind takes connections of IPv4
}

// Binds splits addresses at commas, such as ":8080,[::]:8080".
func (s Settings) Binds(addresses string) (all []Bind) {
	for at := range strings.SplitSeq(addresses, ",") {
		all = append(all, Bind{at, strings.HasPrefix(at, "[") && at != addresses})
	}
	return all
}

// BackendEntry is the template for each backend.
const BackendEntry = "haproxy.d/backend.cfg"

// TCPEntry is the template for each TCP service.
const TCPEntry = "haproxy.d/tcp.cfg"

// Input returns the routes as templates see them. Delete from Each the entries that
// [EachOf] reports as false: their templates are not written for one item.
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

// Compile type-checks templates. They see the variables of Input. The function
// path(kind, name) returns where a file lies for HAProxy; pathResolver.GetPath(name,
// kind) returns the same.
func Compile(files fs.FS, layout dataplane.Layout) (*templating.Engine, error) {
	return templating.Compile(cases.Without(files), &templating.Options{
		Globals: map[string]any{
			"pathResolver": render.PathResolver{Layout: layout},
			"path":         func(kind, name string) string { return layout.Path(dataplane.FileKind(kind), name) },
		},
		Vars: new(Routes).Input(Settings{}).Vars,
	})
}

// lists holds the routes as items of templates. Successive routes share it, so an
// unchanged item keeps its pointer, and only the others are rendered.
type lists struct {
	backends         itemsOf[*Backend]
	exact, prefix    itemsOf[Path]
	patterns         itemsOf[Path]
	userlists        itemsOf[Userlist]
	passed           itemsOf[Path]
	hosts, wildcards itemsOf[Host]
	certificates     itemsOf[TLSCertificate]
}

// itemsOf are the items of a sorted list. A nil item stands before them for the head of
// the file.
type itemsOf[T any] struct {
	list []T
	all  []any
}

// take makes the items of a list. It keeps the items that equal one of the last list.
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
		item := list[i] // a pointer into the list would keep all of it alive
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

// each returns the entries that can be rendered for each item of a list.
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

// listOf names the variable with the whole list of an entry.
var listOf = map[string]string{ // constant in effect
	"maps/exact.map": "exact", "maps/prefix.map": "prefix", "maps/paths_reg.map": "patterns", "haproxy.d/userlist.cfg": "userlists", "maps/hosts.map": "hosts", "maps/wildcards.map": "wildcards",
	"maps/passed.map": "passed", "maps/names-exact.map": "exact", "maps/names-prefix.map": "prefix", "maps/names_reg.map": "patterns",
	"crt-lists/certificates.txt": "certificates",
}

// EachOf reports for each entry whether its template is written for one item. Other
// templates use the list; a user's own templates may do either.
func EachOf(engine *templating.Engine) map[string]bool {
	entries := map[string]bool{}
	for entry, each := range new(Routes).each(Settings{}) {
		uses := engine.Uses(entry)
		entries[entry] = slices.Contains(uses, each.Var) && !slices.Contains(uses, listOf[entry])
	}
	return entries
}
