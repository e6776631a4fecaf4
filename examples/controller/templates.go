package main

import (
	"context"
	"crypto/sha256"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/hapticsdk/haptic/examples/controller/ingress"
	"github.com/hapticsdk/haptic/reconcile/render"
	"github.com/hapticsdk/haptic/templating"
)

//go:embed templates
var builtin embed.FS

// compile type-checks the built-in templates, or those of the user.
func (c *controller) compile() (*templating.Engine, error) {
	if c.cfg.templates != "" {
		return ingress.Compile(os.DirFS(c.cfg.templates), c.targets.Layout)
	}
	files, err := fs.Sub(builtin, "templates")
	if err != nil {
		return nil, err
	}
	return ingress.Compile(files, c.targets.Layout)
}

// load compiles the templates and gives them to the renderer.
func (c *controller) load() error {
	engine, err := c.compile()
	if err != nil {
		return err
	}
	c.each = ingress.EachOf(engine)
	c.templates.Engine = engine
	return c.templates.Check()
}

// newTemplates makes the renderer. Broken templates are an error, unless HAProxy serves a
// stored configuration meanwhile.
func (c *controller) newTemplates() error {
	c.templates = &render.Templates{Input: c.input, Pure: true, Layout: c.targets.Layout, HTTP: &c.http}
	err := c.load()
	if err != nil && c.servesStored(context.Background()) {
		c.broken.Store(&err)
		return nil
	}
	return err
}

// servesStored reports whether HAProxy serves without the templates, from the
// configuration that an earlier run of this controller stored.
func (c *controller) servesStored(ctx context.Context) bool {
	if c.targets.Local == nil || c.cfg.once || c.cfg.templates == "" {
		return false
	}
	stored, err := c.targets.Local.Current(ctx)
	return stored != nil || err != nil
}

// awaitTemplates runs the cases of the user's own templates. If the templates are
// broken and HAProxy serves a stored configuration, it waits until they are mended.
func (c *controller) awaitTemplates(ctx context.Context) error {
	for {
		tried := templateFiles(c.cfg.templates)
		var err error
		if c.broken.Load() != nil {
			err = c.load()
		}
		if err == nil {
			err = c.checkCases(ctx)
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil, !c.servesStored(ctx):
			c.broken.Store(nil)
			return err
		}
		c.broken.Store(&err)
		for ctx.Err() == nil && templateFiles(c.cfg.templates) == tried {
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
		}
	}
}

// templatesAreBroken is a check. Its error says why HAProxy serves the stored configuration.
func (c *controller) templatesAreBroken() error {
	if err := c.broken.Load(); err != nil {
		return fmt.Errorf("HAProxy serves the stored configuration until they are mended: %w", *err)
	}
	return nil
}

// templateFiles is a hash of all files in the folder of templates.
func templateFiles(dir string) string {
	sum := sha256.New()
	_ = fs.WalkDir(os.DirFS(dir), ".", func(name string, _ fs.DirEntry, _ error) error {
		text, _ := os.ReadFile(filepath.Join(dir, name)) // a folder has none
		fmt.Fprintf(sum, "%q %q\n", name, text)
		return nil
	})
	return string(sum.Sum(nil))
}
