package settings

import (
	"errors"
	"fmt"
	"maps"
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
	"github.com/hapticsdk/haptic/k8swatch"
)

// Check reports all that [Parse] does, but for what only a file can have
// wrong: it is for settings made in Go. The error is a [Errors].
func (s *Settings) Check() error { return s.check().orNil() }

// settingsCheck gathers what is wrong.
type settingsCheck struct {
	src  *settingsSource
	errs Errors
}

func (c *settingsCheck) fail(path, format string, args ...any) {
	c.errs = append(c.errs, c.src.problem(path, format, args...))
}

func (c *settingsCheck) err(path string, err error) {
	if err != nil {
		c.fail(path, "%v", err)
	}
}

func (s *Settings) check() Errors { return append(s.checkStructure(), s.checkPaths()...) }

// checkPaths checks all JSONPath, against the types that it is for.
func (s *Settings) checkPaths() Errors {
	c := &settingsCheck{src: s.source}
	for i, expr := range s.IgnoreFields {
		_, err := jsonpath.Compile(expr)
		c.err(fmt.Sprintf("watchedResourcesIgnoreFields[%d]", i), err)
	}
	for _, name := range slices.Sorted(maps.Keys(s.WatchedResources)) {
		c.paths(childPath("watchedResources", name), s.WatchedResources[name])
	}
	return c.errs
}

// checkStructure checks everything else but templates.
func (s *Settings) checkStructure() Errors {
	c := &settingsCheck{src: s.source}
	for _, name := range slices.Sorted(maps.Keys(s.WatchedResources)) {
		c.resource(name, s.WatchedResources[name])
	}
	if s.HAProxyConfig.Template == "" {
		c.given("haproxyConfig.template", "empty: the template of haproxy.cfg is required")
	}
	c.text("haproxyConfig", s.HAProxyConfig.Template)
	c.postProcessing("haproxyConfig", templateSet{}, s.HAProxyConfig)
	if s.HAProxyConfig.Each != (ForEach{}) {
		c.fail("haproxyConfig.each", "haproxy.cfg is rendered once; what is there for each object goes into haproxySections")
	}
	variables := map[string]string{} // resource by variable
	for _, set := range s.templateSets() {
		for _, name := range slices.Sorted(maps.Keys(set.templates)) {
			c.template(set, name)
			if each := set.templates[name].Each; each != (ForEach{}) {
				c.each(childPath(set.key, name)+".each", s, set, each, variables)
			}
		}
	}
	c.intervals(s.Reconcile)
	c.dataplane(s.Dataplane)
	if ref := s.Credentials; ref != (SecretRef{}) {
		c.name("credentialsSecretRef.name", ref.Name, true)
		c.name("credentialsSecretRef.namespace", ref.Namespace, false)
	}
	return c.errs
}

func (c *settingsCheck) marked(path string) (mark, bool) {
	if c.src == nil {
		return mark{}, false
	}
	m, ok := c.src.marks[path]
	return m, ok
}

func (c *settingsCheck) name(path, name string, required bool) {
	if name == "" {
		if required {
			c.given(path, "empty")
		}
		return
	}
	for _, problem := range validation.IsDNS1123Subdomain(name) {
		c.fail(path, "%q: %s", name, problem)
	}
}

// resource checks what is watched as k8swatch.New would, but all at once.
func (c *settingsCheck) resource(name string, r WatchedResource) {
	at := childPath("watchedResources", name)
	if !usableName(name) {
		c.fail(at, "templates cannot use this name: a letter of lower case, then letters, digits and _, and no keyword of Go")
	}
	gvr, err := r.gvr()
	switch {
	case r.APIVersion == "":
		c.given(at+".apiVersion", "empty")
	case err != nil:
		c.err(at+".apiVersion", err)
	case len(validation.IsDNS1123Label(gvr.Version)) > 0:
		c.fail(at+".apiVersion", "%q: want version, or group/version", r.APIVersion)
	}
	if r.Resources == "" {
		c.given(at+".resources", "empty")
	} else if len(validation.IsDNS1123Label(r.Resources)) > 0 {
		c.fail(at+".resources", "%q is no resource, such as ingresses", r.Resources)
	} else if plural := pluralOf(gvr); plural != "" {
		c.fail(at+".resources", "%q is the singular; did you mean %s?", r.Resources, plural)
	}
	c.name(at+".namespace", r.Namespace, false)
	if _, err := labels.Parse(r.LabelSelector); err != nil {
		c.err(at+".labelSelector", err)
	}
	if _, err := fields.ParseSelector(r.FieldSelector); err != nil {
		c.err(at+".fieldSelector", err)
	}
	if r.Store != "" && r.Store != StoreFull && r.Store != StoreOnDemand && c.src == nil {
		c.fail(at+".store", "%q is not one of full, on-demand", r.Store)
	}
}

// pluralOf returns the resource of which somebody wrote the singular, "" for
// others: of a kind that client-go knows that is a mistake for sure.
func pluralOf(gvr schema.GroupVersionResource) string {
	if k8swatch.TypeOf(gvr) != nil {
		return ""
	}
	for kind := range scheme.Scheme.KnownTypes(gvr.GroupVersion()) {
		plural, singular := meta.UnsafeGuessKindToResource(gvr.GroupVersion().WithKind(kind))
		if singular == gvr && plural != gvr && k8swatch.TypeOf(plural) != nil {
			return plural.Resource
		}
	}
	return ""
}

// paths checks the JSONPath of a watched resource.
func (c *settingsCheck) paths(at string, r WatchedResource) {
	gvr, _ := r.gvr()
	typ := k8swatch.TypeOf(gvr)
	for i, expr := range r.IndexBy {
		p, err := jsonpath.Compile(expr)
		if err == nil {
			_, err = p.Bind(typ)
		}
		if err == nil && r.Store == StoreOnDemand && !strings.HasPrefix(strings.TrimLeft(expr, "{$."), "metadata") {
			err = errors.New("of a resource that is fetched on demand only metadata is known")
		}
		c.err(fmt.Sprintf("%s.indexBy[%d]", at, i), err)
	}
	for i, expr := range r.IgnoreFields {
		p, err := jsonpath.Compile(expr)
		if err == nil {
			_, err = p.Bind(typ)
		}
		if err == nil && typ != nil {
			err = ignorable(gvr, expr)
		}
		c.err(fmt.Sprintf("%s.ignoreFields[%d]", at, i), err)
	}
}

// ignorable says what a watcher would: that it cannot do without a field.
func ignorable(gvr schema.GroupVersionResource, expr string) error {
	nothing, err := k8swatch.NewStatic()
	if err == nil {
		_, err = k8swatch.New(nothing, gvr, &k8swatch.Options{IgnoreFields: []string{expr}})
	}
	return err
}

// given reports a value that is there and will not do; one that is not there is
// reported by whoever reads the file.
func (c *settingsCheck) given(path, problem string) {
	if _, ok := c.marked(path); c.src == nil || ok && !c.src.wrong[path] {
		c.fail(path, "%s", problem)
	}
}

func (c *settingsCheck) template(set templateSet, name string) {
	at := childPath(set.key, name)
	if set.kind != "" {
		c.err(at, dataplane.CheckFileName(set.kind, name))
	} else if !set.snippets() && (path.Ext(name) != ".cfg" || len(name) < 5 || dataplane.CheckFileName(dataplane.General, name) != nil) {
		c.fail(at, "the name of sections is that of a file that ends with .cfg, such as backends.cfg")
	} else if path.Ext(name) == "" || strings.ContainsAny(name, "/\\\x00") || strings.HasPrefix(name, ".") {
		c.fail(at, "the name of a snippet needs an extension and no folder, such as backends.cfg")
	}
	c.text(at, set.templates[name].Template)
	c.postProcessing(at, set, set.templates[name])
}

// text refuses what YAML can write as an escape, and no file has.
func (c *settingsCheck) text(at, text string) {
	i := strings.IndexFunc(text, func(r rune) bool { return (r < 0x20 || r == 0x7f) && r != '\t' && r != '\n' && r != '\r' })
	if i >= 0 {
		c.fail(at+".template", "the control character %q in line %d of the template", text[i], strings.Count(text[:i], "\n")+1)
	}
}

// reservedVars are the variables that templates have anyway.
var reservedVars = []string{"resources", "controller", "currentConfig", "fileRegistry", "http", "path", "pathResolver", "shared", "data", "it"}

// each checks that the objects are there and the variable is free.
func (c *settingsCheck) each(at string, s *Settings, set templateSet, each ForEach, variables map[string]string) {
	r, ok := s.WatchedResources[each.Resource]
	switch {
	case set.snippets():
		c.fail(at, "a snippet is part of what renders it; give this to that")
	case each.Resource == "":
		c.given(at+".resource", "empty")
	case !ok:
		hint := ""
		if near := nearest(each.Resource, slices.Sorted(maps.Keys(s.WatchedResources))); near != "" {
			hint = "; did you mean " + near + "?"
		}
		c.fail(at+".resource", "%q is not in watchedResources%s", each.Resource, hint)
	case r.Store == StoreOnDemand:
		c.fail(at+".resource", "%s is fetched on demand, not held in full", each.Resource)
	}
	before, taken := variables[each.As]
	switch {
	case each.As == "":
		c.given(at+".as", "empty")
	case !usableName(each.As) || slices.Contains(reservedVars, each.As):
		c.fail(at+".as", "%q is no name for a variable, or has a meaning: a letter of lower case, then letters, digits and _", each.As)
	case taken && before != each.Resource:
		c.fail(at+".as", "%s is an object of %s elsewhere: a variable is always of one resource", each.As, before)
	}
	variables[each.As] = each.Resource
}

func (c *settingsCheck) postProcessing(at string, set templateSet, t Template) {
	for i, step := range t.PostProcessing {
		path := fmt.Sprintf("%s.postProcessing[%d]", at, i)
		switch {
		case set.snippets():
			c.fail(path, "a snippet has none: it is part of what renders it")
		case set.kind == "" && at != "haproxyConfig":
			c.fail(path, "sections have none: haproxyConfig.postProcessing is for the whole haproxy.cfg")
		case step.Type == "squeeze":
			if step.Params != (PostProcessParams{}) {
				c.fail(path+".params", "squeeze has no parameters")
			}
		case step.Type == "regex_replace":
			if step.Params.Pattern == "" {
				c.fail(path+".params.pattern", "missing")
			} else {
				c.err(path+".params.pattern", step.processor("").Check())
			}
		case c.src == nil: // who reads the file checks it
			c.fail(path+".type", "%q is not one of regex_replace, squeeze", step.Type)
		}
	}
}

// Bounds of intervals: beyond them a letter was forgotten, or one too many typed.
const (
	minTimeout  = 10 * time.Millisecond
	maxInterval = 24 * time.Hour
)

func (c *settingsCheck) intervals(i Intervals) {
	o := i.options()
	for _, f := range []struct {
		name        string
		is          time.Duration
		least, most time.Duration // zero: none
	}{
		{"debounceInterval", o.Debounce, 0, maxInterval},
		{"minDeploymentInterval", o.MinInterval, 0, maxInterval},
		{"driftPreventionInterval", o.DriftInterval, 0, 0}, // a long one turns it off
		{"deploymentTimeout", o.DeployTimeout, minTimeout, maxInterval},
		{"renderTimeout", o.RenderTimeout, minTimeout, maxInterval},
		{"retryInterval", o.RetryBase, 0, maxInterval},
		{"retryMaxInterval", o.RetryMax, 0, maxInterval},
	} {
		switch {
		case f.is < 0:
			c.fail("reconcile."+f.name, "negative")
		case f.is > 0 && f.is < f.least:
			c.fail("reconcile."+f.name, "%s is less than %s, in which nothing can be done", f.is, f.least)
		case f.most > 0 && f.is > f.most:
			c.fail("reconcile."+f.name, "%s is more than a day", f.is)
		}
	}
	if o = o.WithDefaults(); o.RetryBase > o.RetryMax {
		c.fail("reconcile.retryInterval", "longer than retryMaxInterval, %s", o.RetryMax)
	}
}

func (c *settingsCheck) dataplane(d Dataplane) {
	c.tls(d)
	if d.Port < 0 || d.Port > 65535 {
		c.fail("dataplane.port", "%d is no port", d.Port)
	}
	for name, dir := range map[string]string{"baseDir": d.BaseDir, "mapsDir": d.MapsDir, "sslCertsDir": d.SSLCertsDir, "generalStorageDir": d.GeneralDir} {
		if dir != "" && (!path.IsAbs(dir) || path.Clean(dir) != dir) {
			c.fail("dataplane."+name, "%q: an absolute path wanted, without . and .. and a / at its end", dir)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(d.PodSelector.MatchLabels)) {
		at := childPath("dataplane.podSelector.matchLabels", key)
		for _, problem := range append(validation.IsQualifiedName(key), validation.IsValidLabelValue(d.PodSelector.MatchLabels[key])...) {
			c.fail(at, "%s", problem)
		}
	}
}
