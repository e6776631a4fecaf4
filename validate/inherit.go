package validate

import (
	"context"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/internal/haproxycfg"
)

// inherits reports whether haproxy takes cfg because it took base. The plan
// says which kinds of operations lead from one to the other. The running HAProxy
// checks those kinds itself. The texts must then show that haproxy takes the
// result from disk, too: after a restart it reads the files. In doubt the answer
// is no, which costs one run of haproxy. It is no, too, when ctx has ended.
func inherits(ctx context.Context, base, cfg *dataplane.Config) bool {
	plan, err := dataplane.Diff(base, cfg)
	if err != nil || plan.Impact() > dataplane.ImpactRuntime {
		return false
	}
	for _, op := range plan.Ops {
		switch {
		case op.Kind == "server", op.Kind == "map entry":
		case op.Kind == "certificate" && op.Action == dataplane.Update:
		default:
			return false
		}
	}
	return sectionsInherit(ctx, base, cfg) && filesInherit(ctx, base, cfg)
}

// sectionsInherit wants the same sections with the same lines, but for servers.
func sectionsInherit(ctx context.Context, base, cfg *dataplane.Config) bool {
	before, after := base.Sections(), cfg.Sections()
	if len(before) != len(after) {
		return false
	}
	gone := map[string]bool{}
	for i := range after {
		if before[i].Text != after[i].Text && (ctx.Err() != nil || !serversInherit(before[i].Text, after[i].Text, gone)) {
			return false
		}
	}
	return len(gone) == 0 || !mentions(cfg.Main(), gone)
}

// serversInherit compares two texts of one section. A server keeps its options
// or takes those of another server that haproxy saw there. The names of servers
// that are deleted come into gone.
func serversInherit(before, after string, gone map[string]bool) bool {
	rest, old, ok := cutServers(before)
	newRest, now, newOK := cutServers(after)
	if !ok || !newOK || !slices.Equal(rest, newRest) {
		return false
	}
	seen := map[string]bool{}
	for name, options := range old {
		seen[options] = true
		if _, stays := now[name]; !stays {
			gone[name] = true
			ok = ok && !strings.ContainsFunc(name, partsNames)
		}
	}
	for _, options := range now {
		if !seen[options] {
			return false
		}
	}
	return ok
}

// cutServers takes the servers out of a section, as their options by name. It
// fails where names or options of servers come from other lines.
func cutServers(text string) (rest []string, servers map[string]string, ok bool) {
	servers = map[string]string{}
	for line := range strings.Lines(text) {
		words, err := haproxycfg.Fields(line)
		switch {
		case err != nil:
			return nil, nil, false
		case len(words) == 0:
			continue
		case words[0] == "server-template", words[0] == "use-fcgi-app", // HAProxy counts its servers
			words[0] == "default-server" && len(servers) > 0,
			words[0] == "server" && (len(words) < 3 || servers[words[1]] != ""):
			return nil, nil, false
		case words[0] != "server":
			rest = append(rest, line)
			continue
		}
		raw, _ := haproxycfg.RawFields(line) // quotes decide what is a variable
		servers[words[1]] = optionsOf(raw)
	}
	return rest, servers, true
}

// optionsOf returns the options of a server, without a weight that is valid. They
// equal those of no other server where only one may have them, and stay the whole
// line where that is not plain.
func optionsOf(words []string) string {
	line := strings.Join(words, "\n")
	addr, err := netip.ParseAddrPort(words[2])
	if err != nil || addr.Port() == 0 || addr.Addr().Zone() != "" || strings.ContainsFunc(words[1], partsNames) {
		return line
	}
	options := "options"
	if strings.ContainsAny(line, "\"'\\") {
		options = words[1]
	}
	for i := 3; i < len(words); i++ {
		switch words[i] {
		case "id", "guid", "cookie", "track":
			options += "\nof " + words[1]
		case "weight":
			if n, err := strconv.Atoi(strings.Join(words[i+1:min(i+2, len(words))], "")); err == nil && n >= 0 && n <= 256 {
				i++
				continue
			}
		}
		options += "\n" + words[i]
	}
	return options
}

// mentions reports whether a line may refer to one of these servers: use-server,
// track, srv_is_up(...). A server line does not refer to itself.
func mentions(text string, servers map[string]bool) bool {
	for line := range strings.Lines(text) {
		words, err := haproxycfg.Fields(line)
		if err != nil || haproxycfg.Expands(line) {
			return true
		}
		if len(words) > 1 && words[0] == "server" {
			words = words[2:]
		}
		for _, word := range words {
			for name := range strings.FieldsFuncSeq(word, partsNames) {
				if servers[name] {
					return true
				}
			}
		}
	}
	return false
}

// partsNames reports the characters that end the name of a server.
func partsNames(r rune) bool { return r >= 0x80 || r == '/' || !pathByte(byte(r)) }
