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
)

// maxVerdicts is how many verdicts a Validator remembers.
const maxVerdicts = 32

// verdict is what haproxy said of one configuration.
type verdict struct {
	warnings []Finding
	findings []Finding // not valid when there are any
	version  string
	crashed  bool // after it had said what is wrong
}

// verdictCache remembers verdicts by what they depend on, and the last
// configuration that haproxy itself accepted.
type verdictCache struct {
	mu     sync.Mutex
	known  map[string]*verdict
	oldest []string // keys in the order in which they came

	base    *dataplane.Config
	baseKey string // of the binary and the options
	verdict *verdict
}

// Semantics is phase 2: `haproxy -c` over a copy of the configuration and its
// files in a folder of its own, laid out as the target's. The process runs in
// a process group of its own; nothing of either is left behind. All alerts of
// haproxy are the findings of an *Error, all its warnings are in the report.
//
// A verdict on the same bytes is remembered. When cfg differs from the
// configuration that haproxy accepted last only in what a running HAProxy
// checks itself (addresses and weights of servers, entries of maps of strings,
// certificates that are whole), its verdict is inherited, unless
// [Validator.NoInherit] is set.
func (v *Validator) Semantics(ctx context.Context, cfg *dataplane.Config) (*Report, error) {
	if cfg == nil {
		return nil, errors.New("validate: no configuration")
	}
	binary, err := v.binary()
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("validate: %w", err)
	}
	who := identity(binary)
	version, err := v.versionOf(ctx, binary, who)
	if err != nil {
		return nil, err
	}
	options := fmt.Sprintf("%s\n%q", who, v.Layout)
	if known, report := v.verdicts.recall(options, cfg); known != nil {
		return v.result(known, report)
	}
	if !v.NoInherit {
		if base, of := v.verdicts.baseOf(options); base != nil && inherits(base, cfg) {
			return v.result(of, &Report{Inherited: true})
		}
	}
	start := time.Now()
	said, err := v.ask(ctx, binary, cfg)
	if err != nil {
		return nil, err
	}
	said.version = version
	if !said.crashed {
		v.verdicts.remember(options, cfg, said)
	}
	return v.result(said, &Report{Duration: time.Since(start)})
}

// ask runs haproxy -c.
func (v *Validator) ask(ctx context.Context, binary string, cfg *dataplane.Config) (said *verdict, err error) {
	box, err := newSandbox(cfg, v.Layout)
	if box != nil {
		defer func() {
			if rmErr := box.remove(); rmErr != nil && err == nil {
				said, err = nil, fmt.Errorf("validate: %w", rmErr)
			}
		}()
	}
	if err != nil {
		return nil, fmt.Errorf("validate: %w", err)
	}
	output, code, err := v.run(ctx, box.dir, binary, "-c", "-f", box.config)
	// Some versions crash over what they have just refused.
	crashed := errors.Is(err, ErrBinary) && hasAlert(output)
	if err != nil && !crashed {
		return nil, err
	}
	said = readOutput(output, code, v.Layout, cfg, box)
	said.crashed = crashed
	return said, nil
}

// result completes a report, or makes the error.
func (v *Validator) result(d *verdict, report *Report) (*Report, error) {
	other := v.TargetVersion != nil && otherVersion(d.version, v.TargetVersion())
	if len(d.findings) > 0 {
		return nil, &Error{Phase: PhaseSemantics, Findings: slices.Clone(d.findings), HAProxyVersion: d.version, OtherVersion: other}
	}
	report.Warnings, report.HAProxyVersion, report.OtherVersion = slices.Clone(d.warnings), d.version, other
	return report, nil
}

// otherVersion compares as many numbers as the target's version has.
func otherVersion(local, target string) bool {
	target, _, _ = strings.Cut(target, "-")
	if target == "" {
		return false
	}
	return local != target && !strings.HasPrefix(local, target+".")
}

func (c *verdictCache) recall(options string, cfg *dataplane.Config) (*verdict, *Report) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.known[options+"\n"+cfg.Hash()], &Report{Remembered: true}
}

func (c *verdictCache) baseOf(options string) (*dataplane.Config, *verdict) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.baseKey != options {
		return nil, nil
	}
	return c.base, c.verdict
}

func (c *verdictCache) remember(options string, cfg *dataplane.Config, d *verdict) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := options + "\n" + cfg.Hash()
	if c.known == nil {
		c.known = map[string]*verdict{}
	}
	if c.known[key] == nil {
		c.oldest = append(c.oldest, key)
	}
	c.known[key] = d
	if len(c.oldest) > maxVerdicts {
		delete(c.known, c.oldest[0])
		c.oldest = c.oldest[1:]
	}
	if len(d.findings) == 0 {
		c.base, c.baseKey, c.verdict = cfg, options, d
	}
}
