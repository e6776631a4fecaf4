package render

import (
	"fmt"

	"github.com/hapticsdk/haptic/dataplane"
)

// PathResolver tells templates where HAProxy finds a file. Give it to them as a global:
//
//	templating.Options{Globals: map[string]any{"pathResolver": render.PathResolver{Layout: layout}}}
type PathResolver struct {
	Layout dataplane.Layout
}

// Path returns the path of a file. The kind is "map", "cert", "ca", "crt-list" or "file", or
// a name of [dataplane.FileKind]. The file need not exist. Path fails for an unknown kind,
// and for a name that [dataplane.CheckFileName] refuses.
func (p PathResolver) Path(kind, name string) (string, error) {
	k, err := fileKind(kind)
	if err != nil {
		return "", err
	}
	if err := dataplane.CheckFileName(k, name); err != nil {
		return "", err
	}
	return p.Layout.Path(k, name), nil
}

// GetPath is Path for templates: an error ends the render, with the position of the call. It
// also takes the name before the kind, as templates of other systems have it. If both are
// kinds, the first one counts as the kind. Called from Go, GetPath panics with the error.
func (p PathResolver) GetPath(kind, name string) string {
	if _, err := fileKind(kind); err != nil {
		if _, swapped := fileKind(name); swapped != nil {
			panic(fmt.Errorf("%w, and neither is %q", err, name))
		}
		kind, name = name, kind
	}
	path, err := p.Path(kind, name)
	if err != nil {
		panic(err)
	}
	return path
}

// fileKind returns the kind that a template names.
func fileKind(name string) (dataplane.FileKind, error) {
	switch name {
	case "map":
		return dataplane.Map, nil
	case "cert", "certificate":
		return dataplane.Certificate, nil
	case "ca":
		return dataplane.CA, nil
	case "crt-list":
		return dataplane.CRTList, nil
	case "file", "general":
		return dataplane.General, nil
	}
	return "", fmt.Errorf("%q is no kind of file: map, cert, ca, crt-list and file are", name)
}
