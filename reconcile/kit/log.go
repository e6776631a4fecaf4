package kit

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"

	"k8s.io/klog/v2"
)

// LogLevels and LogFormats are the levels and formats of a [Log]. The defaults are info and
// text.
const (
	LogLevels  = "debug, info, warn or error"
	LogFormats = "text or json"
)

// Log is a logger whose level and format can change while it runs. Loggers made from it by
// With or WithGroup change with it. All methods may be called concurrently.
type Log struct {
	*slog.Logger

	out    io.Writer
	level  slog.LevelVar
	inJSON atomic.Bool
}

// NewLog returns a logger that writes text, from level info on.
func NewLog(w io.Writer) *Log {
	l := &Log{}
	l.out = &lines{to: w}
	opts := &slog.HandlerOptions{Level: &l.level}
	l.Logger = slog.New(&handler{log: l, text: slog.NewTextHandler(l.out, opts), json: slog.NewJSONHandler(l.out, opts)})
	if _, is := w.(processStderr); is {
		klog.SetSlogLogger(l.Logger)
	}
	return l
}

// SetLevel accepts debug, info, warn or error; "" means info.
func (l *Log) SetLevel(level string) error {
	levels := map[string]slog.Level{"": slog.LevelInfo, "debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}
	to, ok := levels[level]
	if !ok {
		return fmt.Errorf("log level %q: want %s", level, LogLevels)
	}
	l.level.Set(to)
	return nil
}

// SetFormat accepts text or json; "" means text.
func (l *Log) SetFormat(format string) error {
	if format != "" && format != "text" && format != "json" {
		return fmt.Errorf("log format %q: want %s", format, LogFormats)
	}
	l.inJSON.Store(format == "json")
	return nil
}

// Follow sets the level and format of settings. They take precedence over the flags, which are
// the defaults of settings: see settings.ProgramOptions.Logging. Follow ignores wrong values;
// the settings report them.
func (l *Log) Follow(level, format string) {
	_ = l.SetLevel(level)
	_ = l.SetFormat(format)
}

// Level returns the current level, as SetLevel accepts it.
func (l *Log) Level() string { return strings.ToLower(l.level.Level().String()) }

// Format returns the current format, as SetFormat accepts it. Print nothing beside a log in
// JSON: a kubelet mixes stdout and stderr.
func (l *Log) Format() string {
	if l.inJSON.Load() {
		return "json"
	}
	return "text"
}

// Fail logs why the program ends: "error: " and all lines of the error as text, or a JSON
// record.
func (l *Log) Fail(err error) {
	if l.inJSON.Load() {
		l.Error("the controller ends", "error", err)
		return
	}
	fmt.Fprintln(l.out, "error:", err)
}

// handler writes with the text handler or the JSON handler. Both have the same attributes.
type handler struct {
	log        *Log
	text, json slog.Handler
}

func (h *handler) now() slog.Handler {
	if h.log.inJSON.Load() {
		return h.json
	}
	return h.text
}

func (h *handler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.text.Enabled(ctx, level)
}

func (h *handler) Handle(ctx context.Context, r slog.Record) error { return h.now().Handle(ctx, r) }

func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &handler{h.log, h.text.WithAttrs(attrs), h.json.WithAttrs(attrs)}
}

func (h *handler) WithGroup(name string) slog.Handler {
	return &handler{h.log, h.text.WithGroup(name), h.json.WithGroup(name)}
}

// lines lets both handlers write to one place: it passes on one line at a time.
type lines struct {
	mu sync.Mutex
	to io.Writer
}

// Write implements io.Writer.
func (l *lines) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.to.Write(line)
}
