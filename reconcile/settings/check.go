package settings

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"path"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/internal/jsonpath"
	"github.com/hapticsdk/haptic/internal/strictyaml"
	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/reconcile/cases"
	"github.com/hapticsdk/haptic/reconcile/discover"
)

// Check makes the checks of [Parse], except for mistakes that only a file can have. Use it for
// settings made in Go. The error is an [Errors].
func (s *Settings) Check() error { return s.check().OrNil() }

// kinds returns the checks of texts in settings, by the tag "is".
func kinds() map[string]func(string) error {
	return map[string]func(string) error{
		"apiVersion": checkAPIVersion,
		"fields":     func(text string) error { _, err := fields.ParseSelector(text); return err },
		"folder":     checkAbsolute,
		"host":       checkHost,
		"key":        func(text string) error { return problems(text, validation.IsConfigMapKey(text)) },
		"labels":     func(text string) error { _, err := labels.Parse(text); return err },
		"name":       func(text string) error { return problems(text, validation.IsDNS1123Subdomain(text)) },
		"namespaces": checkNamespaces,
		"path":       func(text string) error { _, err := jsonpath.CompileField(text); return err },
		"resource":   checkResource,
	}
}

func problems(text string, all []string) error {
	if len(all) == 0 {
		return nil
	}
	return fmt.Errorf("%q: %s", text, strings.Join(all, "; "))
}

func checkAPIVersion(text string) error {
	gv, err := schema.ParseGroupVersion(text)
	if err == nil && len(validation.IsDNS1123Label(gv.Version)) > 0 {
		return fmt.Errorf("%q: want version, or group/version", text)
	}
	return err
}

func checkNamespaces(text string) error {
	if text == discover.AllNamespaces {
		return nil
	}
	return problems(text, validation.IsDNS1123Label(text))
}

func checkResource(text string) error {
	if len(validation.IsDNS1123Label(text)) > 0 {
		return fmt.Errorf("%q is not a resource: write its plural in lower case, such as ingresses", text)
	}
	return nil
}

func checkAbsolute(text string) error {
	if !path.IsAbs(text) || path.Clean(text) != text {
		return fmt.Errorf("%q: not a clean absolute path: begin with /, without . and .. and a / at the end", text)
	}
	return nil
}

func checkHost(text string) error {
	if net.ParseIP(text) == nil && len(validation.IsDNS1123Subdomain(text)) > 0 {
		return fmt.Errorf("%q is not a host name: write one such as haproxy.example", text)
	}
	return nil
}

// checker collects the mistakes that the tags cannot find.
type checker struct {
	s    *Settings
	errs Errors
}

func (c *checker) fail(path, format string, args ...any) {
	c.errs = append(c.errs, c.s.doc.Problem(path, format, args...))
}

func (c *checker) err(path string, err error) {
	if err != nil {
		c.fail(path, "%v", err)
	}
}

// check checks everything that does not need compiled templates.
func (s *Settings) check() Errors {
	c := &checker{s: s, errs: append(s.doc.Check("", *s, kinds()), cases.CheckNames(s.Cases)...)}
	for _, name := range slices.Sorted(maps.Keys(s.WatchedResources)) {
		c.resource(strictyaml.Child("watchedResources", name), name, s.WatchedResources[name])
	}
	if s.HAProxyConfig.Template == "" && !s.doc.Failed("") && !s.doc.Failed("haproxyConfig") && !s.doc.Failed("haproxyConfig.template") {
		c.fail("haproxyConfig.template", "empty: the template of haproxy.cfg is required")
	}
	c.template("haproxyConfig", templateSet{}, s.HAProxyConfig)
	if s.HAProxyConfig.Each != (ForEach{}) {
		c.fail("haproxyConfig.each", "haproxy.cfg is rendered once; put the text for each object into haproxySections")
	}
	variables := map[string]string{} // resource by variable
	for _, set := range s.templateSets() {
		for _, name := range slices.Sorted(maps.Keys(set.templates)) {
			at := strictyaml.Child(set.key, name)
			c.err(at, set.checkName(name))
			c.template(at, set, set.templates[name])
			if each := set.templates[name].Each; each != (ForEach{}) {
				c.each(at+".each", set, each, variables)
			}
		}
	}
	c.intervals(s.Reconcile)
	s.Dataplane.TLS.check(s.Dataplane.Scheme, func(path, format string, args ...any) { c.fail("dataplane.tls"+path, format, args...) })
	selector := s.Dataplane.PodSelector.MatchLabels
	for _, key := range slices.Sorted(maps.Keys(selector)) {
		for _, problem := range append(validation.IsQualifiedName(key), validation.IsValidLabelValue(selector[key])...) {
			c.fail(strictyaml.Child("dataplane.podSelector.matchLabels", key), "%s", problem)
		}
	}
	return c.errs
}

// intervals checks names and bounds with the table of the loop.
func (c *checker) intervals(given Intervals) {
	var names []string
	opts := given.options()
	for _, row := range opts.Intervals() {
		at := strictyaml.Child("reconcile", row.Name)
		switch {
		case *row.Value < 0:
			c.fail(at, "%s is negative", *row.Value)
		case *row.Value > 0 && *row.Value < row.Min:
			c.fail(at, "%s is too short: give %s or more", *row.Value, row.Min)
		case row.Max > 0 && *row.Value > row.Max:
			c.fail(at, "%s is too long: give %s or less", *row.Value, row.Max)
		}
		if row.Name != "" {
			names = append(names, row.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !slices.Contains(names, name) {
			c.fail(strictyaml.Child("reconcile", name), "%s", strictyaml.Unknown(name, names))
		}
	}
	if o := opts.WithDefaults(); o.RetryBase > o.RetryMax {
		c.fail("reconcile.retryInterval", "longer than retryMaxInterval, %s", o.RetryMax)
	}
}

// Bounds of cacheTTL: below them, each render fetches all objects again; above them, the value
// is probably mistyped.
const minCacheTTL, maxCacheTTL = time.Second, 24 * time.Hour

// resource makes the checks of k8swatch.New, but reports all mistakes at once.
func (c *checker) resource(at, name string, r WatchedResource) {
	if !usableName(name) {
		c.fail(at, "templates cannot use this name: take a lower-case letter, then letters, digits and _, but no keyword of Go")
	}
	gvr, _ := r.gvr()
	if plural := pluralOf(gvr); plural != "" {
		c.fail(at+".resources", "%q is the singular; did you mean %s?", r.Resources, plural)
	} else if near := nearestOf(gvr); near != "" && checkResource(r.Resources) == nil {
		c.fail(at+".resources", "%s has no %q; did you mean %s?", r.APIVersion, r.Resources, near)
	}
	switch ttl := r.CacheTTL.Duration; {
	case ttl != 0 && r.Store != StoreOnDemand:
		c.fail(at+".cacheTTL", "no effect: remove it, or set store: on-demand; the controller holds all other resources in full")
	case ttl != 0 && (ttl < minCacheTTL || ttl > maxCacheTTL):
		c.fail(at+".cacheTTL", "%s is not between %s and %s", ttl, minCacheTTL, maxCacheTTL)
	}
	typ := k8swatch.TypeOf(gvr)
	bind := func(expr string, compile func(string) (*jsonpath.Path, error)) error {
		p, err := compile(expr)
		if err == nil {
			_, err = p.Bind(typ)
		}
		return err
	}
	for i, expr := range r.IndexBy {
		err := bind(expr, jsonpath.Compile)
		if err == nil && r.Store == StoreOnDemand && !strings.HasPrefix(strings.TrimLeft(expr, "{$."), "metadata") {
			err = errors.New("with store: on-demand the controller knows the metadata only: index by a field of metadata, or set store: full")
		}
		c.err(fmt.Sprintf("%s.indexBy[%d]", at, i), err)
	}
	for i, expr := range r.IgnoreFields {
		err := bind(expr, jsonpath.CompileField)
		if err == nil && typ != nil {
			err = ignorable(gvr, expr)
		}
		c.err(fmt.Sprintf("%s.ignoreFields[%d]", at, i), err)
	}
}

// pluralOf returns the plural if gvr names the singular of a kind that client-go knows: that
// is certainly a mistake. For others it returns "".
func pluralOf(gvr schema.GroupVersionResource) string {
	for plural, singular := range typed(gvr) {
		if singular == gvr.Resource && plural != singular {
			return plural
		}
	}
	return ""
}

// nearestOf returns the known resource whose name is nearly the same, or "". It cannot know
// resources of a newer Kubernetes than client-go's.
func nearestOf(gvr schema.GroupVersionResource) string {
	return strictyaml.Nearest(gvr.Resource, slices.Sorted(maps.Keys(typed(gvr))))
}

// typed returns the resources of the same version that client-go knows, with their singular.
// If client-go knows gvr itself, it returns none.
func typed(gvr schema.GroupVersionResource) map[string]string {
	all := map[string]string{}
	if k8swatch.TypeOf(gvr) != nil {
		return all
	}
	for kind := range scheme.Scheme.KnownTypes(gvr.GroupVersion()) {
		plural, singular := meta.UnsafeGuessKindToResource(gvr.GroupVersion().WithKind(kind))
		if k8swatch.TypeOf(plural) != nil {
			all[plural.Resource] = singular.Resource
		}
	}
	return all
}

// ignorable returns the error that a watcher would have if it cannot do without a field.
func ignorable(gvr schema.GroupVersionResource, expr string) error {
	nothing, err := k8swatch.NewStatic()
	if err == nil {
		_, err = k8swatch.New(nothing, gvr, &k8swatch.Options{IgnoreFields: []string{expr}})
	}
	return err
}

// checkName returns what is wrong with the name of a template.
func (t templateSet) checkName(name string) error {
	switch {
	case t.kind != "":
		return dataplane.CheckFileName(t.kind, name)
	case !t.snippets() && (path.Ext(name) != ".cfg" || len(name) < 5 || dataplane.CheckFileName(dataplane.General, name) != nil):
		return errors.New("the name of sections is that of a file that ends with .cfg, such as backends.cfg")
	case path.Ext(name) == "" || strings.ContainsAny(name, "/\\\x00") || strings.HasPrefix(name, "."):
		return errors.New("the name of a snippet needs an extension and no folder, such as backends.cfg")
	}
	return nil
}

func (c *checker) template(at string, set templateSet, t Template) {
	// YAML escapes can write characters that no file has.
	i := strings.IndexFunc(t.Template, func(r rune) bool { return (r < 0x20 || r == 0x7f) && r != '\t' && r != '\n' && r != '\r' })
	if i >= 0 {
		c.fail(at+".template", "the control character %q in line %d of the template", t.Template[i], strings.Count(t.Template[:i], "\n")+1)
	}
	for i, step := range t.PostProcessing {
		at := fmt.Sprintf("%s.postProcessing[%d]", at, i)
		switch {
		case set.snippets():
			c.fail(at, "a snippet has no postProcessing: give it to the template that renders the snippet")
		case set.key == "haproxySections":
			c.fail(at, "sections have no postProcessing: use haproxyConfig.postProcessing, for the whole haproxy.cfg")
		case step.Type == "squeeze" && step.Params != (PostProcessParams{}):
			c.fail(at+".params", "squeeze has no parameters")
		case step.Type == "regex_replace" && step.Params.Pattern == "":
			c.fail(at+".params.pattern", "missing")
		case step.Type == "regex_replace":
			c.err(at+".params.pattern", step.processor("").Check())
		}
	}
}

// reservedVars are variables that have another meaning in templates.
var reservedVars = []string{"resources", "controller", "currentConfig", "fileRegistry", "http", "path", "pathResolver", "shared", "data", "it"}

// each checks that the settings watch the objects, and that the variable is free.
func (c *checker) each(at string, set templateSet, each ForEach, variables map[string]string) {
	r, ok := c.s.WatchedResources[each.Resource]
	switch {
	case set.snippets():
		c.fail(at, "a snippet has no each: give it to the template that renders the snippet")
	case !ok && each.Resource != "":
		hint := ""
		if near := strictyaml.Nearest(each.Resource, slices.Sorted(maps.Keys(c.s.WatchedResources))); near != "" {
			hint = "; did you mean " + near + "?"
		}
		c.fail(at+".resource", "%q is not in watchedResources%s", each.Resource, hint)
	case r.Store == StoreOnDemand:
		c.fail(at+".resource", "%s is fetched on demand: set its store: full, or take another resource", each.Resource)
	}
	before, taken := variables[each.As]
	switch {
	case each.As == "":
	case !usableName(each.As) || slices.Contains(reservedVars, each.As):
		c.fail(at+".as", "%q cannot name this variable, or templates use it already: take a lower-case letter, then letters, digits and _", each.As)
	case taken && before != each.Resource:
		c.fail(at+".as", "%s is an object of %s elsewhere: a variable is always of one resource", each.As, before)
	}
	variables[each.As] = each.Resource
}
