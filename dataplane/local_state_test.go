package dataplane_test

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/internal/haproxyctl"
)

// blueprint is a configuration for a host, whose paths it names.
type blueprint func(h *host) (text string, files []dataplane.File)

// settled are the states of servers that do not change by themselves.
var settled = regexp.MustCompile(`^(UP|MAINT|OPEN|DRAIN|no check|)$`)

// state tells what of a running process a configuration decides: no counters,
// no identifiers, no addresses in memory. It reports false as long as health
// checks have not come to their result.
func (h *host) state() (state []string, ok bool) {
	h.t.Helper()
	conn, err := haproxyctl.Dial(h.t.Context(), h.local.RuntimeSocket())
	require.NoError(h.t, err)
	defer func() { _ = conn.Close() }()
	ask := func(command string) string {
		answer, err := conn.Exec(h.t.Context(), command)
		require.NoError(h.t, err)
		return answer
	}
	state, ok = statsOf(h.t, ask("show stat"))
	state = append(state, serversOf(ask("show servers state"))...)
	for _, noun := range []string{"map", "acl"} {
		for _, path := range pathsOf(ask("show " + noun)) {
			var entries []string
			for l := range strings.Lines(ask("show " + noun + " " + path)) {
				_, entry, _ := strings.Cut(strings.TrimRight(l, "\n"), " ")
				entries = append(entries, fmt.Sprintf("%s %s: %s", noun, path, entry))
			}
			if filepath.Base(path) != "ordered.map" {
				slices.Sort(entries)
			}
			if noun == "acl" {
				entries = slices.Compact(entries)
			}
			state = append(state, entries...)
		}
	}
	state = append(state, tlsOf(ask)...)
	info := ask("show info")
	state = append(state, info[strings.Index(info, "\nMaxconn:"):][:20])
	for i := range state {
		state[i] = strings.ReplaceAll(state[i], h.dir, "DIR")
	}
	return state, ok
}

var shownPath = regexp.MustCompile(`(?m)^\d+ \((/[^)]*)\) `)

func pathsOf(answer string) []string {
	var paths []string
	for _, m := range shownPath.FindAllStringSubmatch(answer, -1) {
		paths = append(paths, m[1])
	}
	slices.Sort(paths)
	return paths
}

// statsOf reads "show stat" (management manual, section 9.1).
func statsOf(t testing.TB, answer string) (state []string, ok bool) {
	rows, err := csv.NewReader(strings.NewReader(strings.TrimPrefix(answer, "# "))).ReadAll()
	require.NoError(t, err)
	ok = true
	for _, row := range rows[1:] {
		var b strings.Builder
		for i, name := range rows[0] {
			if name == "slim" && row[1] == "BACKEND" {
				continue // fullconn, which counts with minconn alone
			}
			if name == "weight" && strings.Contains(b.String(), "status=MAINT") {
				continue // of no server that is out of service; its own is in "show servers state"
			}
			switch name {
			case "throttle": // a slow start, which changes the weight
				ok = ok && row[i] == ""
			case "status":
				ok = ok && (row[1] == "BACKEND" || settled.MatchString(row[i]))
				fallthrough
			case "pxname", "svname", "slim", "weight", "act", "bck", "cookie", "algo", "mode", "addr", "qlimit",
				"check_rise", "check_fall", "agent_rise", "agent_fall", "type":
				fmt.Fprintf(&b, " %s=%s", name, row[i])
			}
		}
		state = append(state, b.String())
	}
	slices.Sort(state)
	return state, ok
}

// serversOf reads "show servers state".
func serversOf(answer string) []string {
	var names, state []string
	for l := range strings.Lines(answer) {
		words := strings.Fields(l)
		if len(words) < 5 {
			continue
		}
		if words[0] == "#" {
			names = words[1:]
			continue
		}
		var b strings.Builder
		column := make(map[string]string)
		for i, name := range names {
			column[name] = words[i]
		}
		const fromConfiguration, enabled = 0x04, 4
		admin, _ := strconv.Atoi(column["srv_admin_state"])
		agent, _ := strconv.Atoi(column["srv_agent_state"])
		fmt.Fprintf(&b, "server admin=%d", admin&^fromConfiguration)
		for _, name := range []string{"be_name", "srv_name", "srv_addr", "srv_port", "srv_uweight", "srv_fqdn", "srv_use_ssl", "srv_check_port", "srv_check_addr"} {
			fmt.Fprintf(&b, " %s=%s", name, column[name])
		}
		if agent&enabled != 0 {
			fmt.Fprintf(&b, " agent=%s:%s", column["srv_agent_addr"], column["srv_agent_port"])
		}
		state = append(state, b.String())
	}
	slices.Sort(state)
	return state
}

var lineNumber = regexp.MustCompile(`(\.pem):\d+`)

// tlsOf reads all that the process knows of certificates.
func tlsOf(ask func(string) string) []string {
	var state []string
	for _, kind := range []string{"cert", "ca-file", "crl-file", "crt-list"} {
		var objects []string
		for l := range strings.Lines(ask("show ssl " + kind)) {
			if path, _, _ := strings.Cut(strings.TrimSpace(l), " - "); strings.HasPrefix(path, "/") {
				objects = append(objects, path)
			}
		}
		slices.Sort(objects)
		for _, path := range objects {
			command := "show ssl " + kind + " " + path
			if kind == "crt-list" {
				command = "show ssl crt-list -n " + path
			}
			var lines []string
			for l := range strings.Lines(ask(command)) {
				if strings.HasPrefix(l, "Crt filename:") {
					continue // HAProxy 3.2 knows it of files that it read itself
				}
				lines = append(lines, path+": "+strings.TrimSpace(lineNumber.ReplaceAllString(l, "$1")))
			}
			if kind == "crt-list" {
				slices.Sort(lines)
			}
			state = append(state, lines...)
		}
	}
	return state
}

// asFresh fails unless the process of the host is as one that starts with that
// configuration. It may have other names for backends, and what no request reaches:
// spare backends, and those with an empty name.
func (h *host) asFresh(s blueprint, names ...map[string]string) {
	h.t.Helper()
	other := slices.ContainsFunc(names, func(m map[string]string) bool { return len(m) > 0 })
	named := func(state []string, names ...map[string]string) []string {
		for _, m := range names {
			for process, name := range m {
				for i := range state {
					state[i] = strings.ReplaceAll(state[i], process, cmp.Or(name, dataplane.SparePrefix))
				}
			}
		}
		if other { // they stand at other places
			state = slices.DeleteFunc(state, func(l string) bool {
				return strings.Contains(l, dataplane.SparePrefix) && !strings.HasPrefix(l, "map ")
			})
			slices.Sort(state)
		}
		return state
	}
	fresh := newHost(h.t)
	text, files := s(fresh)
	fresh.sync(text, files...)
	defer fresh.stop()
	var is, want []string
	eventually(h.t, "health checks come to a result", func() bool {
		var ok1, ok2 bool
		is, ok1 = h.state()
		want, ok2 = fresh.state()
		if !ok1 || !ok2 {
			return false
		}
		// One that changes while it is told is told as it never was.
		again, _ := h.state()
		wantAgain, _ := fresh.state()
		return slices.Equal(is, again) && slices.Equal(want, wantAgain)
	})
	if diff := gocmp.Diff(named(want), named(is, names...)); diff != "" {
		h.t.Errorf("the process is not as after a start (-fresh +running):\n%s", diff)
	}
}

// socket is a path for a bind line.
func (h *host) socket(name string) string { return "unix@" + filepath.Join(h.dir, "run", name) }
