package reconcile

import (
	"context"
	"testing"
	"time"
)

// TestOptionsAreChecked: each wrong option is named, with the form that is wanted.
func TestOptionsAreChecked(t *testing.T) {
	renderer := RendererFunc(func(context.Context) (*Rendered, error) { return nil, nil })
	for want, opts := range map[string]Options{
		"reconcile: Options.Renderer is missing":                                                      {},
		"reconcile: Options.Debounce is negative: -1s: want 0, for 500ms, or more":                    {Renderer: renderer, Debounce: -time.Second},
		"reconcile: Options.MinInterval is negative: -1s: want 0, for 2s, or more":                    {Renderer: renderer, MinInterval: -time.Second},
		"reconcile: Options.DriftInterval is negative: -1s: want 0, for 1m0s, or more":                {Renderer: renderer, DriftInterval: -time.Second},
		"reconcile: Options.DeployTimeout is negative: -1s: want 0, for 30s, or more":                 {Renderer: renderer, DeployTimeout: -time.Second},
		"reconcile: Options.RenderTimeout is negative: -1s: want 0, for 30s, or more":                 {Renderer: renderer, RenderTimeout: -time.Second},
		"reconcile: Options.RetryBase is negative: -1s: want 0, for 1s, or more":                      {Renderer: renderer, RetryBase: -time.Second},
		"reconcile: Options.RetryMax is negative: -1s: want 0, for 1m0s, or more":                     {Renderer: renderer, RetryMax: -time.Second},
		"reconcile: Options.QuarantineBase is negative: -1s: want 0, for 1m0s, or more":               {Renderer: renderer, QuarantineBase: -time.Second},
		"reconcile: Options.QuarantineMax is negative: -1s: want 0, for 1h0m0s, or more":              {Renderer: renderer, QuarantineMax: -time.Second},
		"reconcile: Options.QuarantineTries is negative: -1: want 0, for 10, or more":                 {Renderer: renderer, QuarantineTries: -1},
		"reconcile: Options.Renderer is a nil reconcile.RendererFunc: set it, or leave the field out": {Renderer: RendererFunc(nil)},
		"reconcile: Options.Validator is a nil *reconcile.ward: set it, or leave the field out":       {Renderer: renderer, Validator: (*ward)(nil)},
		"reconcile: Options.Recorder is a nil *reconcile.ward: set it, or leave the field out":        {Renderer: renderer, Recorder: (*ward)(nil)},
		"reconcile: target 1 of 1 is nil":                                                             {Renderer: renderer, Targets: []Target{nil}},
	} {
		if _, err := New(opts); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
