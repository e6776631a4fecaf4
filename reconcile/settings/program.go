package settings

import (
	"context"
	"fmt"
	"go/token"
	"maps"
	"path"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/internal/strictyaml"
	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/cases"
	"github.com/hapticsdk/haptic/reconcile/discover"
	"github.com/hapticsdk/haptic/reconcile/fetch"
	"github.com/hapticsdk/haptic/reconcile/render"
	"github.com/hapticsdk/haptic/templating"
)

// ProgramOptions are the inputs of a program besides the settings. The zero value suffices for
// settings without a podSelector and without the namespace "own".
type ProgramOptions struct {
	// Namespace is the namespace of the controller (see [discover.OwnNamespace]). It is the
	// default for the Pods, Secrets and ConfigMaps that the settings name. It is required if
	// podSelector names no namespace.
	Namespace string

	// Logging is for settings without a level or format: the values of the flags. Zero: info
	// and text.
	Logging Logging

	// Globals are the host's own functions and values, as in
	// [templating.Options.Globals].
	Globals map[string]any

	// Layout says where the instances have their files. Zero: as the settings say. Use
	// [dataplane.Local.Layout] for a Local.
	Layout dataplane.Layout

	// HTTP is the store that templates use as the variable http; if nil, they cannot fetch. A
	// [Live] makes one.
	HTTP *fetch.Store

	// Impure says that a function of Globals may answer differently from one render to the
	// next. Then each render renders every template. Otherwise it renders only templates that
	// read something changed.
	Impure bool

	// MaxOutput and MaxMemory are as in [templating.Options].
	MaxOutput, MaxMemory int
}

// Program is compiled settings, which never change. It renders them with the watched
// resources, one configuration at a time.
//
// Templates see resources.NAME for each watched resource, with List(), Get(keys...) and
// GetSingle(keys...). Kinds that client-go knows are typed: ing.Spec.Rules; NewProgram reports
// a misspelt field. Other kinds are maps, as in YAML: route.spec.hostnames. One render reads
// all resources at one instant, except those that are fetched on demand.
// controller.haproxy_pods reads the pods of HAProxy in the same way. The other variables are
// those of [render.HostVars]; the global pathResolver is a [render.PathResolver].
type Program struct {
	settings  *Settings // with defaults
	files     *programFiles
	version   string // of the settings without defaults
	templates *render.Templates
	resources []programResource
	each      map[string]ForEach // by entry
	items     eachItems          // of the last render
	layout    dataplane.Layout
}

// programResource is one watched resource as templates see it.
type programResource struct {
	name  string
	watch WatchedResource
	gvr   schema.GroupVersionResource
	elem  reflect.Type // element type of its lists
}

// haproxyPods is the name of the resource that podSelector adds.
const haproxyPods = "controller.haproxy_pods"

// NewProgram compiles settings. The error is an [Errors] with all mistakes, and their lines in
// the settings.
func NewProgram(s *Settings, opts *ProgramOptions) (*Program, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	p, errs := compileProgram(s, opts)
	if len(errs) > 0 {
		return nil, errs.OrNil()
	}
	return p, nil
}

// ParseProgram reads settings and compiles them. The error is an [Errors] with the mistakes of
// both.
func ParseProgram(name string, data []byte, opts *ProgramOptions) (*Program, error) {
	s, errs := read(name, data)
	if s == nil {
		return nil, errs.OrNil()
	}
	p, more := compileProgram(s, opts)
	errs = append(errs, more...)
	if len(errs) > 0 {
		return nil, errs.OrNil()
	}
	return p, nil
}

// compileProgram compiles settings, which may have mistakes elsewhere.
func compileProgram(s *Settings, opts *ProgramOptions) (_ *Program, errs Errors) {
	if opts == nil {
		opts = &ProgramOptions{}
	}
	with := *s
	orElse(&with.Logging.Level, opts.Logging.Level)
	orElse(&with.Logging.Format, opts.Logging.Format)
	p := &Program{version: s.Version(), settings: with.Defaulted(), files: newProgramFiles(s), layout: opts.Layout, items: eachItems{}}
	if p.layout == (dataplane.Layout{}) {
		p.layout = s.Layout()
	}
	errs = append(errs, p.resolveOwn(s.doc, opts.Namespace)...)
	for _, name := range slices.Sorted(maps.Keys(p.settings.WatchedResources)) {
		if usableName(name) {
			p.watch(name, p.settings.WatchedResources[name])
		}
	}
	if sel := &p.settings.Dataplane.PodSelector; len(sel.MatchLabels) > 0 {
		if orElse(&sel.Namespace, opts.Namespace); sel.Namespace == "" {
			errs = append(
				errs,
				s.doc.Problem(
					"dataplane.podSelector",
					"no namespace: pods of all namespaces would get the password; set podSelector.namespace, or tell the controller its own",
				),
			)
		}
		watched := sel.Namespace
		if watched == discover.AllNamespaces {
			watched = ""
		}
		p.watch(haproxyPods, WatchedResource{APIVersion: "v1", Resources: "pods", Namespace: watched,
			LabelSelector: sel.String(), Store: StoreFull, IndexBy: []string{"metadata.namespace", "metadata.name"}})
	}
	p.each = eachOf(s)
	engine, err := templating.Compile(p.files, &templating.Options{
		Entries: p.files.order, Globals: p.globals(opts), Vars: p.vars(nil), MaxOutput: opts.MaxOutput, MaxMemory: opts.MaxMemory,
	})
	if err != nil {
		return nil, append(errs, p.files.problems(s, err)...)
	}
	p.templates = &render.Templates{Engine: engine, Input: p.input, Layout: p.layout, HTTP: opts.HTTP, Post: postProcessors(s), Pure: !opts.Impure}
	return p, errs
}

// resolveOwn replaces "own" by the namespace of the controller.
func (p *Program) resolveOwn(doc *strictyaml.Document, own string) (errs Errors) {
	const unknown = "own: the namespace of the controller is not known; name one, or tell the controller its own (POD_NAMESPACE)"
	s := p.settings
	for name, r := range s.WatchedResources {
		if r.Namespace != OwnNamespace {
			continue
		}
		r.Namespace = own
		if own == "" {
			errs = append(errs, doc.Problem(strictyaml.Child("watchedResources", name)+".namespace", unknown))
		}
		s.WatchedResources[name] = r
	}
	for _, namespace := range []*string{&s.Dataplane.PodSelector.Namespace, &s.Credentials.Namespace, &s.Dataplane.TLS.CASecret.Namespace} {
		if *namespace == OwnNamespace {
			*namespace = "" // an empty namespace means the same there
		}
	}
	return errs
}

// usableName reports whether templates can use the name of a watched resource.
func usableName(name string) bool {
	for i := range len(name) {
		c := name[i]
		lower, other := 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_'
		if !lower && (i == 0 || !other) {
			return false
		}
	}
	return token.IsIdentifier(name) // no keyword, and not empty
}

func (p *Program) watch(name string, r WatchedResource) {
	gvr, err := r.gvr()
	if err != nil {
		return // reported by Check
	}
	elem := k8swatch.TypeOf(gvr)
	if elem == nil {
		elem = reflect.TypeFor[map[string]any]()
	}
	p.resources = append(p.resources, programResource{name: name, watch: r, gvr: gvr, elem: elem})
}

// Settings returns the compiled settings with all defaults. Do not change them.
func (p *Program) Settings() *Settings { return p.settings }

func (p *Program) globals(opts *ProgramOptions) map[string]any {
	layout := p.layout
	globals := map[string]any{
		"path":         func(kind, name string) string { return layout.Path(dataplane.FileKind(kind), name) },
		"pathResolver": render.PathResolver{Layout: layout},
	}
	maps.Copy(globals, opts.Globals)
	return globals
}

// eachOf returns the entries that are rendered once for each object.
func eachOf(s *Settings) map[string]ForEach {
	all := map[string]ForEach{}
	for _, set := range s.templateSets() {
		for name, t := range set.templates {
			if t.Each != (ForEach{}) && !set.snippets() {
				all[path.Join(set.folder, name)] = t.Each
			}
		}
	}
	return all
}

// readsKey is the key of the reads in the context of a render.
type readsKey struct{}

// input returns the input of the templates.
func (p *Program) input(ctx context.Context) (*render.Input, error) {
	from, _ := ctx.Value(readsKey{}).(*reads)
	in := &render.Input{Vars: p.vars(from), Each: make(map[string]render.Each, len(p.each)), Resources: from.stores.counts(), Reads: &from.Reads}
	for entry, each := range p.each {
		items, err := from.itemsOf(each.Resource)
		if err != nil {
			return nil, err
		}
		in.Each[entry] = render.Each{Var: each.As, Items: items}
	}
	return in, nil
}

// Render renders everything from these stores. An error in a template has its line in the
// settings, as an [Errors]. If a store knows its Revision, Render repeats an entry only if
// something that it read has changed. Functions in [ProgramOptions.Globals] must therefore
// always answer the same; otherwise set ProgramOptions.Impure.
func (p *Program) Render(ctx context.Context, stores Stores) (*reconcile.Rendered, error) {
	return p.render(ctx, p.templates, p.items, stores)
}

func (p *Program) render(ctx context.Context, templates *render.Templates, items eachItems, stores Stores) (*reconcile.Rendered, error) {
	from := newReads(ctx, stores, items)
	rendered, err := templates.Render(context.WithValue(ctx, readsKey{}, from))
	if err != nil && ctx.Err() == nil {
		err = &render.Error{Err: p.files.failures(p.settings, err)} // with the lines of the settings
	}
	if rendered != nil {
		rendered.Origins = &programOrigins{rendered.Origins, p}
	}
	return rendered, err
}

// postProcessors returns the steps of all templates for [render.Templates].
func postProcessors(s *Settings) []render.PostProcessor {
	all := []render.PostProcessor{}
	add := func(key, files string, t Template) {
		for i, step := range t.PostProcessing {
			p := step.processor(files)
			p.Name = fmt.Sprintf("%s.postProcessing[%d]", key, i)
			all = append(all, p)
		}
	}
	add("haproxyConfig", "", s.HAProxyConfig)
	for _, set := range s.templateSets() {
		for _, name := range slices.Sorted(maps.Keys(set.templates)) {
			add(strictyaml.Child(set.key, name), string(set.kind)+"/"+name, set.templates[name])
		}
	}
	return all
}

func (p PostProcess) processor(files string) render.PostProcessor {
	if p.Type == "squeeze" {
		return render.PostProcessor{Squeeze: true, Files: files}
	}
	return render.PostProcessor{Pattern: p.Params.Pattern, Replacement: p.Params.Replace, Files: files}
}

// CaseRenderer returns the renderer of a case. It watches the case's fixtures in the way that
// the program watches resources. It is for [cases.Runner.Renderer].
func (p *Program) CaseRenderer(ctx context.Context, in *cases.Input) (reconcile.Renderer, error) {
	group := k8swatch.NewGroup(&k8swatch.GroupOptions{Debounce: -1})
	stores, watchers := Stores{}, map[string]*k8swatch.Watcher{}
	for _, r := range p.resources {
		w, err := k8swatch.New(in.Source, r.gvr, r.watch.options())
		if err == nil {
			err = group.Add(w)
		}
		if err != nil {
			return nil, err
		}
		watchers[r.name] = w
	}
	if err := in.Sync(ctx, group); err != nil {
		return nil, err
	}
	all := group.Snapshot()
	for name, w := range watchers {
		stores[name] = storeOf(all.Of(w))
	}
	templates := &render.Templates{Engine: p.templates.Engine, Input: p.input, Layout: p.layout, Post: p.templates.Post}
	templates.SetPrevious(in.Previous)
	templates.HTTP = in.HTTPStore()
	items := eachItems{}
	return reconcile.RendererFunc(func(ctx context.Context) (*reconcile.Rendered, error) {
		return p.render(ctx, templates, items, stores)
	}), nil
}
