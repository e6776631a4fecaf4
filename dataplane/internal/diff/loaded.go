package diff

import (
	"net/netip"
	"strconv"
	"strings"

	"github.com/hapticsdk/haptic/dataplane/internal/change"
	"github.com/hapticsdk/haptic/dataplane/internal/config"
)

const defaultServer = "default-server"

// asLoaded reports whether the process has exactly the servers of a section; count is the
// number of servers that it has. In that case runningSection would return the text of the
// section. asLoaded understands only the plainest "server" lines: to parse all lines of
// 10,000 backends would take the processor for a third of a second. False means only that it
// does not know.
func asLoaded(s *config.Section, p *change.Process, count int) bool {
	if strings.Contains(s.Text, defaultServer) {
		return false
	}
	for line := range strings.Lines(s.Text) {
		keyword, rest := config.CutWord(line)
		if !strings.HasPrefix(keyword, "server") {
			continue
		}
		name, want, ok := plainServer(rest)
		if keyword != "server" || !ok || p.Servers[change.ServerRef{Backend: s.Name, Server: name}].Loaded() != want {
			return false
		}
		count--
	}
	return count == 0
}

// plainServer reads the words after "server". It reports false for lines that only
// config.ParseServer understands.
func plainServer(line string) (name string, is change.ServerState, ok bool) {
	if strings.ContainsAny(line, "\"'\\#$") {
		return "", is, false
	}
	name, line = config.CutWord(line)
	address, line := config.CutWord(line)
	is = change.ServerState{Weight: 1, State: change.Ready}
	var err error
	if is.Address, err = netip.ParseAddrPort(address); err != nil {
		return "", is, false
	}
	weighed := false
	for line != "" {
		var word string
		switch word, line = config.CutWord(line); word {
		case "", "check":
		case "disabled":
			is.State = change.Maint
		case "weight":
			word, line = config.CutWord(line)
			if is.Weight, err = strconv.Atoi(word); err != nil || weighed {
				return "", is, false
			}
			weighed = true
		case "maxconn":
			_, line = config.CutWord(line)
		default:
			return "", is, false
		}
	}
	return name, is, true
}
