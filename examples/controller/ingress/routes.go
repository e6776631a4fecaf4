package ingress

import (
	"cmp"
	"iter"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/examples/controller/annotation"
	"github.com/hapticsdk/haptic/k8swatch/derive"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/claims"
	"github.com/hapticsdk/haptic/reconcile/endpoints"
	"github.com/hapticsdk/haptic/templating/regex"
)

// Routes is the meaning of all Ingresses together. The templates print it.
type Routes struct {
	Hosts              derive.Ordered[*Host] // all claimed hosts
	Wildcards          []*Host               // the wildcards among them as ".demo.test", the longest first
	Exact              derive.Ordered[*Path] // Key: host and path, as a request has them
	Prefix             derive.Ordered[*Path] // Key: the beginning of host, path and "/"
	Patterns           derive.Ordered[*Path] // Key: a regular expression of host and path, the longest first
	Canaries           derive.Ordered[*Canary]
	Userlists          derive.Ordered[*Userlist]
	Backends           derive.Ordered[*Backend]
	Certificates       []*TLSCertificate
	DefaultCertificate string                // file, for server names without a certificate; "": they are refused
	Default            string                // backend for requests that no rule matches, "" if none
	DefaultOf          *networkingv1.Ingress // names the default backend; nil: none
	NoRoute            string                // the operator's backend for requests without a route, "" if none
	TCP                derive.Ordered[*TCPService]
	Passed             derive.Ordered[*Path]    // Key: a host whose TLS connections go to Backend
	Streams            derive.Ordered[*Backend] // the backends of Passed
	Files              []dataplane.File
	FileOwners         map[dataplane.Position][]any // the objects from which a file was made
	Refused            []reconcile.Refusal

	Expiry time.Time // the earliest end of a certificate in use; zero: none is in use
	Next   time.Time // when to call [Model.Routes] again because of dates of certificates and hosts; zero: never

	items map[string]items // the lists for templates, by name
}

// Served yields the Ingresses that are at least partly served, some of them several times.
func (r *Routes) Served() iter.Seq[*networkingv1.Ingress] {
	return func(yield func(*networkingv1.Ingress) bool) {
		for _, list := range []derive.Ordered[*Path]{r.Exact, r.Prefix, r.Patterns, r.Passed} {
			for p := range list.All() {
				if !yield(p.Ingress) {
					return
				}
			}
		}
		for c := range r.Canaries.All() {
			if !yield(c.Ingress) {
				return
			}
		}
		if r.DefaultOf != nil {
			yield(r.DefaultOf)
		}
	}
}

// Host is a claimed host, with its owner.
type Host = claims.Host

// Path is a line of a map: requests that match Key go to Backend.
type Path struct {
	Key, Backend string
	Ingress      *networkingv1.Ingress // that claims it

	kind networkingv1.PathType
}

// compare sorts paths by their keys, and patterns with the longest first, behind those of paths
// that are too long.
func (p *Path) compare(other *Path) int {
	if p.kind == pattern {
		return cmp.Or(
			boolToInt(other.Backend == tooLong)-boolToInt(p.Backend == tooLong),
			cmp.Compare(len(other.Key), len(p.Key)),
			cmp.Compare(p.Key, other.Key),
		)
	}
	return cmp.Compare(p.Key, other.Key)
}

// Pattern is the key of a regular expression, which ends what takes HAProxy too many steps.
func (p *Path) Pattern() string { return regex.Bounded(p.Key) }

// Names are for the access log: "namespace/ingress|namespace/service:port".
func (p *Path) Names() string { return namesOfRoute(p.Ingress, p.Backend) }

// defaultNames are the names for the default backend, "" if there is none.
func (r *Routes) defaultNames() string {
	if r.DefaultOf == nil {
		return ""
	}
	return namesOfRoute(r.DefaultOf, r.Default)
}

func namesOfRoute(ing *networkingv1.Ingress, backend string) string {
	words := append(strings.Split(backend, "_"), "", "")
	if backend == tooLong {
		return ing.Namespace + "/" + ing.Name + "|-"
	}
	return ing.Namespace + "/" + ing.Name + "|" + words[0] + "/" + words[1] + ":" + words[2]
}

// Owners makes the Ingress answer for mistakes in the line.
func (p *Path) Owners() []any { return []any{p.Ingress} }

// Backend is a port of a Service.
type Backend struct {
	Name    string // namespace_service_port, or namespace_service_port_hash with options
	Servers []Server
	Options *annotation.Options   // of annotations; nil: none
	Service *corev1.Service       // nil if it does not exist
	Ingress *networkingv1.Ingress // the oldest that names it

	slots endpoints.Slots // who has which server
}

// equal compares all that templates see, and who has which server.
func (b *Backend) equal(other *Backend) bool {
	return b.Name == other.Name && b.Service == other.Service && b.Ingress == other.Ingress && equal(b.Options, other.Options) &&
		slices.Equal(b.Servers, other.Servers) && slices.Equal(b.slots, other.slots)
}

func (b *Backend) compare(other *Backend) int { return cmp.Compare(b.Name, other.Name) }

// Owners makes the Service answer for mistakes in the backend or, if that is not at
// fault, the Ingress.
func (b *Backend) Owners() []any {
	if b.Service == nil {
		return []any{b.Ingress}
	}
	return []any{b.Ingress, b.Service}
}

// Server is an endpoint of a Service. It keeps its name.
type Server = endpoints.Server

// TLSCertificate is a line of the crt-list.
type TLSCertificate struct {
	File   string
	Hosts  []string // server names to use it for
	Except []string // names below a wildcard that do not use it
	Secret *corev1.Secret
}

func (c *TLSCertificate) compare(other *TLSCertificate) int { return cmp.Compare(c.File, other.File) }

func compareFiles(x, y dataplane.File) int {
	return cmp.Or(cmp.Compare(x.Name, y.Name), cmp.Compare(x.Kind, y.Kind))
}

// Owners makes the Secret answer for mistakes in the certificate.
func (c *TLSCertificate) Owners() []any { return []any{c.Secret} }

// deriveRoutes puts the routes together.
func (m *Model) deriveRoutes(in *ofIngresses, of *ofAsks, b *ofBackends, c *ofCertificates) {
	g := m.graph
	paths := derive.SortBy("paths by kind", derive.Merge("all paths", derive.Each("paths", m.lines, printed), m.derivePathLengths()), byKind, (*Path).compare)
	ofKind := func(at *derive.Reads, kind networkingv1.PathType) derive.Ordered[*Path] {
		all, _ := paths.Get(at, kind)
		return all
	}
	splits := derive.GroupBy("splits", m.lines, func(_ line, h held, add func(string, Canary)) {
		if h.split.From != "" {
			add(h.split.From, h.split)
		}
	}, func(a, b Canary) int { return cmp.Or(cmp.Compare(a.To, b.To), byAge(a.Ingress, b.Ingress)) })
	canaries := derive.Sorted("sorted canaries", derive.Each("split", splits, func(_ *derive.Reads, _ string, all []Canary, was *Canary) (*Canary, bool) {
		if was != nil && *was == all[0] {
			return was, true
		}
		return &all[0], true
	}), (*Canary).compare)
	userlists := derive.Sorted("sorted users", derive.Each("lists of users", in.users, onlyLists), (*Userlist).compare)
	backends := derive.Sorted("sorted backends", b.all, (*Backend).compare)
	streams := derive.Sorted("sorted streams", b.streams, (*Backend).compare)
	tcp := derive.Sorted("sorted TCP services", b.tcp, func(a, b *TCPService) int { return a.Backend.compare(b.Backend) })
	certificates := derive.Sorted("sorted certificates", c.used, (*served).compare)
	cas := derive.Sorted(
		"sorted authorities",
		derive.Each("files of authorities", derive.GroupBy("authorities by file", m.authorities, byFile, (*authorities).compare), first[string, *authorities]),
		(*authorities).compare,
	)
	files := derive.One(g, "files", func(at *derive.Reads, _ *files) *files {
		return newFiles(certificates.Get(at), cas.Get(at), c.other.Get(at))
	})
	m.routes = derive.One(g, "routes", func(at *derive.Reads, was *Routes) *Routes {
		f := files.Get(at)
		r := &Routes{
			Hosts: m.listing.Hosts.Get(at), Wildcards: m.listing.Wildcards(at), Canaries: canaries.Get(at),
			Userlists: userlists.Get(at), Backends: backends.Get(at), TCP: tcp.Get(at), Streams: streams.Get(at), Refused: m.refused.Get(at),
			Exact: ofKind(
				at,
				networkingv1.PathTypeExact,
			), Prefix: ofKind(at, networkingv1.PathTypePrefix), Patterns: ofKind(at, pattern), Passed: ofKind(at, passedHost),
			Certificates: f.certificates, DefaultCertificate: f.other, Files: f.all, FileOwners: f.owners, Expiry: f.expiry,
		}
		if h, ok := m.lines.Get(at, line{}); ok {
			r.Default, r.DefaultOf = h.serves, h.ing
		}
		if a, ok := of.operator.Get(at, struct{}{}); ok {
			if _, ok := b.all.Get(at, a.noRoute); ok {
				r.NoRoute = a.noRoute
			}
		}
		r.makeItems(was)
		return r
	})
}

// files are the files that are made without a template.
type files struct {
	certificates []*TLSCertificate
	other        string
	all          []dataplane.File
	owners       map[dataplane.Position][]any
	expiry       time.Time
}

func newFiles(certificates derive.Ordered[*served], cas derive.Ordered[*authorities], other *checkedSecret) *files {
	f := &files{owners: map[dataplane.Position][]any{}}
	add := func(file dataplane.File, secret *corev1.Secret) {
		f.all = append(f.all, file)
		f.owners[dataplane.Position{Kind: file.Kind, Name: file.Name}] = []any{secret}
	}
	expires := func(when time.Time) {
		if f.expiry.IsZero() || when.Before(f.expiry) {
			f.expiry = when
		}
	}
	for c := range certificates.All() {
		if len(c.Hosts) > 0 { // without server names HAProxy would use it for all names in it
			f.certificates = append(f.certificates, &c.TLSCertificate)
		}
		add(c.file, c.Secret)
		expires(c.until)
	}
	for a := range cas.All() {
		add(a.file, a.secret)
	}
	if other != nil && other.file != "" {
		f.other = other.file
		add(dataplane.File{Kind: dataplane.Certificate, Name: other.file, Content: other.use().Content}, other.checked.Secret)
		expires(other.use().NotAfter)
	}
	slices.SortFunc(f.all, compareFiles)
	return f
}
