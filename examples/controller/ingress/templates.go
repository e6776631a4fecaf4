package ingress

import (
	"cmp"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/k8swatch/derive"
	"github.com/hapticsdk/haptic/reconcile/cases"
	"github.com/hapticsdk/haptic/reconcile/render"
	"github.com/hapticsdk/haptic/templating"
)

// Settings are the flags that templates print.
type Settings struct {
	HTTP, HTTPS   string   // addresses to listen on, with commas between: see Binds
	Socket        string   // runtime socket
	MaxConn       int      // 0: HAProxy decides
	MaxPassed     int      // in place of MaxConn while hosts are passed through: each other connection with TLS counts twice
	Share         int      // requests and TCP connections that a namespace has open at once; 0: no bound
	SharedHosts   bool     // paths of a host may be of several namespaces
	HardStopAfter string   // a duration of HAProxy: "30m"
	TrustProxy    []string // ranges of addresses whose X-Forwarded headers are believed
	Upgrades      []string // protocols, beside websocket, that a connection may become
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
	CountsWorkers bool     // the controller bounds the number of old workers, so HAProxy need not
}

// Names reports whether HAProxy looks up the [Path.Names] of each request.
func (s Settings) Names() bool { return s.AccessLog != "" || s.Share > 0 && s.SharedHosts }

// PeersSocket is where a worker gets the rates of the one before it.
func (s Settings) PeersSocket() string { return filepath.Join(filepath.Dir(s.Socket), "peers.sock") }

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
		Vars: map[string]any{
			"settings":           settings,
			"hosts":              r.Hosts,
			"wildcards":          r.Wildcards,
			"exact":              r.Exact,
			"prefix":             r.Prefix,
			"patterns":           r.Patterns,
			"canaries":           r.Canaries,
			"userlists":          r.Userlists,
			"certificates":       r.Certificates,
			"fallback":           r.Default,
			"fallbackNames":      r.defaultNames(),
			"noRoute":            cmp.Or(r.NoRoute, "no-route"),
			"defaultCertificate": r.DefaultCertificate,
			"tcp":                (*TCPService)(nil),
			"passed":             r.Passed,
			"streams":            r.Streams,
			"backends":           r.Backends,
			"backend":            (*Backend)(nil),
			"route":              (*Path)(nil),
			"host":               (*Host)(nil),
			"certificate":        (*TLSCertificate)(nil),
			"userlist":           (*Userlist)(nil),
		},
		Each:    r.each(settings),
		Files:   r.Files,
		Owners:  r.FileOwners,
		Refused: r.Refused,
	}
	maps.Copy(in.Vars, render.HostVars())
	return in
}

// Compile type-checks templates. They see the variables of Input. The function
// path(kind, name) returns where a file lies for HAProxy; pathResolver.GetPath(kind,
// name) returns the same.
func Compile(files fs.FS, layout dataplane.Layout) (*templating.Engine, error) {
	return templating.Compile(cases.Without(files), &templating.Options{
		Globals: map[string]any{
			"pathResolver": render.PathResolver{Layout: layout},
			"path":         func(kind, name string) string { return layout.Path(dataplane.FileKind(kind), name) },
		},
		Vars: render.Declare(new(Routes).Input(Settings{}).Vars),
	})
}

func (c *TLSCertificate) equal(d *TLSCertificate) bool {
	return c.File == d.File && c.Secret == d.Secret && slices.Equal(c.Hosts, d.Hosts) && slices.Equal(c.Except, d.Except)
}

// items are a list for templates, in parts.
type items struct {
	parts [][]any
	head  bool // the first part is a nil item, for the head of a file
}

// itemsOf makes the items of a list. Its parts that stand in the last list, too, share their
// memory; often it is the same list. head: a nil item stands before them.
func itemsOf[T any](list, last [][]*T, was items, head bool) items {
	if was.parts != nil && len(list) == len(last) && (len(list) == 0 || &list[0] == &last[0]) {
		return was
	}
	known := map[**T][]any{}
	for i, part := range last {
		known[&part[0]] = was.parts[i+boolToInt(head)]
	}
	now := items{head: head}
	switch {
	case head && was.head:
		now.parts = was.parts[:1:1]
	case head:
		now.parts = [][]any{{(*T)(nil)}}
	}
	for _, part := range list {
		as, ok := known[&part[0]]
		if !ok || len(as) != len(part) {
			as = make([]any, len(part))
			for i, one := range part {
				as[i] = one
			}
		}
		now.parts = append(now.parts, as)
	}
	return now
}

// makeItems makes the lists as items. Those that are as in the last routes share their memory.
func (r *Routes) makeItems(last *Routes) {
	if last == nil {
		last = &Routes{}
	}
	was := last.items
	r.items = map[string]items{
		"passed":       itemsOf(r.Passed.Chunks(), last.Passed.Chunks(), was["passed"], true),
		"tcp":          itemsOf(r.TCP.Chunks(), last.TCP.Chunks(), was["tcp"], false),
		"backends":     itemsOf(r.Backends.Chunks(), last.Backends.Chunks(), was["backends"], false),
		"patterns":     itemsOf(r.Patterns.Chunks(), last.Patterns.Chunks(), was["patterns"], true),
		"userlists":    itemsOf(r.Userlists.Chunks(), last.Userlists.Chunks(), was["userlists"], true),
		"exact":        itemsOf(r.Exact.Chunks(), last.Exact.Chunks(), was["exact"], true),
		"prefix":       itemsOf(r.Prefix.Chunks(), last.Prefix.Chunks(), was["prefix"], true),
		"hosts":        itemsOf(r.Hosts.Chunks(), last.Hosts.Chunks(), was["hosts"], true),
		"wildcards":    itemsOf(parts(r.Wildcards), parts(last.Wildcards), was["wildcards"], true),
		"certificates": itemsOf(parts(r.Certificates), parts(last.Certificates), was["certificates"], true),
	}
}

// parts cuts a list that is made as a whole.
func parts[T any](list []*T) [][]*T { return derive.OrderedOf(list).Chunks() }

// each returns the entries that can be rendered for each item of a list.
func (r *Routes) each(settings Settings) map[string]render.Each {
	if r.items == nil {
		r.makeItems(nil)
	}
	all := map[string]render.Each{}
	for entry, list := range listOf {
		items := r.items[list.name]
		if list.names && !settings.Names() {
			items.parts = items.parts[:1]
		}
		all[entry] = render.Each{Var: list.item, Parts: items.parts}
	}
	return all
}

// itemList names the variables of an entry: for the whole list, and for one item.
type itemList struct {
	name, item string
	names      bool // only Settings.Names needs it
	both       bool // the template for one item may use the whole list, too
}

// listOf has the entries that can be rendered for each item of a list.
var listOf = map[string]itemList{ // constant in effect
	"maps/exact.map":             {name: "exact", item: "route"},
	"maps/prefix.map":            {name: "prefix", item: "route"},
	"maps/paths_reg.map":         {name: "patterns", item: "route"},
	"maps/names-exact.map":       {name: "exact", item: "route", names: true},
	"maps/names-prefix.map":      {name: "prefix", item: "route", names: true},
	"maps/names_reg.map":         {name: "patterns", item: "route", names: true},
	"maps/passed.map":            {name: "passed", item: "route"},
	"maps/hosts.map":             {name: "hosts", item: "host"},
	"maps/wildcards.map":         {name: "wildcards", item: "host"},
	"haproxy.d/userlist.cfg":     {name: "userlists", item: "userlist"},
	"crt-lists/certificates.txt": {name: "certificates", item: "certificate"},
	TCPEntry:                     {name: "tcp", item: "tcp", both: true},
	BackendEntry:                 {name: "backends", item: "backend", both: true},
}

// EachOf reports for each entry whether its template is written for one item. Other
// templates use the list; a user's own templates may do either.
func EachOf(engine *templating.Engine) map[string]bool {
	entries := map[string]bool{}
	for entry, list := range listOf {
		uses := engine.Uses(entry)
		entries[entry] = slices.Contains(uses, list.item) && (list.both || !slices.Contains(uses, list.name))
	}
	return entries
}
