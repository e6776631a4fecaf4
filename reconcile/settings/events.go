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

// A [Live] publishes the events below. Name is the file or ConfigMap of the settings, Version
// their [Settings.Version].

// Parsed says that new settings came and are being checked. An [Invalid] follows if they are
// wrong.
type Parsed struct {
	Name, Version string
}

func (e Parsed) Report() event.Report {
	return event.Report{Name: "config.parsed", Level: slog.LevelDebug, Fields: versionFields(e.Name, e.Version)}
}

// Validated says that all checks accept the settings. The Live renders with them next.
type Validated struct {
	Name, Version string
	Took          time.Duration
}

func (e Validated) Report() event.Report {
	return event.Report{Name: "config.validated", Level: slog.LevelDebug, Took: e.Took, Fields: versionFields(e.Name, e.Version)}
}

// Invalid says why settings do not take effect. The settings before stay in use.
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
	Started, Stopped []string // watched resources that came and went; all others stayed
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

// Restored takes an [Invalid] back: the file or ConfigMap again has the settings in use.
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
