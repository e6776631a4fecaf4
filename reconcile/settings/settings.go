package settings

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"path"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/internal/jsonpath"
	"github.com/hapticsdk/haptic/internal/strictyaml"
	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/cases"
	"github.com/hapticsdk/haptic/reconcile/discover"
	"github.com/hapticsdk/haptic/reconcile/render"
)

// Settings describes a controller as data: what it watches, what it renders from that, and how
// it deploys the result. [Parse] reads Settings from YAML, [Schema] is their JSON schema,
// [NewProgram] compiles them, and a [Live] puts them to use while everything runs. The zero
// value of every field is recommended; only haproxyConfig.template is required. Do not change
// Settings that a Program or a Live has.
type Settings struct {
	WatchedResources map[string]WatchedResource `json:"watchedResources,omitempty" doc:"The resources to watch. Templates read them as resources.NAME.List(), .Get(keys...) and .GetSingle(keys...)."`
	IgnoreFields     []string                   `json:"watchedResourcesIgnoreFields,omitempty" doc:"JSONPath of what no watched resource needs, such as status: of fields, ['key'], [3] and [*] alone. Those that do not have it are left alone." is:"path"`

	HAProxyConfig    Template            `json:"haproxyConfig" doc:"The text of haproxy.cfg." required:"true"`
	Sections         map[string]Template `json:"haproxySections,omitempty" doc:"Text that follows haproxyConfig in haproxy.cfg, in the order of the names: backends.cfg."`
	TemplateSnippets map[string]Template `json:"templateSnippets,omitempty" doc:"Templates that others render, import or include, by name. A name needs an extension, such as backends.cfg."`
	Maps             map[string]Template `json:"maps,omitempty" doc:"Map files, by name: hosts.map."`
	Files            map[string]Template `json:"files,omitempty" doc:"Other files, by name: 503.http."`
	Certificates     map[string]Template `json:"sslCertificates,omitempty" doc:"Certificates with their keys, by name: default.pem."`
	CAFiles          map[string]Template `json:"caFiles,omitempty" doc:"CA files, by name: clients.pem."`
	CRTLists         map[string]Template `json:"crtLists,omitempty" doc:"Lists of certificates, by name: sites.txt."`

	Reconcile   Intervals `json:"reconcile,omitempty" doc:"The intervals and time limits."`
	Dataplane   Dataplane `json:"dataplane,omitzero" doc:"How the instances are found and reached."`
	Credentials SecretRef `json:"credentialsSecretRef,omitzero" doc:"The Secret with dataplane_username and dataplane_password. Empty: what the controller was started with, haptic-credentials by default."`
	Logging     Logging   `json:"logging,omitzero" doc:"The log of the controller."`

	// Cases say what the templates must make of fixtures, as in [cases.Parse]. Cases of
	// settings made in Go are not part of their Version.
	Cases []cases.Case `json:"-" yaml:"validationTests" doc:"Cases: fixtures, and what the templates must make of them. Settings that fail one do not take effect."`

	doc   *strictyaml.Document // position of each value; nil for settings made in Go
	cases []byte               // text of the cases
}

// WatchedResource is one kind of watched resource.
type WatchedResource struct {
	APIVersion    string   `json:"apiVersion" doc:"Group and version: networking.k8s.io/v1." required:"true" is:"apiVersion"`
	Resources     string   `json:"resources" doc:"The resource, in the plural: ingresses." required:"true" is:"resource"`
	Namespace     string   `json:"namespace,omitempty" doc:"One namespace; own: that of the controller. Empty: all." is:"name"`
	IndexBy       []string `json:"indexBy,omitempty" doc:"JSONPath of the keys of Get, in this order: of fields, ['key'], [3], [*] and filters, with or without braces. Empty: metadata.namespace, metadata.name."`
	LabelSelector string   `json:"labelSelector,omitempty" doc:"As in kubectl -l." is:"labels"`
	FieldSelector string   `json:"fieldSelector,omitempty" doc:"As in kubectl --field-selector." is:"fields"`
	Store         string   `json:"store,omitempty" doc:"full: all objects are held in memory, and every render sees them at one instant. on-demand: only metadata is watched, and objects are fetched when a template asks for them." enum:"full,on-demand"`

	CacheTTL     metav1.Duration `json:"cacheTTL,omitzero" doc:"How long an object that was fetched is kept, 1s to 24h: only with store: on-demand. It is fetched again before that when it changes. Empty: 2m10s."`
	IgnoreFields []string        `json:"ignoreFields,omitempty" doc:"JSONPath of what is not stored, besides watchedResourcesIgnoreFields: of fields, ['key'], [3] and [*] alone."`
}

// The values of [WatchedResource.Store].
const (
	StoreFull     = "full"
	StoreOnDemand = "on-demand"
)

// OwnNamespace, as the name of a namespace, means the controller's:
// [ProgramOptions.Namespace].
const OwnNamespace = "own"

// Template is a template, and the steps that change its rendered text.
type Template struct {
	Template       string        `json:"template" doc:"The template." required:"key"`
	Each           ForEach       `json:"each,omitzero" doc:"Render it once for each object of a watched resource, one behind the other. Then a change costs only the objects that read what changed. Not for haproxyConfig and templateSnippets."`
	PostProcessing []PostProcess `json:"postProcessing,omitempty" doc:"Steps that change the rendered text, in this order."`
}

// ForEach says to render a template once for each object.
type ForEach struct {
	Resource string `json:"resource" doc:"A name in watchedResources: one that is held in full." required:"true"`
	As       string `json:"as" doc:"The variable that is the object: svc." required:"true"`
}

// PostProcess is one step that changes a rendered text.
type PostProcess struct {
	Type   string            `json:"type" doc:"regex_replace: each line, by a regular expression. squeeze: empty lines in a row become one." enum:"regex_replace,squeeze" required:"true"`
	Params PostProcessParams `json:"params,omitzero" doc:"The parameters of regex_replace."`
}

// PostProcessParams are the parameters of a [PostProcess].
type PostProcessParams struct {
	Pattern string `json:"pattern,omitempty" doc:"A regular expression of Go (RE2)."`
	Replace string `json:"replace,omitempty" doc:"The text in its place; $1 is the first group."`
}

// Intervals are durations by name. The names are those of [reconcile.Options.Intervals], such
// as "debounceInterval". In a file, the values are durations of Go: "500ms", "2s", "1m30s".
type Intervals map[string]metav1.Duration

// Dataplane says how to find and reach the instances. The folders must be absolute paths on
// the machine of HAProxy.
type Dataplane struct {
	PodSelector PodSelector `json:"podSelector,omitzero" doc:"The pods of HAProxy. They get the password, the configuration and every key: an account that may create pods there is trusted."`
	Container   string      `json:"container,omitempty" doc:"Container of the Dataplane API. Empty: dataplane."`
	Port        int         `json:"port,omitempty" doc:"Port of the Dataplane API. Empty: 5555." min:"0" max:"65535"`
	Scheme      string      `json:"scheme,omitempty" doc:"Empty: https. With http, all who are on the way to a pod can read the password and every key." enum:"http,https"`
	TLS         TLS         `json:"tls,omitzero" doc:"How https is checked."`
	BaseDir     string      `json:"baseDir,omitempty" doc:"Folder of haproxy.cfg. Empty: /etc/haproxy." is:"folder"`
	MapsDir     string      `json:"mapsDir,omitempty" doc:"Empty: maps in baseDir." is:"folder"`
	SSLCertsDir string      `json:"sslCertsDir,omitempty" doc:"Empty: ssl in baseDir." is:"folder"`
	GeneralDir  string      `json:"generalStorageDir,omitempty" doc:"Empty: general in baseDir." is:"folder"`
	Strategy    string      `json:"strategy,omitempty" doc:"raw: the HAProxy is configured by this controller alone. shared: sections of others are left alone." enum:"raw,shared"`
	KeepFiles   bool        `json:"keepFiles,omitempty" doc:"Leave stored files alone that the configuration does not need."`
}

// PodSelector selects pods by their labels.
type PodSelector struct {
	MatchLabels map[string]string `json:"matchLabels,omitempty" doc:"Labels that a pod must have."`
	Namespace   string            `json:"namespace,omitempty" doc:"The only namespace whose pods count. Empty: that of the controller. *: all; then an account that may create pods anywhere is trusted." is:"namespaces"`
}

// String returns the selector in the form of kubectl -l.
func (p PodSelector) String() string { return labels.Set(p.MatchLabels).String() }

// SecretRef names a Secret.
type SecretRef struct {
	Name      string `json:"name" doc:"Its name." required:"true" is:"name"`
	Namespace string `json:"namespace,omitempty" doc:"Empty: that of the controller." is:"name"`
}

// Logging says what the controller logs.
type Logging struct {
	Level  string `json:"level,omitempty" doc:"Empty: that of the flag -log-level, which is info. It takes effect at once." enum:"debug,info,warn,error"`
	Format string `json:"format,omitempty" doc:"Empty: that of the flag -log-format, which is text." enum:"text,json"`
}

// Defaulted returns a copy with all defaults except the namespace of the controller. No other
// function knows the defaults.
func (s *Settings) Defaulted() *Settings {
	d := *s
	d.IgnoreFields, d.WatchedResources = nil, make(map[string]WatchedResource, len(s.WatchedResources))
	for name, r := range s.WatchedResources {
		r.IgnoreFields = append(r.ignorable(s.IgnoreFields), r.IgnoreFields...)
		if len(r.IndexBy) == 0 {
			r.IndexBy = []string{"metadata.namespace", "metadata.name"}
		}
		if orElse(&r.Store, StoreFull); r.Store == StoreOnDemand {
			orElse(&r.CacheTTL.Duration, k8swatch.DefaultTTL)
		}
		d.WatchedResources[name] = r
	}
	d.Reconcile = s.Reconcile.defaulted()
	p, layout := &d.Dataplane, s.Layout()
	orElse(&p.Container, "dataplane")
	orElse(&p.Port, 5555)
	orElse(&p.Scheme, "https")
	orElse(&p.Strategy, "raw")
	if p.TLS.CASecret != (KeyRef{}) {
		orElse(&p.TLS.CASecret.Key, discover.DefaultCAKey)
	}
	p.BaseDir = path.Dir(layout.ConfigPath())
	p.MapsDir, p.SSLCertsDir, p.GeneralDir = layout.Dir(dataplane.Map), layout.Dir(dataplane.Certificate), layout.Dir(dataplane.General)
	orElse(&d.Logging.Level, "info")
	orElse(&d.Logging.Format, "text")
	return &d
}

func orElse[T comparable](v *T, otherwise T) {
	var zero T
	if *v == zero {
		*v = otherwise
	}
}

// Layout says where the instances have their files.
func (s *Settings) Layout() dataplane.Layout {
	p := s.Dataplane
	return dataplane.Layout{Base: p.BaseDir, Maps: p.MapsDir, Certificates: p.SSLCertsDir, General: p.GeneralDir}
}

// Version returns a hash of everything that the settings say. Comments and the order of keys do
// not count, except within validationTests.
func (s *Settings) Version() string {
	text, err := json.Marshal(s)
	if err != nil { // cannot happen with these types
		return "unknown"
	}
	sum := sha256.Sum256(append(text, s.cases...))
	return hex.EncodeToString(sum[:8])
}

// options returns the intervals as options of a loop.
func (i Intervals) options() (o reconcile.Options) {
	for _, row := range o.Intervals() {
		*row.Value = i[row.Name].Duration
	}
	return o
}

// defaulted returns all intervals, with defaults.
func (i Intervals) defaulted() Intervals {
	all, opts := Intervals{}, i.options().WithDefaults()
	for _, row := range opts.Intervals() {
		if row.Name != "" {
			all[row.Name] = metav1.Duration{Duration: *row.Value}
		}
	}
	return all
}

// gvr returns the watched resource in the form of client-go.
func (r WatchedResource) gvr() (schema.GroupVersionResource, error) {
	gv, err := schema.ParseGroupVersion(r.APIVersion)
	return gv.WithResource(r.Resources), err
}

// ignorable returns the paths that the resource has. The common paths, such as status, need
// not exist in every resource.
func (r WatchedResource) ignorable(paths []string) (has []string) {
	gvr, err := r.gvr()
	if err != nil {
		return nil
	}
	for _, expr := range paths {
		p, err := jsonpath.CompileField(expr)
		if err == nil {
			_, err = p.Bind(k8swatch.TypeOf(gvr))
		}
		if err == nil {
			has = append(has, expr)
		}
	}
	return has
}

// same reports whether one watcher can serve both. Both must have their defaults.
func (r WatchedResource) same(o WatchedResource) bool { return reflect.DeepEqual(r, o) }

// templateSet is one of the maps of templates: its key in the settings, the folder of its
// entries, and the kind of its files.
type templateSet struct {
	key, folder string
	kind        dataplane.FileKind // "" for snippets and sections
	templates   map[string]Template
}

// snippets reports whether the templates are snippets, which produce no file of their own.
func (t templateSet) snippets() bool { return t.folder == snippetsFolder }

// templateSets lists the maps of templates.
func (s *Settings) templateSets() []templateSet {
	return []templateSet{
		{"haproxySections", render.MainFolder, "", s.Sections},
		{"templateSnippets", snippetsFolder, "", s.TemplateSnippets},
		{"maps", "maps", dataplane.Map, s.Maps},
		{"files", "general", dataplane.General, s.Files},
		{"sslCertificates", "certificates", dataplane.Certificate, s.Certificates},
		{"caFiles", "ca", dataplane.CA, s.CAFiles},
		{"crtLists", "crt-lists", dataplane.CRTList, s.CRTLists},
	}
}
