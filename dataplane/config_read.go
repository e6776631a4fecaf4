package dataplane

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/hapticsdk/haptic/dataplane/internal/config"
)

// ReadConfig reads a configuration from a folder. The text is the file of that name, such as
// haproxy.cfg. The other files lie beside it in the folders of a [Layout]: maps, ssl and
// general, any of which may be missing. ReadConfig skips names that start with a dot, so it
// can read a mounted ConfigMap.
//
// A file in general is a crt-list or a CA file if the text names it after "crt-list",
// "ca-file" or "ca-verify-file".
//
// The error says which file could not be read, or wraps [ErrInvalidConfig] as that of
// [NewConfig] does.
func ReadConfig(fsys fs.FS, name string) (*Config, error) {
	text, err := fs.ReadFile(fsys, name)
	if err != nil {
		return nil, err
	}
	main := string(text)
	kinds := config.GeneralKinds(main)
	var files []File
	for _, dir := range []string{"maps", "ssl", "general"} {
		entries, err := fs.ReadDir(fsys, path.Join(path.Dir(name), dir))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), ".") {
				continue
			}
			at := path.Join(path.Dir(name), dir, e.Name())
			if e.IsDir() {
				return nil, fmt.Errorf("%w: %s is a folder, where only files can lie", ErrInvalidConfig, at)
			}
			f := File{Kind: General, Name: e.Name()}
			switch kind, ok := kinds[e.Name()]; {
			case dir == "maps":
				f.Kind = Map
			case dir == "ssl":
				f.Kind = Certificate
			case ok:
				f.Kind = FileKind(kind)
			}
			if f.Content, err = fs.ReadFile(fsys, at); err != nil {
				return nil, err
			}
			files = append(files, f)
		}
	}
	return NewConfig(main, files...)
}
