package reconcile

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/internal/printable"
)

// ConfigError says why there is no new configuration, or why an instance
// refused it: what is wrong, which line of which template wrote that, and for
// which resource. It is in the errors of [ReconciliationFailed], of the events
// before it, of [Loop.Once] and of [InstanceDeploymentFailed].
type ConfigError struct {
	Stage  string // "render", "validate" or "deploy"
	Faults []Fault
	Why    string // no resource was left out because of it: "the template is to blame"
	Err    error  // of the renderer, the validator or the target
}

// Fault is one thing that is wrong with a configuration.
type Fault struct {
	Position  dataplane.Position `json:"position,omitzero"` // in the configuration; zero where a render failed
	Message   string             `json:"message"`           // what is wrong
	Template  TemplateLine       `json:"template,omitzero"` // what wrote it; zero where that is not known
	Resources []Resource         `json:"resources,omitempty"`
}

// TemplateLine is a line of a template.
type TemplateLine struct {
	File   string `json:"file"`
	Line   int    `json:"line,omitempty"`   // from 1; 0 where only the file is known
	Column int    `json:"column,omitempty"` // in characters, from 1
	Key    string `json:"key,omitempty"`    // of settings whose text it is in, such as haproxyConfig.template
	Text   string `json:"text,omitempty"`

	// ChangedBy names what changed the line behind the template, such as
	// haproxyConfig.postProcessing[0].
	ChangedBy string `json:"changedBy,omitempty"`
}

// String gives "haproxy.cfg:12", of settings "settings.yaml:12: haproxyConfig.template".
func (l TemplateLine) String() string {
	text := l.File
	if l.Line > 0 {
		text = fmt.Sprintf("%s:%d", l.File, l.Line)
	}
	if l.Key != "" {
		text += ": " + l.Key
	}
	if l.ChangedBy != "" {
		text += ", changed by " + l.ChangedBy
	}
	return text
}

// Culprit is the resource that is to blame: the innermost of those that were
// being rendered. It reports false where none is known.
func (f Fault) Culprit() (Resource, bool) {
	if len(f.Resources) == 0 {
		return Resource{}, false
	}
	return f.Resources[len(f.Resources)-1], true
}

// String reads as one line of a log. The line of the template comes first, as that is
// the one to mend:
//
//	haproxy.d/backend.cfg:4: unknown keyword "foo"; rendered as line 812 of haproxy.cfg for Ingress shop/web (web.yaml:12)
func (f Fault) String() string {
	text, by := f.Message, "; caused by "
	switch known := f.Position != (dataplane.Position{}); {
	case known && f.Template.File != "":
		file := f.Position
		file.Line = 0
		text, by = f.Template.String()+": "+text+"; rendered as ", " for "
		if f.Position.Line > 0 {
			text += fmt.Sprintf("line %d of ", f.Position.Line)
		}
		text += file.String()
	case known:
		text = f.Position.String() + ": " + text
	case f.Template.File != "":
		text, by = f.Template.String()+": "+text, " for "
	}
	if r, ok := f.Culprit(); ok {
		text += by + r.located()
	}
	return printable.Line(text)
}

// located is the name of a resource and, where that is known, its place.
func (r Resource) located() string {
	if r.Source != "" {
		return printable.Line(r.String() + " (" + r.Source + ")")
	}
	return printable.Line(r.String())
}

// Error gives the stage and the faults, one a line where there are several.
func (e *ConfigError) Error() string {
	const most = 20 // a template that is wrong for thousands of resources has thousands
	text := e.Stage + ": "
	switch n := len(e.Faults); n {
	case 0:
		text += printable.Text(e.Err.Error())
	case 1:
		text += e.Faults[0].String()
	default:
		text += fmt.Sprintf("%d faults", n)
		for _, f := range e.Faults[:min(n, most)] {
			text += "\n\t" + f.String()
		}
		if n > most {
			text += fmt.Sprintf("\n\tand %d more", n-most)
		}
	}
	if e.Why != "" {
		text += " (" + e.Why + ")"
	}
	return text
}

func (e *ConfigError) Unwrap() error { return e.Err }

// located is an error that knows where in a configuration things are wrong, and
// what, such as a [*validate.Error].
//
// [*validate.Error]: https://pkg.go.dev/github.com/hapticsdk/haptic/validate#Error
type located interface {
	Positions() iter.Seq2[dataplane.Position, string]
}

// Origin is what wrote a line of a configuration: the line of a template and, the
// innermost last, the objects that it was rendering.
type Origin struct {
	TemplateLine
	Owners []any
}

// Origins knows what wrote a configuration. The loop asks only when something
// is wrong. It may be asked from several goroutines.
type Origins interface {
	// Origin says what wrote a line, or a whole file for line 0; the zero Origin
	// where that is not known. HAProxy may name no place: the zero Position.
	Origin(ctx context.Context, at dataplane.Position) (Origin, error)
	// Owners returns all objects that the configuration was made of, in a
	// stable order.
	Owners(ctx context.Context) ([]any, error)
}

// traced is an error of a [Renderer] that knows which lines of templates failed,
// and with what message.
type traced interface {
	Origins() iter.Seq2[Origin, string]
}

// owned is a value that belongs to objects, as what a template renders may be.
type owned interface{ Owners() []any }

// Blame explains an error about a configuration: what is wrong, which line of
// which template wrote that, and for which resource. cfg is nil for the error of a
// render; origins may be nil. An error that cannot be explained has no faults.
func Blame(ctx context.Context, stage string, err error, cfg *dataplane.Config, origins Origins) *ConfigError {
	e := &ConfigError{Stage: stage, Err: err}
	if cfg == nil {
		e.Faults = tracesOf(err)
		return e
	}
	for at, message := range positions(err, cfg) {
		f := Fault{Position: at, Message: message}
		if origins != nil {
			// An origin that cannot be found only makes the error poorer.
			if o, err := origins.Origin(ctx, at); err == nil {
				f.Template, f.Resources = o.TemplateLine, ResourcesOf(o.Owners)
			}
		}
		e.Faults = append(e.Faults, f)
	}
	return e
}

// tracesOf are the faults of a render, as its error tells them.
func tracesOf(err error) (faults []Fault) {
	var known traced
	if !errors.As(err, &known) {
		return nil
	}
	for o, message := range known.Origins() {
		faults = append(faults, Fault{Message: message, Template: o.TemplateLine, Resources: ResourcesOf(o.Owners)})
	}
	return faults
}

// positions are where an error says that a configuration is wrong.
func positions(err error, cfg *dataplane.Config) iter.Seq2[dataplane.Position, string] {
	var known located
	if errors.As(err, &known) {
		return known.Positions()
	}
	return func(yield func(dataplane.Position, string) bool) {
		var e *dataplane.Error
		if !errors.As(err, &e) || e.File == "" {
			return
		}
		at := dataplane.Position{Line: e.Line}
		if i := slices.IndexFunc(cfg.Files(), func(f dataplane.File) bool { return e.File == string(f.Kind)+" "+f.Name }); i >= 0 {
			at.Kind, at.Name = cfg.Files()[i].Kind, cfg.Files()[i].Name
		}
		if at != (dataplane.Position{}) {
			yield(at, strings.Replace(err.Error(), at.String()+": ", "", 1))
		}
	}
}

// ResourcesOf names objects, and those to which others belong, each once and the
// most important last.
func ResourcesOf(owners []any) (found []Resource) {
	for v := range versionsOf(owners) {
		found = appendLast(found, v.Resource)
	}
	return found
}

// appendLast puts a resource last, also where it stood before.
func appendLast(all []Resource, r Resource) []Resource {
	all = slices.DeleteFunc(all, func(x Resource) bool { return x == r })
	return append(all, r)
}

// sourceAnnotation says where an object was read: k8swatch sets it on objects of a
// folder.
const sourceAnnotation = "haptic.hapticsdk.dev/source"

// Resource names one Kubernetes object as it was at one time. It is comparable.
type Resource struct {
	APIVersion string    `json:"apiVersion,omitempty"` // "" where a typed object does not say
	Kind       string    `json:"kind"`
	Namespace  string    `json:"namespace,omitempty"`
	Name       string    `json:"name"`
	UID        types.UID `json:"uid,omitempty"`
	Version    string    `json:"version,omitempty"` // metadata.resourceVersion
	Source     string    `json:"source,omitempty"`  // where it was read, if that is known: "web.yaml:12"
}

// String gives kind and name, as in "Ingress shop/web".
func (r Resource) String() string {
	if r.Namespace == "" {
		return strings.TrimSpace(r.Kind + " " + r.Name)
	}
	return strings.TrimSpace(r.Kind + " " + r.Namespace + "/" + r.Name)
}

// ResourceOf names an object: a typed one of client-go, an unstructured one, or
// the map inside of such a one. It reports false for anything else.
//
// The kind of a typed object that does not say its own, as those of a watch, is
// that under which client-go knows its Go type, or else the type's name.
func ResourceOf(v any) (Resource, bool) {
	if r, ok := v.(Resource); ok {
		return r, true
	}
	if m, ok := v.(map[string]any); ok {
		v = &unstructured.Unstructured{Object: m}
	}
	o, ok := v.(metav1.Object)
	if !ok || reflect.ValueOf(v).Kind() == reflect.Pointer && reflect.ValueOf(v).IsNil() || o.GetName() == "" {
		return Resource{}, false
	}
	r := Resource{
		Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(), Version: o.GetResourceVersion(),
		Source: o.GetAnnotations()[sourceAnnotation],
	}
	if ro, ok := v.(runtime.Object); ok {
		gvk := ro.GetObjectKind().GroupVersionKind()
		r.APIVersion, r.Kind = gvk.ToAPIVersionAndKind()
	}
	if ro, ok := v.(runtime.Object); ok && r.Kind == "" {
		if kinds, _, err := scheme.Scheme.ObjectKinds(ro); err == nil && len(kinds) == 1 {
			r.APIVersion, r.Kind = kinds[0].ToAPIVersionAndKind()
		}
	}
	if r.Kind == "" {
		r.Kind = reflect.Indirect(reflect.ValueOf(v)).Type().Name()
	}
	return r, true
}

// known returns all resources that the last attempt was made of.
func (s *search) known(ctx context.Context) []Resource { return s.last.known(ctx) }

func (a *attempt) known(ctx context.Context) []Resource {
	if a.rendered == nil {
		return nil
	}
	return resourcesIn(ctx, a.rendered.Origins)
}

// resourcesIn returns all resources that a configuration was made of.
func resourcesIn(ctx context.Context, origins Origins) (found []Resource) {
	all, _ := versionsIn(ctx, origins)
	for _, v := range all {
		found = append(found, v.Resource)
	}
	return found
}

// versionsIn is resourcesIn with the objects.
func versionsIn(ctx context.Context, origins Origins) (found []version, err error) {
	if origins == nil {
		return nil, nil
	}
	var owners []any
	if err := Guard(func() (err error) { owners, err = origins.Owners(ctx); return err }); err != nil {
		return nil, err
	}
	seen := map[Resource]bool{}
	for v := range versionsOf(owners) {
		if !seen[v.Resource] {
			seen[v.Resource] = true
			found = append(found, v)
		}
	}
	return found, nil
}

// versionsOf yields objects, and those to which others belong.
func versionsOf(owners []any) iter.Seq[version] {
	return func(yield func(version) bool) {
		for _, o := range owners {
			if r, ok := ResourceOf(o); ok {
				if m, is := o.(map[string]any); is {
					o = &unstructured.Unstructured{Object: m}
				}
				if !yield(version{r, o}) {
					return
				}
			} else if owned, is := o.(owned); is && o != nil {
				for v := range versionsOf(owned.Owners()) {
					if !yield(v) {
						return
					}
				}
			}
		}
	}
}

// failure is err, and a nil interface where that is nil.
func (a *attempt) failure() error {
	if a.err == nil {
		return nil
	}
	return a.err
}

// made is the configuration that was rendered; nil: none was.
func (a *attempt) made() *dataplane.Config {
	if a.rendered == nil {
		return nil
	}
	return a.rendered.Config
}

// key tells failures apart.
func (a *attempt) key() string {
	if cfg := a.made(); cfg != nil {
		return cfg.Hash()
	}
	return a.err.Error()
}
