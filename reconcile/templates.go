package reconcile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"strings"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/templating"
)

// Input is what a render reads: one consistent view of the resources.
type Input struct {
	Vars      map[string]any   // the variables that the templates were compiled with
	Files     []dataplane.File // made without a template, such as certificates out of Secrets
	Refused   []Refusal
	Resources map[string]int
}

// Templates is a [Renderer] made of compiled templates. The path of an entry
// says what it renders: "haproxy.cfg" the text of the configuration, and files
// by the folder they stand in: "maps/hosts.map", "certificates/x.pem",
// "ca/x.pem", "crt-lists/x.txt", "general/503.http".
type Templates struct {
	Engine *templating.Engine
	Input  func(ctx context.Context) (*Input, error)
}

// MainEntry is the name of the template that renders haproxy.cfg.
const MainEntry = "haproxy.cfg"

// Check reports entries that are of no known kind, and a missing haproxy.cfg,
// all at once: call it at start, before the first render.
func (t *Templates) Check() error {
	var errs []error
	main := false
	for _, entry := range t.Engine.Entries() {
		if entry == MainEntry {
			main = true
			continue
		}
		kind, ok := kindOfEntry(entry)
		if !ok {
			errs = append(errs, fmt.Errorf("template %s: only %s and files in maps/, certificates/, ca/, crt-lists/ and general/ can be rendered", entry, MainEntry))
			continue
		}
		if err := dataplane.CheckFileName(kind, path.Base(entry)); err != nil {
			errs = append(errs, fmt.Errorf("template %s: %w", entry, err))
		}
	}
	if !main {
		errs = append(errs, fmt.Errorf("template %s: missing", MainEntry))
	}
	return errors.Join(errs...)
}

// Render renders every entry with the same input.
func (t *Templates) Render(ctx context.Context) (*Rendered, error) {
	in, err := t.Input(ctx)
	if err != nil {
		return nil, err
	}
	var main string
	files := append([]dataplane.File(nil), in.Files...)
	for _, entry := range t.Engine.Entries() {
		text, err := t.Engine.Render(ctx, entry, in.Vars)
		if err != nil {
			return nil, err
		}
		if entry == MainEntry {
			main = text
			continue
		}
		kind, ok := kindOfEntry(entry)
		if !ok {
			return nil, fmt.Errorf("template %s: of no known kind of file", entry)
		}
		files = append(files, dataplane.File{Kind: kind, Name: path.Base(entry), Content: []byte(text)})
	}
	cfg, err := dataplane.NewConfig(main, files...)
	if err != nil {
		return nil, err
	}
	return &Rendered{Config: cfg, Refused: in.Refused, Resources: maps.Clone(in.Resources)}, nil
}

func kindOfEntry(entry string) (dataplane.FileKind, bool) {
	dir, name, _ := strings.Cut(entry, "/")
	if name == "" || strings.Contains(name, "/") {
		return "", false
	}
	kind, ok := map[string]dataplane.FileKind{
		"maps":         dataplane.Map,
		"certificates": dataplane.Certificate,
		"ca":           dataplane.CA,
		"crt-lists":    dataplane.CRTList,
		"general":      dataplane.General,
	}[dir]
	return kind, ok
}
