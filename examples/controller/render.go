package main

import (
	"context"
	"embed"
	"io/fs"
	"os"
	"slices"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/examples/controller/ingress"
	"github.com/hapticsdk/haptic/reconcile"
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

// newLoop says how a configuration is made, checked and deployed.
func (c *controller) newLoop() error {
	engine, err := c.compile()
	if err != nil {
		return err
	}
	c.eachBackend = slices.Contains(engine.Entries(), ingress.BackendEntry)
	c.http.Bus, c.http.OnChange = c.bus, func(reason string) { c.loop.Trigger(reason) }
	c.templates = &render.Templates{Engine: engine, Input: c.input, Pure: true, Layout: c.layout, HTTP: &c.http}
	if err := c.templates.Check(); err != nil {
		return err
	}
	validator := &validate.Validator{Layout: c.layout, User: dataplane.DefaultUser()}
	opts := reconcile.Options{
		Renderer: c.templates,
		Validator: reconcile.ValidatorFunc(func(ctx context.Context, cfg *dataplane.Config) error {
			report, err := validator.Check(ctx, cfg)
			if err == nil && !report.Remembered && !report.Inherited {
				c.log.Info("haproxy accepts the configuration", "version", report.HAProxyVersion, "took", report.Duration)
				for _, warning := range report.Warnings {
					c.log.Warn("haproxy warns", "finding", warning)
				}
			}
			return err
		}),
		Bus: c.bus, NoQuarantine: c.cfg.noQuarantine, Debounce: c.cfg.debounce, MinInterval: c.cfg.minInterval, DriftInterval: c.cfg.drift,
	}
	if c.election != nil {
		c.handover = &handover{Templates: c.templates, election: c.election}
		opts.Leader, opts.Renderer = c.handover, c.handover
	}
	if c.newRecorder(); c.recorder != nil {
		opts.Recorder = c.recorder
	}
	if c.local != nil {
		opts.Targets = []reconcile.Target{c.local}
	}
	if c.loop, err = reconcile.New(opts); c.handover != nil {
		c.handover.loop = c.loop
	}
	return err
}
