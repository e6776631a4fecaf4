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

// programFiles gives the templates of settings to the engine as a file system. A snippet has
// the same name everywhere. If a map includes "backends.cfg", the engine asks for
// "maps/backends.cfg" and gets the snippet.
type programFiles struct {
	files fstest.MapFS      // by entry or snippet
	paths map[string]string // path of each in the settings
	order []string          // sorted entries
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
				continue // Check refuses it: it leaves its folder
			}
			if !set.snippets() {
				f.order = append(f.order, entry)
			} else if path.Ext(name) == "" {
				continue // Check refuses it
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

// snippetsFolder is the folder of the snippets in the engine's file system.
const snippetsFolder = "snippets"

// resolve returns the template that the engine means by a name.
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

// resourceName matches the use of a watched resource in a template.
var resourceName = regexp.MustCompile(`\bresources\.[a-z]`)

// exportResources changes resources.ingresses to resources.Ingresses in the code of a
// template, because Scriggo accepts only exported fields. It replaces one letter by one
// letter, so positions stay the same.
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

// Messages of Scriggo about an unwatched resource and an untyped loop, and the name that
// exportResources gives a watched resource.
var (
	undefinedResource = regexp.MustCompile(`resources\.(\w+) undefined \(type struct.*`)
	exportedResource  = regexp.MustCompile(`\bresources\.[A-Z]`)
	untypedLoop       = regexp.MustCompile(`^cannot range over ([\pL_][\w\pL]*)\.([\w.\pL]+) \(type interface \{\}\)$`)
)

// problems returns errors of the engine with their place in the settings.
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

// notWatched returns the message about a resource that is not watched, with a suggestion.
func (s *Settings) notWatched(scriggo string) string {
	name := undefinedResource.FindStringSubmatch(scriggo)[1]
	text := "resources." + name + " undefined: it is not in watchedResources"
	if near := strictyaml.Nearest(name, slices.Sorted(maps.Keys(s.WatchedResources))); near != "" {
		text += "; did you mean " + near + "?"
	}
	return text
}

// failures returns the problems of a render. Two resources that fail at the same line are two
// problems.
func (f *programFiles) failures(s *Settings, err error) error {
	if inner := errors.Unwrap(err); inner != nil && inner.Error() == err.Error() {
		err = inner // the wrapper adds nothing
	}
	all := f.problems(s, err)
	for _, e := range all {
		var at *templating.Error
		if !errors.As(e.Err, &at) {
			continue
		}
		if s.doc != nil && e.Err == error(at) { // the loop shows this line, too
			moved := *at
			moved.File, moved.Line, moved.Column, moved.Message = e.File, e.Line, e.Column, e.Path+": "+e.Message
			e.Err = &moved
		}
		for _, owner := range slices.Backward(at.Owners) {
			if r, ok := reconcile.ResourceOf(owner); ok {
				e.Message += " (" + r.String() + ")"
				break
			}
		}
	}
	return all.OrNil()
}

// programOrigins gives the origin of a configuration's lines as lines of the settings.
type programOrigins struct {
	reconcile.Origins
	program *Program
}

// Origin implements [reconcile.Origins].
func (o *programOrigins) Origin(ctx context.Context, at dataplane.Position) (reconcile.Origin, error) {
	origin, err := o.Origins.Origin(ctx, at)
	if at == (dataplane.Position{}) && origin.File == "" { // HAProxy names no line
		origin.File = render.MainEntry
	}
	return o.program.files.origin(o.program.settings, origin), err
}

// origin returns an origin with its place in the settings, if they came from a file.
func (f *programFiles) origin(s *Settings, o reconcile.Origin) reconcile.Origin {
	name, ok := f.resolve(o.File)
	if !ok || s.doc == nil {
		return o
	}
	e := s.doc.InText(f.paths[name], o.Line, o.Column, nil, "")
	o.File, o.Line, o.Column, o.Key = e.File, e.Line, e.Column, e.Path
	return o
}
