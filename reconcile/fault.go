package reconcile

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/internal/panics"
	"github.com/hapticsdk/haptic/internal/printable"
)

// ConfigError says why there is no new configuration, or why an instance refused it: what is
// wrong, which template line wrote it, and for which resource. It is in the errors of
// [ReconciliationFailed], of the events before it, of [Loop.Once] and of
// [InstanceDeploymentFailed].
type ConfigError struct {
	Stage  string // "render", "validate" or "deploy"
	Faults []Fault
	Why    string // why no resource is quarantined: "a.cfg:4 is wrong for every Ingress: correct the template"
	Err    error  // of the renderer, the validator or the target
}

// Fault is one thing that is wrong with a configuration.
type Fault struct {
	Position  dataplane.Position `json:"position,omitzero"` // in the configuration; zero if a render failed
	Message   string             `json:"message"`           // what is wrong
	Template  TemplateLine       `json:"template,omitzero"` // the line that wrote it; zero if not known
	Resources []Resource         `json:"resources,omitempty"`

	origin Origin
	hangs  bool // it took too long
}

// TemplateLine is a line of a template.
type TemplateLine struct {
	File   string `json:"file"`
	Line   int    `json:"line,omitempty"`   // from 1; 0 if only the file is known
	Column int    `json:"column,omitempty"` // in characters, from 1
	Key    string `json:"key,omitempty"`    // the key in settings, such as haproxyConfig.template
	Text   string `json:"text,omitempty"`

	// ChangedBy names what changed the line after the template wrote it, such as
	// haproxyConfig.postProcessing[0].
	ChangedBy string `json:"changedBy,omitempty"`
}

// String returns "haproxy.cfg:12". For a template in settings it returns "settings.yaml:12:
// haproxyConfig.template".
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

// Culprit returns the resource at fault: the innermost of those being rendered. It returns
// false if none is known.
func (f Fault) Culprit() (Resource, bool) {
	if len(f.Resources) == 0 {
		return Resource{}, false
	}
	return f.Resources[len(f.Resources)-1], true
}

// String returns one line for a log. The template line comes first, because that is the one
// to mend:
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

// located returns the name of a resource and, if known, its file and line.
func (r Resource) located() string {
	if r.Source != "" {
		return printable.Line(r.String() + " (" + r.Source + ")")
	}
	return printable.Line(r.String())
}

// Error returns the stage and the faults, one a line if there are several.
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

// located is an error that knows which positions of a configuration are wrong, and why, such
// as a [*validate.Error].
//
// [*validate.Error]: https://pkg.go.dev/github.com/hapticsdk/haptic/validate#Error
type located interface {
	Positions() iter.Seq2[dataplane.Position, string]
}

// Origin is what wrote a line of a configuration: the template line and the objects being
// rendered, the innermost last.
type Origin struct {
	TemplateLine
	Owners []any // objects whose values the line shows, and values that know their objects; the innermost last
	Reads  []any // other objects that its template asked for
}

// Origins knows what wrote a configuration. The loop asks only when something is wrong,
// possibly from several goroutines.
type Origins interface {
	// Origin returns what wrote a line, or a whole file for line 0. It returns the zero
	// Origin if that is not known. The position is zero if HAProxy names no place.
	Origin(ctx context.Context, at dataplane.Position) (Origin, error)
}

// traced is an error of a [Renderer] that knows which template lines failed, and why.
type traced interface {
	Origins() iter.Seq2[Origin, string]
}

// owned is a value that knows its objects. A template may render such values.
type owned interface{ Owners() []any }

// Explain explains an error about a configuration: what is wrong, which template line wrote
// it, and for which resource. stage is that of [ConfigError]. r is nil, or has no
// configuration, for the error of a render. An error that it cannot explain has no faults.
func (r *Rendered) Explain(ctx context.Context, stage string, err error) *ConfigError {
	e := &ConfigError{Stage: stage, Err: err}
	if r == nil || r.Config == nil {
		e.Faults = tracesOf(err)
		return e
	}
	for at, message := range positions(err, r.Config) {
		f := Fault{Position: at, Message: message}
		if r.Origins != nil {
			// An origin that cannot be found, or panics, only makes the error poorer.
			_ = panics.Guard(func() error {
				o, err := r.Origins.Origin(ctx, at)
				if err == nil {
					f.Template, f.Resources, f.origin = o.TemplateLine, resourcesOf(o.Owners), o
				}
				return err
			})
		}
		e.Faults = append(e.Faults, f)
	}
	return e
}

// tracesOf returns the faults that the error of a render names.
func tracesOf(err error) (faults []Fault) {
	var known traced
	if !errors.As(err, &known) {
		return nil
	}
	for o, message := range known.Origins() {
		faults = append(faults, Fault{Message: message, Template: o.TemplateLine, Resources: resourcesOf(o.Owners), origin: o})
	}
	return faults
}

// positions yields where an error says that a configuration is wrong, and why.
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

// resourcesOf names the objects among owners and, for other values, the objects that they
// belong to. It names each once, the most important last.
func resourcesOf(owners []any) (found []Resource) {
	for _, obj := range objectsOf(owners) {
		r, _ := ResourceOf(obj)
		found = append(slices.DeleteFunc(found, func(x Resource) bool { return x == r }), r)
	}
	return found
}

// objectsOf returns the objects among owners and, for other values, the objects that they
// belong to.
func objectsOf(owners []any) (found []any) {
	for _, o := range owners {
		if m, is := o.(map[string]any); is {
			o = &unstructured.Unstructured{Object: m}
		}
		if _, ok := ResourceOf(o); ok {
			found = append(found, o)
		} else if owned, is := o.(owned); is && o != nil {
			found = append(found, objectsOf(owned.Owners())...)
		}
	}
	return found
}
