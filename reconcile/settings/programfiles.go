package settings

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing/fstest"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/internal/strictyaml"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/render"
	"github.com/hapticsdk/haptic/templating"
)

// programFiles are the templates of settings as the file system that the engine
// compiles. A snippet is found from everywhere: "backends.cfg" in a map is
// "maps/backends.cfg" to the engine, and means the snippet.
type programFiles struct {
	files fstest.MapFS      // by entry or snippet
	paths map[string]string // where each stands in the settings
	order []string          // the entries, sorted
}

func newProgramFiles(s *Settings) *programFiles {
	f := &programFiles{
		files: fstest.MapFS{render.MainEntry: fileOf(s.HAProxyConfig)},
		paths: map[string]string{render.MainEntry: "haproxyConfig.template"},
		order: []string{render.MainEntry},
	}
	for _, set := range s.templateSets() {
		for name, t := range set.templates {
			entry := path.Join(set.folder, name)
			if path.Dir(entry) != set.folder {
				continue // refused by Check: it leaves its folder
			}
			if !set.snippets() {
				f.order = append(f.order, entry)
			} else if path.Ext(name) == "" {
				continue // refused by Check
			}
			f.files[entry], f.paths[entry] = fileOf(t), strictyaml.Child(set.key, name)+".template"
		}
	}
	slices.Sort(f.order)
	return f
}

func fileOf(t Template) *fstest.MapFile {
	return &fstest.MapFile{Data: []byte(exportResources(t.Template))}
}

// snippetsFolder is where the engine looks for what templates include.
const snippetsFolder = "snippets"

// resolve finds the template that a name of the engine means.
func (f *programFiles) resolve(name string) (string, bool) {
	if f.files[name] != nil {
		return name, true
	}
	name = path.Join(snippetsFolder, path.Base(name))
	return name, f.files[name] != nil
}

// Open implements fs.FS.
func (f *programFiles) Open(name string) (fs.File, error) {
	if found, ok := f.resolve(name); ok {
		name = found
	}
	return f.files.Open(name)
}

// resourceName is how templates name what is watched.
var resourceName = regexp.MustCompile(`\bresources\.[a-z]`)

// exportResources writes resources.ingresses as resources.Ingresses in the code
// of a template, for Scriggo takes only fields that Go exports. It changes one
// letter for one, so that no position moves.
func exportResources(text string) string {
	if !strings.Contains(text, "resources.") {
		return text
	}
	out := []byte(text)
	for start, end := range templating.Code(text) {
		for _, at := range resourceName.FindAllStringIndex(text[start:end], -1) {
			last := start + at[1] - 1
			if at[0] > 0 && text[start+at[0]-1] == '.' {
				continue // a field of something else
			}
			out[last] -= 'a' - 'A'
		}
	}
	return string(out)
}

// What Scriggo says of a resource that is not watched, and how it names one that
// is.
var (
	undefinedResource = regexp.MustCompile(`resources\.(\w+) undefined \(type struct.*`)
	exportedResource  = regexp.MustCompile(`\bresources\.[A-Z]`)
	untypedLoop       = regexp.MustCompile(`^cannot range over ([\pL_][\w\pL]*)\.([\w.\pL]+) \(type interface \{\}\)$`)
)

// problems gives errors of the engine their place in the settings.
func (f *programFiles) problems(s *Settings, err error) Errors {
	var all Errors
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			all = append(all, f.problems(s, e)...)
		}
		return all
	}
	var at *templating.Error
	if !errors.As(err, &at) {
		e := s.doc.Problem("", "%v", err)
		e.Err = err
		return Errors{e}
	}
	message := exportedResource.ReplaceAllStringFunc(at.Message, strings.ToLower)
	message = undefinedResource.ReplaceAllStringFunc(message, s.notWatched)
	message = untypedLoop.ReplaceAllString(message, `$0; digList($1, "$2") is a list`)
	name, _ := f.resolve(at.File)
	return Errors{s.doc.InText(f.paths[name], at.Line, at.Column, err, message)}
}

// notWatched says that a resource is not watched, and which one was meant.
func (s *Settings) notWatched(scriggo string) string {
	name := undefinedResource.FindStringSubmatch(scriggo)[1]
	text := "resources." + name + " undefined: it is not in watchedResources"
	if near := strictyaml.Nearest(name, slices.Sorted(maps.Keys(s.WatchedResources))); near != "" {
		text += "; did you mean " + near + "?"
	}
	return text
}

// failures are the problems of a render. Two resources for which the same line
// fails are two problems.
func (f *programFiles) failures(s *Settings, err error) error {
	if inner := errors.Unwrap(err); inner != nil && inner.Error() == err.Error() {
		err = inner // a wrapper that says nothing
	}
	all := f.problems(s, err)
	for _, e := range all {
		var at *templating.Error
		if !errors.As(e.Err, &at) {
			continue
		}
		if s.doc != nil && e.Err == error(at) { // the loop tells of the line, too
			moved := *at
			moved.File, moved.Line, moved.Column, moved.Message = e.File, e.Line, e.Column, e.Path+": "+e.Message
			e.Err = &moved
		}
		if owners := reconcile.ResourcesOf(at.Owners); len(owners) > 0 {
			e.Message += " (" + owners[len(owners)-1].String() + ")"
		}
	}
	return all.OrNil()
}

// programOrigins knows what wrote a configuration by the lines of the settings.
type programOrigins struct {
	reconcile.Origins
	program *Program
	reads   *reads
}

// Origin implements [reconcile.Origins].
func (o *programOrigins) Origin(ctx context.Context, at dataplane.Position) (reconcile.Origin, error) {
	origin, err := o.Origins.Origin(ctx, at)
	if at == (dataplane.Position{}) && origin.File == "" { // HAProxy names no line
		origin.File = render.MainEntry
	}
	return o.program.files.origin(o.program.settings, origin), err
}

// origin gives an origin its place in the settings, if they came from a file.
func (f *programFiles) origin(s *Settings, o reconcile.Origin) reconcile.Origin {
	name, ok := f.resolve(o.File)
	if !ok || s.doc == nil {
		return o
	}
	e := s.doc.InText(f.paths[name], o.Line, o.Column, nil, "")
	o.File, o.Line, o.Column, o.Key = e.File, e.Line, e.Column, e.Path
	return o
}

// Owners implements [reconcile.Origins]: all that is watched, but for what is fetched on
// demand, for which its own line alone answers.
func (o *programOrigins) Owners(ctx context.Context) ([]any, error) {
	var owners []any
	for _, r := range o.program.resources {
		if r.watch.Store == StoreOnDemand {
			continue
		}
		objs, err := o.reads.stores[r.name].list(ctx)
		if err != nil {
			return nil, err
		}
		for _, obj := range objs {
			if obj, ok := reconcile.ToRender(o.reads.excluded, obj); ok {
				owners = append(owners, obj)
			}
		}
	}
	return owners, nil
}
