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

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/examples/controller/ingress"
	"github.com/hapticsdk/haptic/examples/controller/status"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/kit"
	"github.com/hapticsdk/haptic/reconcile/render"
	"github.com/hapticsdk/haptic/templating"
	"github.com/hapticsdk/haptic/validate"
)

//go:embed templates
var builtin embed.FS

// compile type-checks the built-in templates, or those of the user.
func (c *controller) compile() (*templating.Engine, error) {
	if c.cfg.templates != "" {
		return ingress.Compile(os.DirFS(c.cfg.templates), c.layout)
	}
	files, err := fs.Sub(builtin, "templates")
	if err != nil {
		return nil, err
	}
	return ingress.Compile(files, c.layout)
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

// servesStored reports whether HAProxy serves without the templates, from the
// configuration that an earlier run of this controller stored.
func (c *controller) servesStored(ctx context.Context) bool {
	if c.local == nil || c.cfg.once || c.cfg.templates == "" {
		return false
	}
	stored, err := c.local.Current(ctx)
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

// newLoop makes the loop, with its renderer, validator and status writer.
func (c *controller) newLoop() error {
	c.http.Bus, c.http.OnChange = c.bus, func(reason string) { c.loop.Trigger(reason) }
	c.templates = &render.Templates{Input: c.input, Pure: true, Layout: c.layout, HTTP: &c.http}
	if err := c.load(); err != nil && c.servesStored(context.Background()) {
		c.broken.Store(&err)
	} else if err != nil {
		return err
	}
	opts := reconcile.Options{
		Renderer:  c.templates,
		Validator: &validate.Validator{Layout: c.layout, User: dataplane.DefaultUser(), Logger: c.log},
		Bus:       c.bus, NoQuarantine: c.cfg.noQuarantine, Debounce: c.cfg.debounce, MinInterval: c.cfg.minInterval, DriftInterval: c.cfg.drift, StallTime: c.cfg.stallTime,
	}
	if c.election != nil {
		opts.Leader, opts.BeginTerm = c.election, c.beginTerm
	}
	var err error
	if c.status, err = c.newStatus(); err != nil {
		return err
	} else if c.status != nil {
		opts.Renderer = c.status.Renderer(opts.Renderer.(status.Renderer), func() status.Routes { return c.routes.Load() })
	}
	if c.cluster != nil && !c.cfg.dryRun {
		opts.Recorder, c.stopRecorder = kit.NewRecorder(c.cluster, "haptic", c.log)
	}
	if c.local != nil {
		opts.Targets = []reconcile.Target{c.local}
	}
	c.loop, err = reconcile.New(opts)
	return err
}
