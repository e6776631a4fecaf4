package dataplane

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/hapticsdk/haptic/internal/haproxyctl"
)

// maxSingle is the number of entries of a map from which on it is replaced as a
// whole, in one atomic step.
const maxSingle = 64

// changeMap changes the entries of a map, one by one or all at once.
func (a *applier) changeMap(ctx context.Context, do *action) error {
	path := a.path(do.file)
	all := do.replace || len(do.changes) > maxSingle
	var commands []string
	for _, c := range do.changes {
		command := ""
		switch c.action {
		case Create:
			command = "add map " + path + " " + c.key + " " + c.value
		case Update:
			command = "set map " + path + " " + c.key + " " + c.value
		default:
			command = "del map " + path + " " + c.key
		}
		// Values of several words, or none, fit no single command.
		all = all || !haproxyctl.Plain(c.key) || c.action != Delete && !haproxyctl.Plain(c.value) || plainCommand(command) != nil
		commands = append(commands, command)
	}
	if all {
		return a.replaceMap(ctx, do.file)
	}
	answers, err := a.conn.Batch(ctx, commands)
	a.sent += len(answers)
	for i, answer := range answers {
		if answer != "" && !(do.changes[i].action == Delete && strings.Contains(answer, "not found")) {
			return &refused{"change of an entry of map " + path, answer}
		}
	}
	return err
}

// replaceMap fills a new version of a map and makes it the current one.
func (a *applier) replaceMap(ctx context.Context, f File) error {
	path := a.path(f)
	a.sent++
	answer, err := a.conn.Exec(ctx, "prepare map "+path)
	if err != nil {
		return err
	}
	_, version, ok := strings.Cut(answer, "New version created:")
	version = strings.TrimSpace(version)
	if _, err := strconv.ParseUint(version, 10, 32); err != nil || !ok {
		return &refused{"prepare map " + path, answer}
	}
	var payload bytes.Buffer
	send := func() error {
		if payload.Len() == 0 {
			return nil
		}
		defer payload.Reset()
		return a.payload(ctx, fmt.Sprintf("add map @%s %s", version, path), payload.Bytes(), "")
	}
	const room = 128 // for the command
	for _, e := range parseMap(f.Content) {
		line := e.key + " " + e.value + "\n"
		if payload.Len()+len(line) > haproxyctl.MaxPayload-room-len(path) {
			if err := send(); err != nil {
				return err
			}
		}
		payload.WriteString(line)
	}
	if err := send(); err != nil {
		return err
	}
	return a.command(ctx, fmt.Sprintf("commit map @%s %s", version, path), "")
}

// payload sends a command with a payload, which no error shows.
func (a *applier) payload(ctx context.Context, command string, payload []byte, good ...string) error {
	a.sent++
	answer, err := a.conn.ExecPayload(ctx, command, payload)
	if err != nil {
		return err
	}
	if !isGood(answer, good) {
		return &refused{command, answer}
	}
	return nil
}

// updateCertificate puts a new certificate and key in the place of a loaded one.
func (a *applier) updateCertificate(ctx context.Context, f File) error {
	path := a.path(f)
	err := a.payload(ctx, "set ssl cert "+path, f.Content, "Transaction created", "Transaction updated")
	if err == nil {
		err = a.command(ctx, "commit ssl cert "+path, "Success")
	}
	if err != nil {
		// A transaction that stays open would block the next one.
		_, _ = a.conn.Exec(ctx, "abort ssl cert "+path)
	}
	return err
}

func (a *applier) newCertificate(ctx context.Context, f File) error {
	if err := a.command(ctx, "new ssl cert "+a.path(f), "New empty certificate store", "already exists"); err != nil {
		return err
	}
	return a.updateCertificate(ctx, f)
}

// changeCrtList changes one entry of a list. A changed entry comes before the
// old one goes, so that its names are served all the time.
func (a *applier) changeCrtList(ctx context.Context, do *action) error {
	list, cert := a.path(do.file), do.entry[0]
	if err := plainCommand(cert); err != nil {
		return err
	}
	if do.kind != deleteCrtListEntry {
		entry := strings.Join(do.entry, " ") + "\n"
		if err := a.payload(ctx, "add ssl crt-list "+list, []byte(entry), "Success"); err != nil {
			return err
		}
	}
	switch do.kind {
	case deleteCrtListEntry:
		return a.command(ctx, "del ssl crt-list "+list+" "+cert, "deleted")
	case updateCrtListEntry:
		line, err := a.firstLineOf(ctx, list, cert)
		if err != nil {
			return err
		}
		return a.command(ctx, fmt.Sprintf("del ssl crt-list %s %s:%d", list, cert, line), "deleted")
	}
	return nil
}

// firstLineOf returns the number of the oldest entry with that certificate.
func (a *applier) firstLineOf(ctx context.Context, list, cert string) (int, error) {
	answer, err := a.conn.Exec(ctx, "show ssl crt-list -n "+list)
	if err != nil {
		return 0, err
	}
	var numbers []int
	for l := range strings.Lines(answer) {
		word, _, _ := strings.Cut(strings.TrimSpace(l), " ")
		if number, ok := strings.CutPrefix(word, cert+":"); ok {
			if n, err := strconv.Atoi(number); err == nil {
				numbers = append(numbers, n)
			}
		}
	}
	if len(numbers) == 0 {
		return 0, fmt.Errorf("no entry %s in %s", cert, list)
	}
	return slices.Min(numbers), nil
}
