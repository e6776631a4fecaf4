package validate

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/internal/printable"
)

// Phase is one of the two phases of a validation.
type Phase string

// The phases.
const (
	PhaseSyntax    Phase = "syntax"    // the text on its own
	PhaseSemantics Phase = "semantics" // the haproxy binary
)

// Errors of the binary, as opposed to errors of the configuration.
var (
	ErrNoBinary = errors.New("no haproxy binary")       // haproxy is not installed
	ErrBinary   = errors.New("haproxy gave no verdict") // haproxy was killed, or is broken
)

// Finding is one error, or one warning of HAProxy. Passwords in Text and Message read
// "(secret)".
type Finding struct {
	File    string `json:"file"`              // the path on the instance, by the layout
	Line    int    `json:"line,omitempty"`    // from 1; zero if unknown
	Section string `json:"section,omitempty"` // "backend shop"
	Message string `json:"message"`
	Text    string `json:"text,omitempty"` // that line, without surrounding space

	// Position is the wrong line of the [dataplane.Config]; the zero value if it is
	// unknown. File and Line may name a bind line while Position is in the certificate that
	// the line names.
	Position dataplane.Position `json:"-"`
}

// String returns "file:line: section: message: text".
func (f Finding) String() string {
	file := f.File
	if f.Line > 0 {
		file = fmt.Sprintf("%s:%d", f.File, f.Line)
	}
	if f.Section != "" {
		file += ": " + f.Section
	}
	return file + ": " + f.found()
}

func (f Finding) found() string {
	if f.Text == "" {
		return f.Message
	}
	return f.Message + ": " + f.Text
}

// Error says that a configuration is not valid. It has all findings of one phase.
type Error struct {
	Phase    Phase
	Findings []Finding

	// HAProxyVersion is the version of the binary that decided, "2.6.12"; empty
	// in phase 1.
	HAProxyVersion string

	// OtherVersion says that the instance has another version, which may decide
	// differently. See [Validator.TargetVersion].
	OtherVersion bool
}

// maxShown bounds the findings that an error lists. It counts the others.
const maxShown = 50

// Error lists the findings, one a line.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "configuration not valid (%s", e.Phase)
	if e.OtherVersion {
		fmt.Fprintf(&b, ", checked by HAProxy %s, but the instance runs another version", e.HAProxyVersion)
	}
	b.WriteString(")")
	for _, f := range e.Findings[:min(len(e.Findings), maxShown)] {
		b.WriteString("\n\t" + f.String())
	}
	if more := len(e.Findings) - maxShown; more > 0 {
		fmt.Fprintf(&b, "\n\tand %d more", more)
	}
	return printable.Text(b.String())
}

// Positions yields the position and the message of each finding. The position is zero if it
// is unknown.
func (e *Error) Positions() iter.Seq2[dataplane.Position, string] {
	return func(yield func(dataplane.Position, string) bool) {
		for _, f := range e.Findings {
			if !yield(f.Position, f.found()) {
				return
			}
		}
	}
}

// Report describes the check of a valid configuration.
type Report struct {
	Warnings []Finding     // HAProxy accepts the configuration nevertheless
	Duration time.Duration // of the run of haproxy, if there was one

	// Remembered says that the Validator did not run haproxy, because it has checked the
	// same configuration before.
	Remembered bool

	// Inherited says that the Validator did not run haproxy. The difference to an accepted
	// configuration cannot change the verdict. Warnings are from the last run of haproxy.
	Inherited bool

	// HAProxyVersion is the version of the binary that decided, "2.6.12".
	HAProxyVersion string

	// OtherVersion says that the instance has another version, which may decide
	// differently. See [Validator.TargetVersion].
	OtherVersion bool
}

// DefaultTimeout bounds one run of haproxy unless [Validator.Timeout] is set. A run takes
// as long as a start of HAProxy, which reads the same certificates and maps.
const DefaultTimeout = 30 * time.Second

// Validator validates configurations. It remembers the content of each section, the
// verdicts on whole configurations, and the last accepted configuration. The zero value is
// ready to use. A Validator is safe for concurrent use; do not change its fields after the
// first use.
//
// A Validator does not notice a changed binary. It does not notice changes of files that a
// configuration names but does not bring along. Make a new Validator then.
type Validator struct {
	// Binary is the path of haproxy. Zero means haproxy in PATH, or else
	// /usr/sbin/haproxy, /usr/local/sbin/haproxy.
	Binary string

	// User is the account that haproxy runs under, if this process is root. Zero means the
	// account of this process. The account must be able to read TMPDIR, and all files of
	// this machine that the configuration names.
	User string

	// Env names more environment variables of this process that haproxy gets, beside those
	// that every program needs. See [dataplane.LocalOptions].
	Env []string

	// Layout has the paths of the configuration's files on the instance.
	Layout dataplane.Layout

	// Timeout bounds one run of haproxy. Zero means [DefaultTimeout].
	Timeout time.Duration

	// TargetVersion returns the version of the instance: "3.0", "3.0.11",
	// "3.0.11-1+deb13u3", or "" if it is unknown. Reports and errors then say whether the
	// binary has another version. The Validator calls it once for each verdict, perhaps
	// concurrently. If nil, the version is unknown.
	TargetVersion func() string

	// NoInherit makes the Validator run haproxy for every new configuration.
	NoInherit bool

	// Logger gets a line from Validate for each run of haproxy that accepts a
	// configuration, and one for each warning. If nil, Validate logs nothing.
	Logger *slog.Logger

	state struct {
		sync.Mutex
		texts    texts              // of the last configuration that phase 1 read
		accepted dataplane.Accepted // by both phases, or by phase 2 alone
		found    *verdict           // on the accepted configuration
		both     bool               // both phases accept it
	}
	memory    verdicts
	leftovers sync.Once
	version   struct {
		sync.Mutex
		binary, number string
	}
}

var errNoConfig = errors.New("validate: no configuration: pass one that is not nil")

// Syntax is phase 1 alone, with the default layout. It returns nil or an *Error.
// See [Validator.Syntax].
func Syntax(cfg *dataplane.Config) error { return new(Validator).Syntax(cfg) }

// Check runs phase 1, and phase 2 if phase 1 finds nothing. An *Error means that the
// configuration is not valid. Other errors say that there is no verdict. They may wrap
// [ErrNoBinary], [ErrBinary], or the error of a context that ended.
func (v *Validator) Check(ctx context.Context, cfg *dataplane.Config) (*Report, error) {
	if v.passes(ctx, cfg) { // phase 1 refuses nothing that haproxy accepts
		return v.Semantics(ctx, cfg)
	}
	if err := v.Syntax(cfg); err != nil {
		return nil, err
	}
	report, err := v.Semantics(ctx, cfg)
	if err == nil {
		v.passed(ctx, cfg)
	}
	return report, err
}

// Validate is [Validator.Check] without the report: nil means that the loop may deploy the
// configuration. With this method a Validator is the validator of a loop of package
// reconcile.
func (v *Validator) Validate(ctx context.Context, cfg *dataplane.Config) error {
	report, err := v.Check(ctx, cfg)
	if err == nil && v.Logger != nil && !report.Remembered && !report.Inherited {
		v.Logger.Info("haproxy accepts the configuration", "version", report.HAProxyVersion, "took", report.Duration)
		for _, warning := range report.Warnings {
			v.Logger.Warn("haproxy warns", "finding", warning)
		}
	}
	return err
}

// Quietly is [Validator.Validate] without lines in the log, for a configuration that is not
// for deployment, such as a case of package settings. Such a configuration inherits no
// verdict, and no other one inherits from it.
func (v *Validator) Quietly(ctx context.Context, cfg *dataplane.Config) error {
	err := v.Syntax(cfg)
	if err == nil {
		_, err = v.semantics(ctx, cfg, true)
	}
	return err
}
