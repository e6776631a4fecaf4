package dataplane

import (
	"context"

	"github.com/hapticsdk/haptic/dataplane/internal/diff"
)

// Accepted is a configuration that `haproxy -c` accepts. It tells which other ones haproxy
// then certainly accepts, too: a validator need not run haproxy for them. The zero value has
// no configuration. An Accepted is not safe for concurrent use.
//
// It is stricter than [Diff] and asks another question. A weight of 300 needs no reload, but
// haproxy refuses it. A new backend may need a reload, but haproxy takes it, because it
// accepted another one with the same lines.
type Accepted struct{ inner diff.Accepted }

// Take notes that haproxy ran and accepts cfg. It reads the sections that no configuration
// before shares with cfg.
func (a *Accepted) Take(cfg *Config) { a.inner.Take(cfg.inner) }

// Becomes reports whether haproxy certainly accepts cfg because it accepts a. If so, a becomes
// cfg. The difference may only be:
//
//   - servers, with options that haproxy accepted in that backend, or in one with the same
//     lines;
//   - a new backend, if haproxy accepted another one there with the same lines and the same
//     options of servers;
//   - a backend that goes, if no line mentions its name;
//   - entries of maps that take any text;
//   - certificates with the same algorithms, and kinds and sizes of keys.
//
// In doubt, and if ctx has ended, it reports false. The cost follows the difference if one
// configuration was made from the other by [NewConfigFrom].
func (a *Accepted) Becomes(ctx context.Context, cfg *Config) bool {
	return a.inner.Becomes(ctx, cfg.inner)
}
