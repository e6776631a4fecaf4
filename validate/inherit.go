package validate

import (
	"context"

	"github.com/hapticsdk/haptic/dataplane"
)

// took notes that haproxy accepts a configuration.
func (v *Validator) took(ctx context.Context, cfg *dataplane.Config, found *verdict) {
	if v.NoInherit || len(found.findings) > 0 {
		return
	}
	v.state.Lock()
	defer v.state.Unlock()
	if !v.state.accepted.Becomes(ctx, cfg) {
		v.state.accepted.Take(cfg)
		v.state.both = false
	}
	v.state.found = found
}

// inherits returns the verdict on the last accepted configuration, if the difference to cfg
// does not matter. In doubt it returns nil, which costs one run of haproxy.
func (v *Validator) inherits(ctx context.Context, cfg *dataplane.Config) *verdict {
	v.state.Lock()
	defer v.state.Unlock()
	if v.NoInherit || !v.state.accepted.Becomes(ctx, cfg) {
		return nil
	}
	return v.state.found
}

// passes reports whether both phases certainly accept cfg.
func (v *Validator) passes(ctx context.Context, cfg *dataplane.Config) bool {
	v.state.Lock()
	defer v.state.Unlock()
	return cfg != nil && !v.NoInherit && v.state.both && v.state.accepted.Becomes(ctx, cfg)
}

// passed notes that both phases accept cfg.
func (v *Validator) passed(ctx context.Context, cfg *dataplane.Config) {
	v.state.Lock()
	defer v.state.Unlock()
	v.state.both = !v.NoInherit && v.state.accepted.Becomes(ctx, cfg)
}
