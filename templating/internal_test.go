package templating

import "github.com/hapticsdk/haptic/templating/internal/place"

// Shown is what the first value of an entry is written as; it reports false
// where it is refused.
func Shown(e *Engine, entry string, v any) (text string, ok bool) {
	defer func() {
		if r := recover(); r != nil {
			if _, refused := r.(*place.Refusal); !refused {
				panic(r)
			}
		}
	}()
	return string(e.entries[entry].sites[0].Escape(v)), true
}
