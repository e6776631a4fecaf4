package reconcile

import (
	"context"
	"slices"

	"github.com/hapticsdk/haptic/dataplane"
)

// Guard calls f. A panic is returned as a [*PanicError].
func Guard(f func() error) error { return guard(f) }

// Blame explains an error about a configuration: what is wrong, which line of
// which template wrote that, and for which resource. cfg is nil for the error of a
// render; origins may be nil. An error that cannot be explained has no faults.
func Blame(ctx context.Context, stage string, err error, cfg *dataplane.Config, origins Origins) *ConfigError {
	return blame(ctx, stage, err, cfg, origins)
}

// ResourcesOf names objects, and those to which others belong, each once and the
// most important last.
func ResourcesOf(owners []any) []Resource { return resourcesOf(owners) }

// Quarantines reports whether the loop leaves out a resource because of such an
// error, in place of doing nothing.
func (l *Loop) Quarantines(e *ConfigError) bool {
	return !l.opts.NoQuarantine && isVerdict(e.Err) &&
		slices.ContainsFunc(e.Faults, func(f Fault) bool { _, ok := f.Culprit(); return ok })
}

// WithDefaults returns the options with what zero values mean.
func (o Options) WithDefaults() Options {
	o.setDefaults()
	return o
}
