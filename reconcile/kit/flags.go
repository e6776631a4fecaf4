package kit

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/hapticsdk/haptic/reconcile/observe"
)

// Flags are the flags of a controller: the common ones, and the ones that the program declares
// as in any [flag.FlagSet]. All errors are reported together, one line for each flag: see
// [Flags.Err].
//
//	-metrics-addr      default :9090
//	-debug-addr        default 127.0.0.1:6060
//	-debug-token-file
//	-log-level         default info; a level in settings takes precedence
//	-log-format        default text; likewise
type Flags struct {
	*flag.FlagSet

	MetricsAddr string        // "": none
	DebugAddr   string        // "": none
	DebugToken  observe.Token // "": none; the program may set one after Parse

	log   *Log
	given map[string]bool
	from  map[string]string // variable that the value of a flag comes from
	wrong []error

	refused []error // see Refuse
}

// NewFlags declares the flags that every controller has. log gets the usage, and -log-level
// and -log-format set its level and format.
func NewFlags(program string, log *Log) *Flags {
	f := &Flags{FlagSet: flag.NewFlagSet(program, flag.ContinueOnError), log: log, given: map[string]bool{}, from: map[string]string{}}
	f.StringVar(&f.MetricsAddr, metricsAddr, observe.DefaultMetricsAddr, "`host:port` for /metrics, /healthz and /readyz, open to everybody; empty: none")
	f.StringVar(&f.DebugAddr, debugAddr, observe.DefaultAddr, "`host:port` for metrics and probes and, with a token, debug pages; or unix:/path of a socket "+
		"that needs none; empty: none")
	f.Func("debug-token-file", "`file` with the token that -debug-addr asks for, as bearer or in a browser as the password; required where that is not "+
		"loopback", func(s string) (err error) {
		f.DebugToken, err = observe.ReadToken(s)
		return err
	})
	f.Func("log-level", "`level` from which the log has lines: "+LogLevels+"; settings may say another (default info)", func(s string) error {
		return want(log.SetLevel(s), LogLevels)
	})
	f.Func("log-format", "`format` of the log: "+LogFormats+"; settings may say another (default text)", func(s string) error {
		return want(log.SetFormat(s), LogFormats)
	})
	return f
}

const metricsAddr, debugAddr = "metrics-addr", "debug-addr"

func want(err error, form string) error {
	if err != nil {
		return errors.New("want " + form)
	}
	return nil
}

// Log returns the log that [NewFlags] got.
func (f *Flags) Log() *Log { return f.log }

// Parse reads the arguments. For -h it prints the usage and returns [flag.ErrHelp]. It never
// prints the usage for a mistake, because an error above the usage is hard to find. Err
// returns the mistakes.
func (f *Flags) Parse(args []string) error {
	f.SetOutput(io.Discard)
	f.VisitAll(func(one *flag.Flag) { one.Value = &noted{one.Value, one.Name, f} })
	err := f.FlagSet.Parse(args)
	f.VisitAll(func(one *flag.Flag) { one.Value = one.Value.(*noted).Value })
	if errors.Is(err, flag.ErrHelp) {
		f.SetOutput(f.log.out)
		f.Usage()
		return err
	}
	if err != nil {
		f.Wrong(fmt.Errorf("%w; -h lists all flags", err))
	}
	return nil
}

// Check adds an error with the wanted form of a flag, unless ok. It does not judge a default,
// or a value that already has an error.
func (f *Flags) Check(name string, ok bool, want string) {
	if ok || !f.given[name] {
		return
	}
	value := f.Lookup(name).Value
	if getter, is := value.(flag.Getter); is {
		if text, isText := getter.Get().(string); isText {
			f.Wrong(fmt.Errorf("%s %q: want %s", f.label(name), text, want))
			return
		}
	}
	f.Wrong(fmt.Errorf("%s %s: want %s", f.label(name), value, want))
}

// CheckFile is [Flags.Check] for the name of a file or folder. If it cannot be read, the error
// says why.
func (f *Flags) CheckFile(name string, ok bool, want string) {
	var why *fs.PathError
	if _, err := os.Stat(f.value(name)); errors.As(err, &why) {
		want += " (" + why.Err.Error() + ")"
	}
	f.Check(name, ok, want)
}

// CheckPaths checks flags whose values are absolute paths. The paths need not exist here.
func (f *Flags) CheckPaths(names ...string) {
	for _, name := range names {
		f.Check(name, filepath.IsAbs(f.value(name)), "a path that begins with /")
	}
}

// CheckAbove checks that a duration is above zero.
func (f *Flags) CheckAbove(name string, d time.Duration) {
	f.Check(name, d > 0, "a duration above 0s, such as 500ms")
}

// CheckNamespaces checks flags whose values are names of namespaces.
func (f *Flags) CheckNamespaces(names ...string) {
	for _, name := range names {
		f.Check(name, isLabel(f.value(name)), "the name of a namespace: a-z, 0-9 and -, 63 characters at most")
	}
}

func isLabel(s string) bool { return len(validation.IsDNS1123Label(s)) == 0 }

// IsObject reports whether a text is namespace/name.
func IsObject(s string) bool {
	namespace, name, ok := strings.Cut(s, "/")
	return ok && isLabel(namespace) && len(validation.IsDNS1123Subdomain(name)) == 0
}

// IsFolder reports whether name is an existing folder.
func IsFolder(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

// IsFile reports whether name exists and is no folder.
func IsFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && !info.IsDir()
}

// Wrong adds an error that names the flag.
func (f *Flags) Wrong(err error) { f.wrong = append(f.wrong, err) }

// Refuse adds an error about several flags if bad, such as two that contradict each other. It
// adds none if the value of a flag is already wrong, because the error may follow from that.
func (f *Flags) Refuse(bad bool, format string, args ...any) {
	if bad && len(f.wrong) == 0 {
		f.refused = append(f.refused, fmt.Errorf(format, args...))
	}
}

// Given reports whether a flag has a given value of the right form.
func (f *Flags) Given(name string) bool { return f.given[name] }

// Err returns all errors, or nil. It also checks the addresses of the listeners.
func (f *Flags) Err() error {
	f.checkListeners()
	if all := slices.Concat(f.wrong, f.refused); len(all) > 0 {
		return wrongFlags(all)
	}
	return nil
}

// wrongFlags prints one line for each wrong flag.
type wrongFlags []error

func (w wrongFlags) Error() string {
	return strings.ReplaceAll(errors.Join(w...).Error(), "\n", "\nerror: ")
}

// Unwrap is for [errors.Is].
func (w wrongFlags) Unwrap() []error { return w }

// noted is a flag that records its errors.
type noted struct {
	flag.Value
	name string
	set  *Flags
}

// Set implements [flag.Value].
func (n *noted) Set(s string) error {
	err := n.Value.Set(s)
	if getter, ok := n.Value.(flag.Getter); ok && err != nil {
		switch getter.Get().(type) {
		case time.Duration:
			err = errors.New("want a duration, such as 1m30s")
		case int:
			err = errors.New("want a whole number")
		case bool:
			err = errors.New("want true or false")
		}
	} else if err == nil && s == "" && n.name != metricsAddr && n.name != debugAddr {
		err = errors.New("a value is missing: give one, or leave the flag out")
	}
	if err != nil {
		n.set.Wrong(fmt.Errorf("%s %q: %w", n.set.label(n.name), s, err))
		return nil
	}
	n.set.given[n.name] = true
	return nil
}

// IsBoolFlag makes "-once" the same as "-once=true".
func (n *noted) IsBoolFlag() bool {
	b, ok := n.Value.(interface{ IsBoolFlag() bool })
	return ok && b.IsBoolFlag()
}

// OfFlag adds the name of a flag to an error; nil stays nil.
func OfFlag(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("-%s: %w", name, err)
}
