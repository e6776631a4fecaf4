package haproxyctl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/hapticsdk/haptic/internal/late"
)

// MaxPayload bounds a command with its payload, in bytes. It leaves room to spare in a buffer
// of HAProxy, whose default is 16 KiB (tune.bufsize).
const MaxPayload = 14 << 10

// answerTimeout bounds the wait for one answer. A HAProxy that hangs then causes an error
// even if the caller has no deadline.
const answerTimeout = 10 * time.Second

// maxAnswer bounds an answer, such as all entries of a map: a HAProxy under an attacker's
// control must not fill the memory.
const maxAnswer = 128 << 20

// prompt ends every answer in interactive mode.
var prompt = []byte("\n> ")

// ErrCommand is wrapped by the error for a command that Conn cannot send.
var ErrCommand = errors.New("not a command")

// Absent reports whether err says that no process listens on a socket. A process that listens
// but does not answer is not absent.
func Absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED)
}

// Conn is a connection to the stats socket in interactive mode. It stays open for many
// commands, until one of them fails: a late answer would count for the next command. It is not
// safe for concurrent use.
type Conn struct {
	net.Conn
	buf    []byte
	most   int   // bound of an answer in bytes
	broken error // why it can send no more; nil: it can
}

// Dial connects to the stats socket at path.
func Dial(ctx context.Context, path string) (*Conn, error) {
	c, _, err := DialAsking(ctx, path)
	return c, err
}

// DialAsking connects to the stats socket at path, sends commands at once, and returns their
// answers. That way the first answers take one round trip instead of two.
func DialAsking(ctx context.Context, path string, commands ...string) (*Conn, []string, error) {
	for _, command := range commands {
		if err := check(command); err != nil {
			return nil, nil, err
		}
	}
	d := net.Dialer{Timeout: answerTimeout}
	begin := time.Now()
	nc, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, nil, inTime(ctx, err, "the stats socket of HAProxy", begin)
	}
	c := &Conn{Conn: nc, most: maxAnswer}
	answers, err := c.roundTrip(ctx, strings.Join(append([]string{"prompt"}, commands...), "\n")+"\n", 1+len(commands))
	if err != nil {
		_ = nc.Close()
		return nil, nil, err
	}
	return c, answers[1:], nil
}

// Exec sends one command and returns its answer without surrounding white space. It does not
// know refusals of HAProxy, because they look different for each command.
func (c *Conn) Exec(ctx context.Context, command string) (string, error) {
	answers, err := c.Batch(ctx, []string{command})
	if len(answers) == 0 {
		return "", err
	}
	return answers[0], err
}

// Batch sends commands without payload in as few packets as HAProxy takes, and returns one
// answer for each. With an error it returns the answers so far.
func (c *Conn) Batch(ctx context.Context, commands []string) ([]string, error) {
	var answers []string
	for start := 0; start < len(commands); {
		var b strings.Builder
		end := start
		for end < len(commands) && (end == start || b.Len()+len(commands[end]) < MaxPayload/4) {
			if err := check(commands[end]); err != nil {
				return answers, err
			}
			b.WriteString(commands[end])
			b.WriteByte('\n')
			end++
		}
		got, err := c.roundTrip(ctx, b.String(), end-start)
		answers = append(answers, got...)
		if err != nil {
			return answers, err
		}
		start = end
	}
	return answers, nil
}

// ExecPayload sends a command with a payload of several lines. It drops empty lines, because
// an empty line ends a payload. A payload of more than [MaxPayload] bytes is an error:
// HAProxy would cut it.
func (c *Conn) ExecPayload(ctx context.Context, command string, payload []byte) (string, error) {
	if err := check(command); err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString(command)
	b.WriteString(" <<\n")
	for line := range bytes.Lines(payload) {
		line = bytes.TrimRight(line, "\r\n")
		if len(bytes.TrimSpace(line)) > 0 {
			b.Write(line)
			b.WriteByte('\n')
		}
	}
	b.WriteByte('\n')
	if b.Len() > MaxPayload {
		return "", fmt.Errorf("%w: %d bytes of payload are too many, at most %d fit", ErrCommand, b.Len(), MaxPayload)
	}
	answers, err := c.roundTrip(ctx, b.String(), 1)
	if len(answers) == 0 {
		return "", err
	}
	// In interactive mode HAProxy asks for every line of a payload with "+ ".
	answer := answers[0]
	for strings.HasPrefix(answer, "+ ") {
		answer = answer[2:]
	}
	return strings.TrimSpace(strings.TrimPrefix(answer, "+")), err
}

// check refuses text that would become several commands, or a payload.
func check(command string) error {
	switch {
	case strings.TrimSpace(command) == "":
		return fmt.Errorf("%w: it is empty", ErrCommand)
	case strings.ContainsAny(command, "\r\n\x00"):
		return fmt.Errorf("%w: it has a line break", ErrCommand)
	case strings.Contains(command, ";"):
		return fmt.Errorf("%w: it has a semicolon", ErrCommand)
	case strings.Contains(command, "<<"):
		return fmt.Errorf("%w: it has the mark of a payload", ErrCommand)
	case len(command) > MaxPayload:
		return fmt.Errorf("%w: it has %d bytes, at most %d fit", ErrCommand, len(command), MaxPayload)
	}
	return nil
}

// Plain reports whether s can be an unquoted argument of a command: one word of letters,
// digits and signs without a meaning in HAProxy's command line.
func Plain(s string) bool {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.:/~+%=*[]()@,|^$?!&{}", r)
	}
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !plain(r) })
}

// roundTrip sends text and reads n answers.
func (c *Conn) roundTrip(ctx context.Context, text string, n int) ([]string, error) {
	if c.broken != nil {
		return nil, c.broken
	}
	answers, err := c.exchange(ctx, text, n)
	if err != nil {
		c.broken = fmt.Errorf("an earlier command on this connection failed: %w", err)
	}
	return answers, err
}

func (c *Conn) exchange(ctx context.Context, text string, n int) ([]string, error) {
	begin, who := time.Now(), "the stats socket of HAProxy"
	stop, err := arm(ctx, c.Conn)
	if err != nil {
		return nil, inTime(ctx, err, who, begin)
	}
	defer stop()
	if _, err := c.Write([]byte(text)); err != nil {
		return nil, inTime(ctx, err, who, begin)
	}
	var answers []string
	chunk := make([]byte, 16<<10)
	seen := 0 // bytes that hold no end of an answer: some answers have millions
	for len(answers) < n {
		if i := bytes.Index(c.buf[seen:], prompt); i >= 0 {
			answers = append(answers, strings.TrimSpace(string(c.buf[:seen+i])))
			c.buf, seen = c.buf[seen+i+len(prompt):], 0
			continue
		}
		if len(c.buf) > c.most {
			return answers, fmt.Errorf("the answer is larger than %d bytes: check that the socket is one of HAProxy", c.most)
		}
		seen = max(0, len(c.buf)-len(prompt)+1)
		read, err := c.Read(chunk)
		c.buf = append(c.buf, chunk[:read]...)
		if err != nil {
			return answers, inTime(ctx, err, who, begin)
		}
	}
	return answers, nil
}

// arm makes reads and writes end when ctx ends, at the latest after answerTimeout.
func arm(ctx context.Context, conn net.Conn) (stop func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := conn.SetDeadline(time.Now().Add(answerTimeout)); err != nil {
		return nil, err
	}
	cancel := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	return func() { cancel() }, nil
}

// inTime returns the error for an exchange that started at begin.
func inTime(ctx context.Context, err error, who string, begin time.Time) error {
	var timeout net.Error
	switch {
	case err == nil:
		return nil
	case errors.Is(ctx.Err(), context.Canceled):
		return ctx.Err()
	case ctx.Err() != nil, errors.As(err, &timeout) && timeout.Timeout():
		return &late.Error{What: who + " did not answer", After: time.Since(begin)}
	}
	return err
}
