package fetch

import "log/slog"

// Updated says that a URL has a new content, which is pending from here on. No
// event has a credential, nor the values of a query.
type Updated struct {
	URL   string
	Bytes int
	Hash  string // of the content, shortened
}

// Accepted says that a configuration made with that content has been deployed.
type Accepted struct {
	URL  string
	Hash string
}

// Rejected says that a configuration made with that content failed, and that the
// content accepted before is in use again. The content is tried again after each
// interval; only its first rejection is published.
type Rejected struct {
	URL  string
	Hash string
	Err  error
}

// EventName is the name of the kind of event, the same for ever.
func (Updated) EventName() string { return "http.resource.updated" }

// EventName is the name of the kind of event, the same for ever.
func (Accepted) EventName() string { return "http.resource.accepted" }

// EventName is the name of the kind of event, the same for ever.
func (Rejected) EventName() string { return "http.resource.rejected" }

// Level implements [slog.Leveler].
func (Updated) Level() slog.Level { return slog.LevelInfo }

// Level implements [slog.Leveler].
func (Accepted) Level() slog.Level { return slog.LevelInfo }

// Level implements [slog.Leveler].
func (Rejected) Level() slog.Level { return slog.LevelWarn }

// LogValue implements [slog.LogValuer].
func (e Updated) LogValue() slog.Value {
	return slog.GroupValue(slog.String("url", e.URL), slog.Int("bytes", e.Bytes), slog.String("hash", e.Hash))
}

// LogValue implements [slog.LogValuer].
func (e Accepted) LogValue() slog.Value {
	return slog.GroupValue(slog.String("url", e.URL), slog.String("hash", e.Hash))
}

// LogValue implements [slog.LogValuer].
func (e Rejected) LogValue() slog.Value {
	return slog.GroupValue(slog.String("url", e.URL), slog.String("hash", e.Hash), slog.Any("error", e.Err))
}
