package dataplane

import (
	"bytes"
	"context"
	"encoding/pem"
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
	if err != nil {
		return err
	}
	return a.checkEntries(ctx, do)
}

// replaceMap fills a new version of a map and makes it the current one.
func (a *applier) replaceMap(ctx context.Context, f File) error {
	path := a.path(f)
	version, err := a.prepare(ctx, "map", path)
	if err != nil {
		return err
	}
	if err := a.fillMap(ctx, version, path, parseMap(f.Content)); err != nil {
		a.forget(ctx, "map", version, path)
		return err
	}
	if err := a.command(ctx, fmt.Sprintf("commit map @%s %s", version, path), ""); err != nil {
		return err
	}
	return a.checkMap(ctx, f)
}

// fillMap adds entries to a version of a map, as many at once as fit.
func (a *applier) fillMap(ctx context.Context, version, path string, entries []mapEntry) error {
	var payload bytes.Buffer
	send := func() error {
		if payload.Len() == 0 {
			return nil
		}
		defer payload.Reset()
		return a.payload(ctx, fmt.Sprintf("add map @%s %s", version, path), payload.Bytes(), "")
	}
	const room = 128 // for the command
	for _, e := range entries {
		line := e.key + " " + e.value + "\n"
		if payload.Len()+len(line) > haproxyctl.MaxPayload-room-len(path) {
			if err := send(); err != nil {
				return err
			}
		}
		payload.WriteString(line)
	}
	return send()
}

// changePatterns changes the patterns of ACLs, one by one or all at once.
func (a *applier) changePatterns(ctx context.Context, do *action) error {
	path := a.path(do.file)
	if len(do.changes) > maxSingle {
		return a.replacePatterns(ctx, do.file)
	}
	commands := make([]string, len(do.changes))
	for i, c := range do.changes {
		verb := "add"
		if c.action == Delete {
			verb = "del"
		}
		commands[i] = verb + " acl " + path + " " + c.key
	}
	if err := a.patternCommands(ctx, commands); err != nil {
		return err
	}
	return a.checkPatterns(ctx, do.file)
}

func (a *applier) patternCommands(ctx context.Context, commands []string) error {
	return a.batch(ctx, commands, func(i int, answer string) error {
		if answer != "" && !(strings.HasPrefix(commands[i], "del ") && strings.Contains(answer, "not found")) {
			return &refused{"change of a pattern of an ACL", answer}
		}
		return nil
	})
}

// replacePatterns fills a new version of the patterns and makes it the current
// one.
func (a *applier) replacePatterns(ctx context.Context, f File) error {
	path := a.path(f)
	version, err := a.prepare(ctx, "acl", path)
	if err != nil {
		return err
	}
	var commands []string
	for _, p := range parsePatterns(f.Content) {
		commands = append(commands, fmt.Sprintf("add acl @%s %s %s", version, path, p))
	}
	if err := a.patternCommands(ctx, commands); err != nil {
		a.forget(ctx, "acl", version, path)
		return err
	}
	if err := a.command(ctx, fmt.Sprintf("commit acl @%s %s", version, path), ""); err != nil {
		return err
	}
	return a.checkPatterns(ctx, f)
}

// prepare begins a new version of a map or of the patterns of ACLs.
func (a *applier) prepare(ctx context.Context, noun, path string) (version string, err error) {
	a.sent++
	command := "prepare " + noun + " " + path
	answer, err := a.conn.Exec(ctx, command)
	if err != nil {
		return "", err
	}
	_, version, ok := strings.Cut(answer, "New version created:")
	version = strings.TrimSpace(version)
	if _, err := strconv.ParseUint(version, 10, 32); err != nil || !ok {
		return "", &refused{command, answer}
	}
	return version, nil
}

// forget drops a version that was not finished, which would hold its memory.
func (a *applier) forget(ctx context.Context, noun, version, path string) {
	_, _ = a.conn.Exec(ctx, fmt.Sprintf("clear %s @%s %s", noun, version, path))
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
		return err
	}
	return a.checkCertificate(ctx, f)
}

// updateBundle puts new certificates, or revocation lists, in the place of a
// loaded file. What does not fit into one command goes in several, which takes
// "add ssl ca-file" of HAProxy 3.0.
func (a *applier) updateBundle(ctx context.Context, noun string, f File) error {
	path, verb := a.path(f), "set"
	for _, part := range bundleParts(f.Content, haproxyctl.MaxPayload-512) {
		if err := a.payload(ctx, verb+" ssl "+noun+" "+path, part, "transaction created", "transaction updated"); err != nil {
			_, _ = a.conn.Exec(ctx, "abort ssl "+noun+" "+path)
			return err
		}
		verb = "add"
	}
	err := a.command(ctx, "commit ssl "+noun+" "+path, "Success")
	if err != nil {
		_, _ = a.conn.Exec(ctx, "abort ssl "+noun+" "+path)
		return err
	}
	if noun == "crl-file" {
		return a.checkRevocations(ctx, f)
	}
	return a.checkAuthorities(ctx, f)
}

// bundleParts cuts a file of PEM blocks into parts of at most that size, as far
// as blocks allow. Text between blocks, which means nothing, is left out.
func bundleParts(content []byte, size int) [][]byte {
	if len(content) <= size {
		return [][]byte{content}
	}
	var parts [][]byte
	var part []byte
	for rest := content; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		text := pem.EncodeToMemory(block)
		if len(part) > 0 && len(part)+len(text) > size {
			parts, part = append(parts, part), nil
		}
		part = append(part, text...)
	}
	if len(part) > 0 {
		parts = append(parts, part)
	}
	return parts
}

func (a *applier) newCertificate(ctx context.Context, f File) error {
	if err := a.command(ctx, "new ssl cert "+a.path(f), "New empty certificate store", "already exists"); err != nil {
		return err
	}
	return a.updateCertificate(ctx, f)
}

func (a *applier) deleteCertificate(ctx context.Context, f File) error {
	if err := a.command(ctx, "del ssl cert "+a.path(f), "deleted", "doesn't exist", "not referenced"); err != nil {
		return err
	}
	answer, err := a.conn.Exec(ctx, "show ssl cert "+a.path(f))
	if err == nil && strings.Contains(answer, "Filename:") {
		err = fmt.Errorf("%s %s is still there after the change", f.Kind, f.Name)
	}
	return err
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
