package socket

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/hapticsdk/haptic/dataplane/internal/change"
	"github.com/hapticsdk/haptic/dataplane/internal/config"
	"github.com/hapticsdk/haptic/internal/printable"
)

// Read reads all servers of the process, and the maps and certificates of cfg. The result
// lacks the files that the process does not have.
func (w *Worker) Read(ctx context.Context, layout config.Layout, cfg *config.Config) (*change.Process, error) {
	var commands []string
	var files []config.File
	for _, f := range cfg.Files {
		if show, ok := map[config.FileKind]string{config.Map: "show map ", config.Certificate: "show ssl cert "}[f.Kind]; ok {
			commands, files = append(commands, show+layout.Path(f.Kind, f.Name)), append(files, f)
		}
	}
	answers, err := w.conn.Batch(ctx, commands)
	if err != nil {
		return nil, err
	}
	p := &change.Process{Maps: make(map[string]string), Certificates: make(map[string]string)}
	for i, f := range files {
		if f.Kind == config.Map {
			if content, ok := parseEntries(answers[i]); ok {
				p.Maps[f.Name] = w.mapFrom(content)
			}
		} else if fingerprint := field(answers[i], "SHA1 FingerPrint"); fingerprint != "" {
			p.Certificates[f.Name] = fingerprint
		}
	}
	if p.Backends, err = w.backends(ctx, cfg); err != nil {
		return nil, err
	}
	p.Servers, err = w.servers(ctx, "")
	return p, err
}

// servers asks for the servers of these backends; "" means all backends.
func (w *Worker) servers(ctx context.Context, backends ...string) (map[change.ServerRef]change.ServerState, error) {
	answers, err := w.conn.Batch(ctx, w.showServers(backends...))
	if err != nil {
		return nil, err
	}
	return w.serversOf(answers)
}

// serversOf reads answers to showServers.
func (w *Worker) serversOf(answers []string) (map[change.ServerRef]change.ServerState, error) {
	servers, err := parseServers(strings.Join(answers, "\n"))
	if w.names == nil {
		return servers, err
	}
	named := make(map[change.ServerRef]change.ServerState, len(servers))
	for ref, state := range servers {
		name := w.names.Backend(ref.Backend)
		if w.names.InProcess(name) == ref.Backend { // otherwise it is a former backend, whose name was lost with the table of names
			named[change.ServerRef{Backend: name, Server: ref.Server}] = state
		}
	}
	return named, err
}

func (w *Worker) showServers(backends ...string) []string {
	commands := make([]string, len(backends))
	for i, backend := range backends {
		commands[i] = "show servers state " + w.names.InProcess(backend)
	}
	return commands
}

// parseServers reads answers to "show servers state" (management manual, section 9.3). It
// finds columns by their names, because newer versions have more columns.
func parseServers(answer string) (map[change.ServerRef]change.ServerState, error) {
	servers := make(map[change.ServerRef]change.ServerState)
	column := make(map[string]int)
	bad := ""
	for l := range strings.Lines(answer) {
		words := strings.Fields(l)
		if len(words) < 2 {
			continue // the version of the format
		}
		if words[0] == "#" {
			for i, name := range words[1:] {
				column[name] = i
			}
			continue
		}
		word := func(name string) string {
			if i, ok := column[name]; ok && i < len(words) {
				return words[i]
			}
			bad = name
			return ""
		}
		number := func(name string) int {
			n, err := strconv.Atoi(word(name))
			if err != nil {
				bad = name
			}
			return n
		}
		s := change.ServerState{ID: number("srv_id"), Weight: number("srv_uweight"), State: stateOf(number("srv_admin_state"))}
		// An unresolved name has no address, and neither has a socket.
		s.Address, _ = netip.ParseAddrPort(net.JoinHostPort(word("srv_addr"), word("srv_port")))
		servers[change.ServerRef{Backend: word("be_name"), Server: word("srv_name")}] = s
		if bad != "" {
			return nil, fmt.Errorf("show servers state: no %s that can be read in %s", bad, printable.Said(strings.TrimSpace(l), nil))
		}
	}
	if len(column) == 0 {
		return nil, &Refused{Command: "show servers state", Answer: answer}
	}
	return servers, nil
}

// stateOf reads srv_admin_state (management manual, "show servers state"). A configuration
// cannot ask for maintenance or drain that a server inherits or that a resolver sets.
func stateOf(admin int) string {
	const forcedMaint, fromConfig, forcedDrain = 0x01, 0x04, 0x08
	switch {
	case admin&forcedMaint != 0:
		return change.Maint
	case admin&forcedDrain != 0:
		return "drain"
	case admin&^fromConfig != 0:
		return ""
	}
	return change.Ready
}

// parseEntries reads the answer to "show map". It returns the content of a file with these
// entries, or false for any other answer.
func parseEntries(answer string) (content string, ok bool) {
	var b strings.Builder
	for l := range strings.Lines(answer) {
		address, entry, _ := strings.Cut(strings.TrimRight(l, "\r\n"), " ")
		if !strings.HasPrefix(address, "0x") {
			return "", false
		}
		b.WriteString(entry + "\n")
	}
	return b.String(), true
}

// field returns a field of an answer, or "".
func field(answer, name string) string {
	for l := range strings.Lines(answer) {
		if value, ok := strings.CutPrefix(l, name+": "); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
