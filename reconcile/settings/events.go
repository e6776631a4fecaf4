package settings

import (
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/hapticsdk/haptic/reconcile/event"
)

// Events returns one value of each event of this package, without fields.
func Events() []event.Event {
	return []event.Event{Parsed{}, Validated{}, Invalid{}, Applied{}, Restored{}}
}

// The events below are what a [Live] publishes of settings. Name is the file or
// ConfigMap that they come from, Version that of [Settings.Version].

// Parsed says that new settings came and are being checked. What is wrong
// in the file follows as an [Invalid].
type Parsed struct {
	Name, Version string
}

func (e Parsed) Report() event.Report {
	return event.Report{Name: "config.parsed", Level: slog.LevelDebug, Fields: versionFields(e.Name, e.Version)}
}

// Validated says that all checks accept the settings. Whether they
// render to something valid is found out next.
type Validated struct {
	Name, Version string
	Took          time.Duration
}

func (e Validated) Report() event.Report {
	return event.Report{Name: "config.validated", Level: slog.LevelDebug, Took: e.Took, Fields: versionFields(e.Name, e.Version)}
}

// Invalid says why settings do not take effect. Those before stay in use.
type Invalid struct {
	Name, Version string
	Before        string // version that stays in use; "": there is none yet
	Err           error
	Took          time.Duration
}

func (e Invalid) Report() event.Report {
	wrong := fmt.Sprintf("version %s of %s is wrong", e.Version, e.Name)
	if e.Version == unreadable {
		wrong = e.Name + " cannot be read"
	}
	effect := "the settings stay as they are"
	if e.Before == "" {
		effect = "there are no settings yet, so nothing new is deployed"
	}
	return event.Report{Name: "config.invalid", Level: slog.LevelError, Took: e.Took, Err: e.Err,
		Sentence: fmt.Sprintf("%s, as %s: %v", effect, wrong, e.Err),
		Metrics:  []event.Metric{{Name: "settings_invalid_total", Help: "Settings that were refused; those before stayed in use.", Value: 1}}}
}

// Applied says that settings are in use from now on.
type Applied struct {
	Name, Version    string
	Started, Stopped []string // watched resources that came and went; all others went on
	Took             time.Duration
}

func (e Applied) Report() event.Report {
	sentence := "new settings are in use: version " + e.Version + " of " + e.Name
	if len(e.Started) > 0 {
		sentence += ", watching now: " + strings.Join(e.Started, " ")
	}
	if len(e.Stopped) > 0 {
		sentence += ", no longer: " + strings.Join(e.Stopped, " ")
	}
	return event.Report{Name: "config.applied", Level: slog.LevelInfo, Took: e.Took, Sentence: sentence,
		Metrics: []event.Metric{{Name: "settings_applied_total", Help: "Settings that took effect.", Value: 1}}}
}

// Restored takes an [Invalid] back: the settings say again what those in use say.
type Restored struct {
	Name, Version string
}

func (e Restored) Report() event.Report {
	return event.Report{Name: "config.restored", Level: slog.LevelInfo, Fields: versionFields(e.Name, e.Version),
		Sentence: "the settings are in order again: " + e.Name + " has version " + e.Version + ", which is in use"}
}

func versionFields(name, version string) []slog.Attr {
	return []slog.Attr{slog.String("name", name), slog.String("version", version)}
}
