package socket

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/hapticsdk/haptic/dataplane/internal/change"
	"github.com/hapticsdk/haptic/dataplane/internal/config"
	"github.com/hapticsdk/haptic/internal/haproxyctl"
)

// maxSingle is the number of entries that may change one by one; above it, they change in one
// atomic step. For a large file the bound is its number of lines divided by shareSingle,
// because filling it anew takes longer. HAProxy up to 2.6 searches all entries to set or
// delete one.
const maxSingle, shareSingle = 64, 32

func mostSingle(content []byte) int {
	return max(maxSingle, bytes.Count(content, []byte("\n"))/shareSingle)
}

// changeEntries changes a map or the patterns of ACLs, one by one or all at once.
func (a *applier) changeEntries(ctx context.Context, do *change.ChangeEntries) error {
	noun, parse := "acl", config.ParsePatterns
	if do.File.Kind == config.Map {
		noun, parse = "map", a.mapOf
	}
	verbs := map[change.Action]string{change.Create: "add ", change.Update: "set ", change.Delete: "del "}
	whole := do.Whole || len(do.Entries) > mostSingle(do.File.Content)
	if whole {
		return a.replaceEntries(ctx, noun, do.File, parse(do.File.Content))
	}
	var commands []command
	for _, e := range do.Entries {
		c := command{text: verbs[e.Action] + noun, args: []string{a.path(do.File), e.Key}, secret: secretly(do.File.Name, e.Key)}
		whole = whole || !haproxyctl.Plain(e.Key)
		if e.Action == change.Delete {
			c.good = []string{"", "not found"}
		} else if noun == "map" {
			c.args = append(c.args, a.names.Value(e.Value))
			whole = whole || !haproxyctl.Plain(e.Value) // for example several words
		}
		commands = append(commands, c)
	}
	if whole {
		return a.replaceEntries(ctx, noun, do.File, parse(do.File.Content))
	}
	return a.send(ctx, commands...)
}

// secretly returns the text that an error shows in place of a secret command and its answer.
// It returns "" if the error may show them.
func secretly(file, key string) string {
	if config.SpeaksOfSecrets(file) || config.SpeaksOfSecrets(key) {
		return "change of " + file
	}
	return ""
}

// replaceEntries fills a new version of the entries and makes it current.
func (a *applier) replaceEntries(ctx context.Context, noun string, f config.File, entries []config.MapEntry) error {
	path := []string{a.path(f)}
	prepare := command{text: "prepare " + noun, args: path}
	answer, err := a.conn.Exec(ctx, prepare.line())
	if err != nil {
		return err
	}
	var version uint32
	if _, err := fmt.Sscanf(answer, "New version created: %d", &version); err != nil {
		return prepare.refused(answer)
	}
	a.sent++
	at := fmt.Sprintf(" %s @%d", noun, version)
	if err := a.send(ctx, fill(command{text: "add" + at, args: path, secret: secretly(f.Name, "")}, noun, entries)...); err != nil {
		_, _ = a.conn.Exec(ctx, "clear"+at+" "+path[0]) // frees the memory of the new version
		return err
	}
	return a.send(ctx, command{text: "commit" + at, args: path})
}

// fill returns commands that add all entries. It puts the entries of a map into as few
// payloads as possible. Patterns take one command each, because that command takes no
// payload.
func fill(add command, noun string, entries []config.MapEntry) []command {
	var commands []command
	for _, e := range entries {
		c, last := add, len(commands)-1
		line := e.Key + " " + e.Value + "\n"
		switch {
		case noun == "acl":
			c.args = []string{add.args[0], e.Key}
		case last >= 0 && len(c.line())+len(commands[last].payload)+len(line) < haproxyctl.MaxPayload-16:
			commands[last].payload = append(commands[last].payload, line...)
			continue
		default:
			c.payload = []byte(line)
		}
		commands = append(commands, c)
	}
	return commands
}

// commit replaces the loaded content of a file.
func (a *applier) commit(ctx context.Context, noun string, f config.File) error {
	object, path := " ssl "+noun, []string{a.path(f)}
	err := a.send(ctx, command{text: "set" + object, args: path, payload: f.Content, good: []string{"ransaction created", "ransaction updated"}})
	if err == nil {
		err = a.send(ctx, command{text: "commit" + object, args: path, good: []string{"Success"}})
	}
	if err != nil {
		_, _ = a.conn.Exec(ctx, "abort"+object+" "+path[0]) // an open transaction would block the next one
	}
	return err
}

// changeList changes one entry of a crt-list. It adds the changed entry before it deletes the
// old one, so HAProxy serves its names all the time.
func (a *applier) changeList(ctx context.Context, do *change.ChangeListEntry) error {
	list, gone := a.path(do.File), do.Entry.Certificate()
	if do.Action != change.Delete {
		add := command{text: "add ssl crt-list", args: []string{list}, payload: []byte(strings.Join(do.Entry, " ") + "\n"), good: []string{"Success"}}
		if err := a.send(ctx, add); err != nil {
			return err
		}
	}
	switch do.Action {
	case change.Create:
		return nil
	case change.Update:
		answer, err := a.conn.Exec(ctx, "show ssl crt-list -n "+list)
		if err != nil {
			return err
		}
		_, line, _ := strings.Cut(answer, "\n"+gone+":") // the first entry is the old one, because new entries go to the end
		gone += ":" + line[:len(line)-len(strings.TrimLeft(line, "0123456789"))]
	}
	return a.send(ctx, command{text: "del ssl crt-list", args: []string{list, gone}, good: []string{"' deleted"}})
}
