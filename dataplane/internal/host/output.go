package host

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/hapticsdk/haptic/dataplane/internal/config"
	"github.com/hapticsdk/haptic/internal/printable"
)

// pipeName is the named pipe in the folder for the output of haproxy. stdoutName is the one
// for its standard output, if that is read separately. They have names so that another
// process can continue to read if haproxy outlives this one.
const pipeName, stdoutName = ".output", ".stdout"

// pipeSize bounds the output of haproxy that is not read yet; the rest is lost.
const pipeSize = 1 << 20

// makePipe makes a pipe for a haproxy that starts. HAProxy gets both ends and never waits:
// neither a full pipe nor a missing reader stops it.
func (h *Host) makePipe(name string) (from, to *os.File, err error) {
	at := h.store.path(name)
	if err := os.Remove(at); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	if err := unix.Mkfifo(at, 0o600); err != nil {
		return nil, nil, &fs.PathError{Op: "mkfifo", Path: at, Err: err}
	}
	if from, err = h.openPipe(name, os.O_RDONLY); err != nil {
		return nil, nil, err
	}
	if to, err = h.openPipe(name, os.O_RDWR); err != nil {
		return nil, nil, errors.Join(err, from.Close())
	}
	widen(to, pipeSize)
	return from, to, nil
}

func (h *Host) openPipe(name string, how int) (*os.File, error) {
	f, err := os.OpenFile(h.store.path(name), how|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || info.Mode()&fs.ModeNamedPipe == 0 {
		return nil, errors.Join(fmt.Errorf("%s is no pipe", f.Name()), err, f.Close())
	}
	return f, nil
}

// output keeps the last lines that haproxy printed.
type output struct {
	tell func(line string)

	mu    sync.Mutex
	part  []byte // start of an incomplete line
	lines []string
}

const keptLines = 500

// maxLine bounds a printed line; a longer one counts as several.
const maxLine = 64 << 10

// Write takes output of haproxy.
func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.part = append(o.part, b...)
	for {
		line, rest, ok := bytes.Cut(o.part, []byte("\n"))
		switch {
		case len(line) > maxLine:
			line, rest = o.part[:maxLine], o.part[maxLine:]
		case !ok:
			return len(b), nil
		}
		o.part = rest
		o.lines = append(o.lines[max(0, len(o.lines)-keptLines):], string(line))
		if o.tell != nil {
			o.tell(string(line))
		}
	}
}

// wholeLines passes on the standard output of haproxy. It writes at most once for each read,
// and never cuts a line in two.
type wholeLines struct {
	to   io.Writer
	part []byte // start of an incomplete line
}

// Write takes output of haproxy. It never fails, because haproxy runs on without a reader of
// its log.
func (w *wholeLines) Write(b []byte) (int, error) {
	end := bytes.LastIndexByte(b, '\n') + 1
	if end == 0 && len(w.part)+len(b) > maxLine {
		end = len(b)
	}
	if end > 0 && len(w.part) > 0 {
		w.part = append(w.part, b[:end]...)
		_, _ = w.to.Write(w.part)
		w.part = w.part[:0]
	} else if end > 0 {
		_, _ = w.to.Write(b[:end])
	}
	w.part = append(w.part, b[end:]...)
	return len(b), nil
}

// forget drops all lines, so that the lines of a reload can be found.
func (o *output) forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lines = nil
}

// last returns the lines.
func (o *output) last() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.lines)
}

var (
	haproxyPrefix   = regexp.MustCompile(`^\[[A-Z]+\] +(?:[0-9/]+ +)?\([0-9]+\) : `)
	haproxyPosition = regexp.MustCompile(`\[([^\[\]:]+):([0-9]+)\]`)
)

func isAlert(line string) bool { return strings.HasPrefix(line, "[ALERT]") }

// explain makes an error of the output of haproxy. It takes the alerts, or everything if
// there is none, and the first position in them.
func (h *Host) explain(stage string, err error, lines []string) *config.Error {
	alerts := slices.ContainsFunc(lines, isAlert)
	var said strings.Builder
	for _, line := range lines {
		if alerts && isAlert(line) || !alerts && !strings.HasPrefix(line, "[NOTICE]") {
			said.WriteString(haproxyPrefix.ReplaceAllString(line, "") + "\n")
		}
	}
	text := strings.TrimSpace(strings.ReplaceAll(said.String(), h.opts.Dir+string(filepath.Separator), ""))
	e := &config.Error{Stage: stage, Err: err, Output: printable.Said(text, nil)}
	if m := haproxyPosition.FindStringSubmatch(text); m != nil {
		e.File = m[1]
		e.Line, _ = strconv.Atoi(m[2])
	}
	return e
}
