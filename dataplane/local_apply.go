package dataplane

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hapticsdk/haptic/internal/haproxyctl"
)

// words returns what HAProxy said about a reload that failed. The master may
// have said it already.
func (s *syncing) words(ctx context.Context, mark int, said []string) []string {
	hasAlert := func(line string) bool { return strings.HasPrefix(line, "[ALERT]") }
	if slices.ContainsFunc(said, hasAlert) {
		return said
	}
	if s.process != nil {
		s.process.output.waitFor(ctx, mark, haproxyctl.ReloadFailed)
		return s.process.output.since(mark)
	}
	// Somebody else has its output.
	if logs, err := s.l.master.StartupLogs(ctx); err == nil && slices.ContainsFunc(logs, hasAlert) {
		return logs
	}
	// Ask once more, without starting it.
	binary, err := haproxyctl.FindBinary(s.l.opts.Binary)
	if err != nil {
		return []string{err.Error()}
	}
	out, _ := exec.CommandContext(ctx, binary, "-c", "-f", s.l.layout.ConfigPath()).CombinedOutput()
	return strings.Split(string(out), "\n")
}

// refused is a command that HAProxy did not take.
type refused struct{ command, answer string }

func (r *refused) Error() string {
	return fmt.Sprintf("HAProxy refused %q: %s", r.command, strings.Join(strings.Fields(r.answer), " "))
}

// applier tells one running process what changes.
type applier struct {
	l       *Local
	conn    *haproxyctl.Conn
	desired *Config
	sent    int            // commands that change something
	ids     map[string]int // highest identifier of a server, by backend
	touched []serverRef    // to be read back, in order
}

// errAnotherWorker says that the stats socket is that of another process.
var errAnotherWorker = errors.New("another process answers on the stats socket")

// dialWorker connects to the stats socket of that worker, and returns what it
// tells about itself. For a moment after a reload the old worker still accepts
// connections on the socket, which both have: what it is told would be lost. So
// it is tried again for as long as the master has an old one.
func (l *Local) dialWorker(ctx context.Context, worker int) (conn *haproxyctl.Conn, info string, err error) {
	ctx, cancel := context.WithTimeout(ctx, waitForMaster)
	defer cancel()
	for alone := false; ; alone = l.alone(ctx, worker) {
		conn, info, err = l.askWorker(ctx, worker)
		if err == nil || alone || haproxyctl.Absent(err) {
			return conn, info, err
		}
		timer := time.NewTimer(pollEvery)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, "", fmt.Errorf("process %d does not answer on the stats socket: %w", worker, errors.Join(ctx.Err(), err))
		}
	}
}

func (l *Local) askWorker(ctx context.Context, worker int) (*haproxyctl.Conn, string, error) {
	conn, err := haproxyctl.Dial(ctx, l.opts.RuntimeSocket)
	if err != nil {
		return nil, "", fmt.Errorf("the stats socket of the configuration does not answer: %w", err)
	}
	info, err := conn.Exec(ctx, "show info")
	if is := infoField(info, "Pid"); err == nil && is != strconv.Itoa(worker) {
		err = fmt.Errorf("%w: %s instead of %d", errAnotherWorker, is, worker)
	}
	if err != nil {
		_ = conn.Close()
		return nil, "", err
	}
	return conn, info, nil
}

// alone reports whether the master has that worker and no other.
func (l *Local) alone(ctx context.Context, worker int) bool {
	procs, err := l.master.Procs(ctx)
	return err == nil && procs.WorkerPID() == worker && len(procs.Old)+len(procs.Loading) == 0
}

// apply carries the actions out on that worker and reads back what it
// changed. It returns how many commands changed something.
func (l *Local) apply(ctx context.Context, worker int, actions []*action, desired *Config) (int, error) {
	conn, _, err := l.dialWorker(ctx, worker)
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close() }()
	a := &applier{l: l, conn: conn, desired: desired, ids: make(map[string]int)}
	returning := l.returning(actions)
	if err := a.retryLeaving(ctx, returning); err != nil {
		return a.sent, err
	}
	for i := 0; i < len(actions); {
		// Changes of servers are many and short: they travel together.
		n := 0
		for i+n < len(actions) && actions[i+n].kind == setServer {
			n++
		}
		if n > 0 {
			err = a.setServers(ctx, actions[i:i+n])
		} else {
			n, err = 1, a.one(ctx, actions[i])
		}
		if err != nil {
			return a.sent, err
		}
		i += n
	}
	if err := a.readBack(ctx, actions); err != nil {
		return a.sent, err
	}
	if err := a.checkCrtLists(ctx, actions); err != nil {
		return a.sent, err
	}
	for ref := range returning {
		delete(l.leaving, ref)
	}
	return a.sent, nil
}

func (a *applier) one(ctx context.Context, do *action) error {
	switch do.kind {
	case addServer:
		return a.addServer(ctx, do)
	case deleteServer:
		ref := serverRef{do.backend, do.server}
		a.touched = append(a.touched, ref)
		return a.deleteServer(ctx, ref, do.args)
	case changeMap:
		return a.changeMap(ctx, do)
	case updateCertificate:
		return a.updateCertificate(ctx, do.file)
	case newCertificate:
		return a.newCertificate(ctx, do.file)
	case deleteCertificate:
		return a.deleteCertificate(ctx, do.file)
	case addCrtListEntry, updateCrtListEntry, deleteCrtListEntry:
		return a.changeCrtList(ctx, do)
	case changePatterns:
		return a.changePatterns(ctx, do)
	case updateCA:
		return a.updateBundle(ctx, "ca-file", do.file)
	case updateCRL:
		return a.updateBundle(ctx, "crl-file", do.file)
	case setFrontend, setGlobal:
		return a.setLimits(ctx, do)
	}
	return fmt.Errorf("unknown action %d", do.kind)
}

func (a *applier) path(f File) string { return a.l.layout.Path(f.Kind, f.Name) }

// command sends a command that HAProxy takes with one of the answers; "" stands
// for an empty one.
func (a *applier) command(ctx context.Context, command string, good ...string) error {
	a.sent++
	answer, err := a.conn.Exec(ctx, command)
	if err != nil {
		return err
	}
	if !isGood(answer, good) {
		return &refused{command, answer}
	}
	return nil
}

func isGood(answer string, good []string) bool {
	for _, g := range good {
		if g == "" && answer == "" || g != "" && strings.Contains(answer, g) {
			return true
		}
	}
	return false
}

// setNames are the names that "set server" has for fields.
var setNames = map[string]string{
	"weight": "weight", "state": "state", "port": "check-port", "addr": "check-addr",
	"agent-addr": "agent-addr", "agent-port": "agent-port", "agent-send": "agent-send",
}

// setLimits sets how many connections frontends, and the process, take.
func (a *applier) setLimits(ctx context.Context, do *action) error {
	var commands []string
	if do.kind == setGlobal {
		commands = append(commands, "set maxconn global "+do.limit)
	}
	for _, name := range do.frontends {
		commands = append(commands, "set maxconn frontend "+name+" "+do.limit)
	}
	answers, err := a.conn.Batch(ctx, commands)
	a.sent += len(answers)
	for i, answer := range answers {
		if answer != "" {
			return &refused{commands[i], answer}
		}
	}
	if err == nil {
		err = a.checkFrontends(ctx, do)
	}
	if err != nil || do.kind == setFrontend {
		return err
	}
	info, err := a.conn.Exec(ctx, "show info")
	if err == nil && infoField(info, "Maxconn") != do.limit {
		err = fmt.Errorf("the process has another limit of connections after the change: %s", infoField(info, "Maxconn"))
	}
	return err
}

// setServers changes servers that exist.
func (a *applier) setServers(ctx context.Context, actions []*action) error {
	var commands []string
	var good [][]string
	for _, do := range actions {
		name, err := serverPath(do.backend, do.server)
		if err != nil {
			return err
		}
		fields := do.fields
		if last := len(fields) - 1; fields[last] == (serverField{"state", "maint"}) {
			// No request shall meet the new address of a server that goes.
			fields = append([]serverField{fields[last]}, fields[:last]...)
		}
		for _, f := range fields {
			switch f.name {
			case "address":
				host, port := splitAddress(f.value)
				commands = append(commands, fmt.Sprintf("set server %s addr %s port %s", name, host, port))
				good = append(good, []string{"changed from", "no need to change", "nothing changed"})
			case "maxconn":
				commands = append(commands, fmt.Sprintf("set maxconn server %s %s", name, f.value))
				good = append(good, []string{""})
			default:
				commands = append(commands, fmt.Sprintf("set server %s %s %s", name, setNames[f.name], f.value))
				good = append(good, []string{""})
			}
		}
		a.touched = append(a.touched, serverRef{do.backend, do.server})
	}
	return a.batch(ctx, commands, func(i int, answer string) error {
		if !isGood(answer, good[i]) {
			return &refused{commands[i], answer}
		}
		return nil
	})
}

// batch sends commands together, and has each answer judged.
func (a *applier) batch(ctx context.Context, commands []string, judge func(i int, answer string) error) error {
	for _, c := range commands {
		if err := plainCommand(c); err != nil {
			return err
		}
	}
	answers, err := a.conn.Batch(ctx, commands)
	a.sent += len(answers)
	for i, answer := range answers {
		if err := judge(i, answer); err != nil {
			return err
		}
	}
	return err
}

// splitAddress cuts the form that netip.AddrPort prints.
func splitAddress(s string) (host, port string) {
	i := strings.LastIndexByte(s, ':')
	return strings.Trim(s[:i], "[]"), s[i+1:]
}

// plainCommand refuses words that HAProxy's command line would read otherwise.
func plainCommand(command string) error {
	for _, word := range strings.Split(command, " ") {
		if !haproxyctl.Plain(word) {
			return fmt.Errorf("%q cannot be said on the command line", word)
		}
	}
	return nil
}

func serverPath(backend, server string) (string, error) {
	for _, s := range []string{backend, server} {
		if !haproxyctl.Plain(s) || strings.Contains(s, "/") {
			return "", fmt.Errorf("%q cannot be said on the command line", s)
		}
	}
	return backend + "/" + server, nil
}

const noSuchServer = "No such server"

// addServer adds a server as it would be after a reload: with checks, and
// enabled. It gets an identifier, because up to HAProxy 2.8 servers added
// without one push each other out of the tree of balance random.
func (a *applier) addServer(ctx context.Context, do *action) error {
	ref := serverRef{do.backend, do.server}
	name, err := serverPath(do.backend, do.server)
	if err != nil {
		return err
	}
	if _, ok := a.l.leaving[ref]; ok {
		return fmt.Errorf("server %s of before still has connections", name)
	}
	line, ok := parseServer(append([]string{"server", do.server}, do.args...))
	if !ok {
		return fmt.Errorf("server %s cannot be read", name)
	}
	words, err := a.addWords(ctx, do.backend, &line)
	if err != nil {
		return err
	}
	command := strings.Join(slices.Concat([]string{"add", "server", name}, words), " ")
	if err := plainCommand(command); err != nil {
		return err
	}
	if err := a.command(ctx, command, "New server registered"); err != nil {
		return err
	}
	if line.has("check") {
		if err := a.command(ctx, "enable health "+name, ""); err != nil {
			return err
		}
	}
	a.touched = append(a.touched, ref)
	if line.value("state") == "disabled" {
		return nil
	}
	return a.command(ctx, "set server "+name+" state ready", "")
}

// addWords returns the words with which a server is after "add server" what it
// is after a reload. Of what HAProxy works out for servers of its configuration,
// it leaves some undone for those (management manual, section 9.3): the health
// check does not speak TLS and the PROXY protocol by itself, and up to 2.6
// minconn does not follow maxconn.
func (a *applier) addWords(ctx context.Context, backend string, line *serverLine) ([]string, error) {
	var words []string
	for _, w := range line.args {
		if w != "disabled" && w != "enabled" { // it starts in maintenance anyway
			words = append(words, w)
		}
	}
	if line.value("state") == "disabled" {
		words = append(words, "disabled") // so that its checks pause
	}
	if limit := line.value("maxconn"); limit != "" && !line.has("minconn") {
		words = append(words, "minconn", limit)
	}
	if line.has("check") && !line.checkElsewhere() {
		if line.has("ssl") && !line.has("check-ssl") {
			words = append(words, "check-ssl")
		}
		if line.sendsProxy() && !line.has("check-send-proxy") {
			words = append(words, "check-send-proxy")
		}
	}
	if !line.has("id") {
		id, err := a.nextID(ctx, backend)
		if err != nil {
			return nil, err
		}
		words = append(words, "id", strconv.Itoa(id))
	}
	return words, nil
}

// nextID returns an identifier that no server of the backend has.
func (a *applier) nextID(ctx context.Context, backend string) (int, error) {
	if _, ok := a.ids[backend]; !ok {
		states, err := a.states(ctx, backend)
		if err != nil {
			return 0, err
		}
		highest := 0
		for _, s := range states {
			highest = max(highest, s.id)
		}
		a.ids[backend] = highest
	}
	a.ids[backend]++
	return a.ids[backend], nil
}

// deleteServer takes a server out of service and deletes it, now or when its
// last connection has ended.
func (a *applier) deleteServer(ctx context.Context, ref serverRef, args []string) error {
	name, err := serverPath(ref.backend, ref.server)
	if err != nil {
		return err
	}
	if err := a.command(ctx, "set server "+name+" state maint", "", noSuchServer); err != nil {
		return err
	}
	a.sent++
	answer, err := a.conn.Exec(ctx, "del server "+name)
	if err != nil {
		return err
	}
	switch {
	case isGood(answer, []string{"Server deleted", noSuchServer}):
		delete(a.l.leaving, ref)
	case strings.Contains(answer, "connection"):
		a.l.leaving[ref] = args
	default:
		return &refused{"del server " + name, answer}
	}
	return nil
}
