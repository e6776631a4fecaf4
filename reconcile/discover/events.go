package discover

import (
	"fmt"
	"log/slog"

	"github.com/hapticsdk/haptic/reconcile/event"
)

// Events returns one value of each event of this package, without fields.
func Events() []event.Event { return []event.Event{CredentialsUpdated{}, CredentialsInvalid{}} }

// CredentialsUpdated says that credentials came, changed, or are in order again. The next
// calls use them.
type CredentialsUpdated struct {
	Secret  string // namespace/name; "" if a file is in order again
	Version string // metadata.resourceVersion; "" for a file
}

func (e CredentialsUpdated) Report() event.Report {
	return event.Report{Name: "credentials.updated", Level: slog.LevelInfo, Sentence: "credentials are in use",
		Fields: []slog.Attr{slog.String("secret", e.Secret), slog.String("version", e.Version)}}
}

// CredentialsInvalid says why credentials, or the sources that [TLS] names, cannot be used.
// Err names keys, never values.
type CredentialsInvalid struct {
	Secret string // namespace/name; "" for a file, or if no Secret is named
	InUse  bool   // the credentials from before stay in use
	Err    error
}

func (e CredentialsInvalid) Report() event.Report {
	sentence := fmt.Sprintf("no HAProxy can be reached: %v", e.Err)
	if e.InUse {
		sentence = fmt.Sprintf("the credentials from before stay in use: %v", e.Err)
	}
	return event.Report{Name: "credentials.invalid", Level: slog.LevelError, Sentence: sentence, Err: e.Err,
		Fields: []slog.Attr{slog.String("secret", e.Secret)}}
}
