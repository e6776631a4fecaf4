package validate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/internal/haproxyctl"
)

// Semantics is phase 2: it runs `haproxy -c` over a copy of the configuration and its
// files. The copy is in a new folder with the layout of the instance. Semantics removes the
// folder, and ends all processes that haproxy started. All alerts of haproxy are the
// findings of an *Error. All warnings are in the report.
//
// Semantics remembers the verdict on the same bytes. It also inherits the verdict on the
// last accepted configuration, unless [Validator.NoInherit] is set. The only difference may
// be servers, backends that come or go, entries of maps of strings and whole certificates.
// A backend may come if haproxy accepted another one there with the same lines and the same
// options of servers. It may go if no line mentions its name.
//
// The cost follows the difference to the last configuration: a configuration may inherit
// from one that inherited.
func (v *Validator) Semantics(ctx context.Context, cfg *dataplane.Config) (*Report, error) {
	return v.semantics(ctx, cfg, false)
}

// semantics is Semantics. When isolated, cfg inherits no verdict, and no configuration
// inherits from it.
func (v *Validator) semantics(ctx context.Context, cfg *dataplane.Config, isolated bool) (*Report, error) {
	if cfg == nil {
		return nil, errNoConfig
	}
	binary, version, err := v.haproxy(ctx)
	if err != nil {
		return nil, err
	}
	if known := v.memory.recall(cfg); known != nil {
		if !isolated {
			v.took(ctx, cfg, known)
		}
		return v.result(known, version, &Report{Remembered: true})
	}
	if !isolated {
		if found := v.inherits(ctx, cfg); found != nil {
			return v.result(found, version, &Report{Inherited: true})
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("validate: %w", err)
	}
	start := time.Now()
	found, err := v.ask(ctx, binary, cfg, isolated)
	if err != nil {
		return nil, err
	}
	return v.result(found, version, &Report{Duration: time.Since(start)})
}

// ask runs haproxy -c.
func (v *Validator) ask(ctx context.Context, binary string, cfg *dataplane.Config, isolated bool) (found *verdict, err error) {
	v.leftovers.Do(removeLeftovers)
	var account *haproxyctl.Account
	if v.User != "" {
		if account, err = haproxyctl.FindAccount(v.User); err != nil {
			return nil, fmt.Errorf("validate: %w", err)
		}
	}
	box, err := newSandbox(cfg, v.Layout, account)
	if box != nil {
		defer func() {
			if rmErr := box.remove(); rmErr != nil && err == nil {
				found, err = nil, fmt.Errorf("validate: %w", rmErr)
			}
		}()
	}
	if err != nil {
		return nil, fmt.Errorf("validate: %w", err)
	}
	output, code, err := v.run(ctx, account, box.dir, binary, "-c", "-f", box.config)
	if err != nil && !(errors.Is(err, ErrBinary) && hasAlert(output)) { // some versions crash after they have refused a configuration
		return nil, err
	}
	found = readOutput(output, code, v.Layout, cfg, box)
	if err == nil {
		v.memory.remember(cfg, found)
		if !isolated {
			v.took(ctx, cfg, found)
		}
	}
	return found, nil
}

// result completes a report, or makes the error.
func (v *Validator) result(found *verdict, version string, report *Report) (*Report, error) {
	other := v.TargetVersion != nil && otherVersion(version, v.TargetVersion())
	if len(found.findings) > 0 {
		return nil, &Error{Phase: PhaseSemantics, Findings: slices.Clone(found.findings), HAProxyVersion: version, OtherVersion: other}
	}
	report.Warnings, report.HAProxyVersion, report.OtherVersion = slices.Clone(found.warnings), version, other
	return report, nil
}

// otherVersion compares as many numbers as target has.
func otherVersion(local, target string) bool {
	target, _, _ = strings.Cut(target, "-")
	return target != "" && local != target && !strings.HasPrefix(local, target+".")
}

// verdict is the verdict of haproxy on one configuration.
type verdict struct {
	warnings []Finding
	findings []Finding // not valid if there are any
}

// verdicts remembers verdicts of haproxy.
type verdicts struct {
	mu    sync.Mutex
	known map[string]*verdict // by the hash of the configuration
}

// maxVerdicts bounds the remembered verdicts. One more clears them all.
const maxVerdicts = 32

func (m *verdicts) recall(cfg *dataplane.Config) *verdict {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.known[cfg.Hash()]
}

func (m *verdicts) remember(cfg *dataplane.Config, found *verdict) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known == nil || len(m.known) >= maxVerdicts {
		m.known = map[string]*verdict{}
	}
	m.known[cfg.Hash()] = found
}
