package reconcile

import (
	"context"

	"github.com/hapticsdk/haptic/dataplane"
)

// programOrigins knows what wrote a configuration by the lines of the settings.
type programOrigins struct {
	Origins
	program *Program
	reads   *reads
}

// Origin implements [Origins].
func (o *programOrigins) Origin(ctx context.Context, at dataplane.Position) (Origin, error) {
	origin, err := o.Origins.Origin(ctx, at)
	return o.program.files.origin(o.program.settings, origin), err
}

// origin gives an origin its place in the settings, if they came from a file.
func (f *programFiles) origin(s *Settings, o Origin) Origin {
	name, ok := f.resolve(o.File)
	if !ok || s.source == nil {
		return o
	}
	e := s.source.inText(f.paths[name], o.Line, o.Column, nil, "")
	o.File, o.Line, o.Column = e.File, e.Line, e.Column
	return o
}

// Owners implements [Origins]: all that is watched, but for what is fetched on
// demand, which nobody but its own line can accuse.
func (o *programOrigins) Owners(ctx context.Context) ([]any, error) {
	var owners []any
	for _, r := range o.program.resources {
		if r.watch.Store == StoreOnDemand {
			continue
		}
		objs, err := o.reads.stores[r.name].list(ctx)
		if err != nil {
			return nil, err
		}
		for _, obj := range objs {
			if !o.reads.excluded.Has(obj) {
				owners = append(owners, obj)
			}
		}
	}
	return owners, nil
}
