package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/examples/controller/ingress"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/cases"
	"github.com/hapticsdk/haptic/reconcile/kit"
	"github.com/hapticsdk/haptic/reconcile/render"
	"github.com/hapticsdk/haptic/validate"
)

// test is -test. It runs cases through the watchers, templates and checks that
// a controller with these flags would have.
func (c *controller) test(ctx context.Context) error {
	var tests []cases.Case
	var err error
	if kit.IsFolder(c.cfg.test) {
		tests, err = cases.Read(os.DirFS(c.cfg.test))
	} else if data, e := os.ReadFile(c.cfg.test); e == nil {
		tests, err = cases.Parse(filepath.Base(c.cfg.test), data)
	} else {
		err = e
	}
	if err != nil {
		return err
	}
	if len(tests) == 0 {
		return fmt.Errorf("-test %s: there are no cases", c.cfg.test)
	}
	c.source = &kit.Source{}
	if err := c.newTargets(); err != nil {
		return err
	}
	runner, err := c.caseRunner()
	if err != nil {
		return err
	}
	results := runner.Run(ctx, tests)
	fmt.Fprint(c.out, results)
	if !results.Passed() {
		return errors.New("cases failed")
	}
	return nil
}

// checkCases runs the cases in the folder of the user's own templates. If one fails,
// the controller deploys nothing. go test runs those of the built-in templates.
func (c *controller) checkCases(ctx context.Context) error {
	if c.cfg.templates == "" {
		return nil
	}
	tests, err := cases.Read(os.DirFS(filepath.Join(c.cfg.templates, cases.Folder)))
	if err != nil || len(tests) == 0 {
		return err
	}
	runner, err := c.caseRunner()
	if err != nil {
		return err
	}
	return runner.Check(ctx, tests)
}

// caseRunner gives each case its own controller, with the fixtures in place of a
// cluster and without a HAProxy.
func (c *controller) caseRunner() (*cases.Runner, error) {
	engine, err := c.compile()
	if err != nil {
		return nil, err
	}
	check := &render.Templates{Engine: engine}
	if err := check.Check(); err != nil {
		return nil, err
	}
	validator := &validate.Validator{Layout: c.targets.Layout, User: dataplane.DefaultUser()}
	cfg := *c.cfg
	cfg.namespaces = nil // fixtures have namespaces of their own
	cfg.certificate, cfg.backend, cfg.tcp = "", ingress.ServiceRef{}, ""
	return &cases.Runner{
		Renderer: func(ctx context.Context, in *cases.Input) (reconcile.Renderer, error) {
			k := &controller{
				cfg:      &cfg,
				log:      slog.New(slog.DiscardHandler),
				bus:      eventbus.New(nil),
				source:   &kit.Source{Source: in.Source},
				ofCase:   true,
				settings: c.settings,
			}
			k.addresses.Allow = c.addresses.Allow // without Listeners, so that a case passes on every host
			k.each = ingress.EachOf(engine)
			if err := k.newWatchers(); err != nil {
				return nil, err
			}
			k.newModel(in.Previous)
			return &render.Templates{Engine: engine, Input: k.input, Pure: true, Layout: c.targets.Layout}, in.Sync(ctx, k.watchers)
		},
		Validator: reconcile.ValidatorFunc(func(ctx context.Context, cfg *dataplane.Config) error {
			_, err := validator.Check(ctx, cfg)
			return err
		}),
	}, nil
}
