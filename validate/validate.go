package validate

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/hapticsdk/haptic/dataplane"
)

// Phase is one of the two phases of a validation.
type Phase string

// The phases.
const (
	PhaseSyntax    Phase = "syntax"    // the text on its own, by client-native's parser and the references in it
	PhaseSemantics Phase = "semantics" // the haproxy binary
)

// Errors of the binary, as opposed to errors of the configuration.
var (
	// ErrNoBinary says that there is no haproxy to ask.
	ErrNoBinary = errors.New("no haproxy binary")

	// ErrBinary says that haproxy ended without a verdict: killed, or broken.
	ErrBinary = errors.New("haproxy gave no verdict")
)

// Finding is one thing that is wrong, or that HAProxy warns of. Passwords in
// Text and Message read "(secret)".
type Finding struct {
	File    string `json:"file"`              // as the target knows it, by the layout
	Line    int    `json:"line,omitempty"`    // from 1; zero when nothing says which
	Section string `json:"section,omitempty"` // "backend shop"
	Message string `json:"message"`
	Text    string `json:"text,omitempty"` // that line, without surrounding space

	// Position is the line of the [dataplane.Config] that is wrong; the zero
	// value when nothing says which. It may be in a file where File and Line are
	// of the text that names that file, such as a bind line with a certificate.
	Position dataplane.Position `json:"-"`
}

// String gives "file:line: section: message: text".
func (f Finding) String() string {
	var b strings.Builder
	b.WriteString(f.File)
	if f.Line > 0 {
		fmt.Fprintf(&b, ":%d", f.Line)
	}
	if f.Section != "" {
		b.WriteString(": " + f.Section)
	}
	b.WriteString(": " + f.Message)
	if f.Text != "" {
		b.WriteString(": " + f.Text)
	}
	return b.String()
}

// Error says that a configuration is not valid, with everything that the phase
// found.
type Error struct {
	Phase    Phase
	Findings []Finding

	// HAProxyVersion is the version of the binary that decided, "2.6.12"; empty
	// in phase 1.
	HAProxyVersion string

	// OtherVersion says that this is not the version of the target, which may
	// decide otherwise. See [Validator.TargetVersion].
	OtherVersion bool
}

// Error lists the findings, one a line.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "configuration not valid (%s", e.Phase)
	if e.OtherVersion {
		fmt.Fprintf(&b, ", by HAProxy %s, which is not the target's version", e.HAProxyVersion)
	}
	b.WriteString(")")
	for _, f := range e.Findings {
		b.WriteString("\n\t" + f.String())
	}
	return b.String()
}

// Positions gives what is wrong by its position in the configuration, in the
// order of the findings. What has no known position has the zero one.
func (e *Error) Positions() iter.Seq2[dataplane.Position, string] {
	return func(yield func(dataplane.Position, string) bool) {
		for _, f := range e.Findings {
			message := f.Message
			if f.Text != "" {
				message += ": " + f.Text
			}
			if !yield(f.Position, message) {
				return
			}
		}
	}
}

// Report is what is known of a valid configuration.
type Report struct {
	// Warnings are what HAProxy warns of. It takes the configuration all the
	// same.
	Warnings []Finding

	// Duration is how long the haproxy binary took when it was asked.
	Duration time.Duration

	// Remembered says that the same configuration was asked for before, and
	// that haproxy was not run again.
	Remembered bool

	// Inherited says that haproxy was not run, because the configuration differs
	// from one that it accepted only in what a running HAProxy checks itself.
	// Warnings are those of that configuration.
	Inherited bool

	// HAProxyVersion is the version of the binary that decided, "2.6.12".
	HAProxyVersion string

	// OtherVersion says that this is not the version of the target, which may
	// decide otherwise. See [Validator.TargetVersion].
	OtherVersion bool
}

// DefaultTimeout is how long haproxy may take to check a configuration unless
// [Validator.Timeout] says otherwise: as long as a start of HAProxy, which reads
// the same certificates and maps.
const DefaultTimeout = 30 * time.Second

// Validator validates configurations and remembers what it needs to do so
// again at the cost of what changed: the parse of each section, the verdicts on
// whole configurations, and the last configuration that haproxy itself
// accepted. The zero value is ready to use. It is safe for concurrent use; the
// fields must not change once it is used.
//
// Files that a configuration names but does not bring along are not part of
// what is remembered.
type Validator struct {
	// Binary is haproxy's path. Zero means haproxy in PATH, or else
	// /usr/sbin/haproxy, /usr/local/sbin/haproxy.
	Binary string

	// Layout is the target's: where the files of the configuration lie.
	Layout dataplane.Layout

	// Timeout bounds one run of haproxy. Zero means [DefaultTimeout].
	Timeout time.Duration

	// TargetVersion tells the version of the HAProxy that the configurations are
	// for, as far as it is known: "3.0", "3.0.11", "3.0.11-1+deb13u3" or "".
	// Reports and errors then say whether the binary's is another one. It is
	// called once per verdict, by several goroutines at a time. Nil means that it
	// is not known.
	TargetVersion func() string

	// NoInherit runs haproxy for every new configuration, also where a verdict
	// could be inherited.
	NoInherit bool

	sections sectionCache
	verdicts verdictCache
	version  versionCache
}

// Syntax is phase 1 alone: what [Validator.Check] does first, with the
// default layout. It returns nil or an *Error.
func Syntax(cfg *dataplane.Config) error { return new(Validator).Syntax(cfg) }

// Check runs both phases; the second only when the first finds nothing. A
// configuration that is not valid gives an *Error with everything that the
// phase found. The other errors are about the binary: they wrap [ErrNoBinary],
// [ErrBinary], or the error of a context that ended.
func (v *Validator) Check(ctx context.Context, cfg *dataplane.Config) (*Report, error) {
	if cfg == nil {
		return nil, errors.New("validate: no configuration")
	}
	if err := v.Syntax(cfg); err != nil {
		return nil, err
	}
	return v.Semantics(ctx, cfg)
}

// Validate is [Validator.Check] without the report: nil says that the
// configuration may be deployed. It makes a Validator what a loop of package
// reconcile asks for.
func (v *Validator) Validate(ctx context.Context, cfg *dataplane.Config) error {
	_, err := v.Check(ctx, cfg)
	return err
}
