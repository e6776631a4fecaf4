// Package socket changes one running HAProxy through its stats socket, and reads what the
// process has.
//
// The table of package change has the commands for fields of servers, their good answers, and
// how to read the fields back.
package socket

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hapticsdk/haptic/dataplane/internal/change"
	"github.com/hapticsdk/haptic/internal/haproxycfg"
	"github.com/hapticsdk/haptic/internal/haproxyctl"
	"github.com/hapticsdk/haptic/internal/late"
	"github.com/hapticsdk/haptic/internal/printable"
)

// ErrAnotherWorker says that the stats socket belongs to another process.
var ErrAnotherWorker = errors.New("another process answers on the stats socket")

const (
	pollEvery     = 2 * time.Millisecond // between two questions, because a socket sends no notice
	waitForWorker = 10 * time.Second     // until the serving worker answers
	waitForChange = 3 * time.Second      // until a queued change shows
)

// Worker is a connection to the stats socket of one worker process. It is not
// safe for concurrent use.
type Worker struct {
	conn    *haproxyctl.Conn
	version change.Version
	started time.Time
	names   *change.Names
	deleted []string // names of deleted backends
}

// Dial connects to the stats socket of the worker with that process id. For a moment after a
// reload the old worker still accepts connections there, and commands to it would be lost. So
// Dial tries again until alone says that the master has no other worker. Then the error may
// wrap [ErrAnotherWorker].
func Dial(ctx context.Context, path string, pid int, alone func(context.Context) bool) (*Worker, error) {
	begin, whole := time.Now(), ctx
	ctx, cancel := context.WithTimeout(ctx, waitForWorker)
	defer cancel()
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	for last := false; ; last = alone(ctx) {
		w, err := DialOnce(ctx, path, pid)
		if err == nil || last || haproxyctl.Absent(err) {
			return w, err
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			if errors.Is(whole.Err(), context.Canceled) {
				return nil, whole.Err()
			}
			if err == nil || errors.Is(err, context.DeadlineExceeded) {
				return nil, &late.Error{What: fmt.Sprintf("the HAProxy worker (process %d) did not answer", pid), After: time.Since(begin)}
			}
			return nil, fmt.Errorf(
				"the HAProxy worker (process %d) did not answer on its stats socket within %s: %w",
				pid,
				time.Since(begin).Round(time.Millisecond),
				err,
			)
		}
	}
}

// DialOnce is [Dial] with one try. Its caller must ask the master afterwards whether that
// worker still serves.
func DialOnce(ctx context.Context, path string, pid int) (*Worker, error) {
	conn, answers, err := haproxyctl.DialAsking(ctx, path, "show info")
	if err != nil {
		return nil, err
	}
	info := answers[0]
	if is := field(info, "Pid"); is != strconv.Itoa(pid) {
		_ = conn.Close()
		return nil, fmt.Errorf("%w: %s instead of %d", ErrAnotherWorker, is, pid)
	}
	uptime, _ := strconv.Atoi(field(info, "Uptime_sec"))
	return &Worker{conn: conn, version: change.ParseVersion(field(info, "Version")), started: time.Now().Add(-time.Duration(uptime) * time.Second)}, nil
}

// Close ends the connection.
func (w *Worker) Close() error { return w.conn.Close() }

// Version returns the version that the worker reports.
func (w *Worker) Version() change.Version { return w.version }

// Started returns when the worker began, to the second.
func (w *Worker) Started() time.Time { return w.started }

// SetNames sets the names of backends in the worker. Everything else in this package's
// interface uses the names of the configuration.
func (w *Worker) SetNames(names *change.Names) { w.names = names }

// Refused is a command that HAProxy refused. It holds no secrets.
type Refused struct{ Command, Answer string }

func (r *Refused) Error() string {
	return fmt.Sprintf(
		"HAProxy refused %q: %s",
		r.Command,
		printable.Said(strings.Join(strings.Fields(r.Answer[:min(len(r.Answer), 2*printable.MaxSaid)]), " "), nil),
	)
}

// command is one command with its good answers.
type command struct {
	text    string
	args    []string // each one word; the first names the object
	payload []byte   // never shown
	good    []string // parts of good answers, "" for an empty one; nil allows only an empty one
	secret  string   // text to show if the command and the answer may be secret
}

func (c command) line() string { return strings.Join(append([]string{c.text}, c.args...), " ") }

func (c command) refused(answer string) *Refused {
	if c.secret != "" {
		return &Refused{Command: c.secret, Answer: haproxycfg.Secret}
	}
	shown, rest := c, c.args[min(1, len(c.args)):]
	shown.args = slices.Concat(c.args[:len(c.args)-len(rest)], haproxycfg.RedactWords(rest))
	return &Refused{Command: shown.line(), Answer: haproxycfg.RedactQuoted(answer, strings.Join(rest, " "))}
}

// send sends commands together and judges each answer. Either all of them have a payload, or
// none has.
func (a *applier) send(ctx context.Context, commands ...command) error {
	_, err := a.sendAsking(ctx, nil, commands...)
	return err
}

// sendAsking is tell with questions after the commands. It sends all together, and returns
// the answers to the questions.
func (a *applier) sendAsking(ctx context.Context, questions []string, commands ...command) ([]string, error) {
	var batch []string
	for _, c := range commands {
		words := append(strings.Split(c.text, " "), c.args...)
		if slices.ContainsFunc(words, func(word string) bool { return !haproxyctl.Plain(word) }) {
			return nil, fmt.Errorf("a runtime command cannot carry %q", c.refused("").Command)
		}
		if c.payload == nil {
			batch = append(batch, c.line())
			continue
		}
		answer, err := a.conn.ExecPayload(ctx, c.line(), c.payload)
		if err == nil {
			err = a.judge(c, answer)
		}
		if err != nil {
			return nil, err
		}
	}
	answers, err := a.conn.Batch(ctx, append(batch, questions...))
	sent := min(len(batch), len(answers))
	for i, answer := range answers[:sent] {
		if no := a.judge(commands[i], answer); err == nil {
			err = no
		}
	}
	return answers[sent:], err
}

func (a *applier) judge(c command, answer string) error {
	isGood := func(good string) bool { return good == answer || good != "" && strings.Contains(answer, good) }
	if c.good == nil && answer != "" || c.good != nil && !slices.ContainsFunc(c.good, isGood) {
		return c.refused(answer)
	}
	a.sent++
	return nil
}
