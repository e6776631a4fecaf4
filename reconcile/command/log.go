package command

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

// LogLevels and LogFormats are what a [Log] takes. The first format, and info, are
// the defaults.
const (
	LogLevels  = "debug, info, warn or error"
	LogFormats = "text or json"
)

// Log is a logger whose level and format change while it runs. Loggers that were
// made from it, by With or WithGroup, change with it. All methods may be called
// concurrently.
type Log struct {
	*slog.Logger

	out    io.Writer
	level  slog.LevelVar
	inJSON atomic.Bool
}

// NewLog returns a logger that writes text from level info on.
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

// SetLevel takes debug, info, warn or error; "" is info.
func (l *Log) SetLevel(level string) error {
	levels := map[string]slog.Level{"": slog.LevelInfo, "debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}
	to, ok := levels[level]
	if !ok {
		return fmt.Errorf("log level %q: want %s", level, LogLevels)
	}
	l.level.Set(to)
	return nil
}

// SetFormat takes text or json; "" is text.
func (l *Log) SetFormat(format string) error {
	if format != "" && format != "text" && format != "json" {
		return fmt.Errorf("log format %q: want %s", format, LogFormats)
	}
	l.inJSON.Store(format == "json")
	return nil
}

// Follow takes the level and the format of settings. They beat the flags, which are
// what settings without them mean: see settings.ProgramOptions.Logging. Values that are
// wrong change nothing; the settings check theirs.
func (l *Log) Follow(level, format string) {
	_ = l.SetLevel(level)
	_ = l.SetFormat(format)
}

// Level returns the level of now, as SetLevel takes it.
func (l *Log) Level() string { return strings.ToLower(l.level.Level().String()) }

// Format returns the format of now, as SetFormat takes it. Beside a log in JSON a program
// prints nothing else: a kubelet mixes both.
func (l *Log) Format() string {
	if l.inJSON.Load() {
		return "json"
	}
	return "text"
}

// Fail says why the program ends: in text "error: " and all lines of the error, in
// JSON a record.
func (l *Log) Fail(err error) {
	if l.inJSON.Load() {
		l.Error("the controller ends", "error", err)
		return
	}
	fmt.Fprintln(l.out, "error:", err)
}

// handler writes with one of two handlers, which know the same attributes.
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

// lines lets two handlers write to one place: each writes a line at a time.
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
