package haproxyctl

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Master speaks to the master process of a HAProxy in master-worker mode. It
// holds no connection: the master closes them all when it reloads. It is safe
// for concurrent use, and must not be copied after the first use.
//
// Masters differ by version in what they tell; all of it is evened out here:
//
//   - Up to HAProxy 3.0 the master loads the configuration, and answers nothing
//     meanwhile. From 3.1 on the new worker loads it, and the master lists that
//     worker from the moment it is forked.
//     Its messages then say whether it succeeded.
//   - After a reload that failed, the process that serves on is listed as the
//     worker up to 3.0, and as an old one from 3.1 on.
//   - Failed reloads are counted up to 3.0; from 3.1 on every reload starts the
//     count anew, and a configuration that the master itself cannot read is not
//     counted.
//   - Up to 2.6 "reload" has no answer, and from 3.1 on it is refused as long as
//     a worker loads.
type Master struct {
	Path string // of the master socket

	mu   sync.Mutex
	over load // the last load whose end was seen
}

// load is one start or reload of a master, which has one worker, or none (0) if
// it failed.
type load struct{ master, reloads, worker int }

// Procs is the answer to "show proc" (management manual, section 9.4.1).
type Procs struct {
	MasterPID int
	Reloads   int // of the master since it started
	Failed    int // reloads that failed, as the master counts them: see [Master]
	Version   string
	Workers   []Proc // that serve; empty while none could be started
	Loading   []Proc // that have yet to load the configuration; Workers is empty then
	Old       []Proc // that finish what they have, or serve while another one is Loading
}

// Proc is one worker.
type Proc struct {
	PID     int
	Reloads int // that this worker has survived
}

// WorkerPID returns the process that serves, 0 if there is none or if that is
// about to change.
func (p Procs) WorkerPID() int {
	if len(p.Workers) == 0 {
		return 0
	}
	return p.Workers[0].PID
}

// Reloaded reports whether a reload that was asked for after the other answer
// is over. It succeeded if there is another worker then.
func (p Procs) Reloaded(before Procs) bool {
	return p.Reloads > before.Reloads && len(p.Loading) == 0
}

// Procs asks the master for its processes.
func (m *Master) Procs(ctx context.Context) (Procs, error) {
	answer, err := m.command(ctx, "show proc")
	if err != nil {
		return Procs{}, err
	}
	p, err := ParseProcs(answer)
	if err != nil || !loadsInWorker(p.Version) {
		return p, err
	}
	m.mu.Lock()
	known := m.over == p.load()
	m.mu.Unlock()
	if known {
		return p.settled(), nil
	}
	// Whether a worker has loaded, the master tells in its messages alone. A
	// question to the worker, which the master would pass on, is no way:
	// HAProxy 3.2 may hang over it as long as that worker loads. One connection
	// for both commands, because it does not survive a reload in between.
	if answer, err = m.command(ctx, "show proc;show startup-logs"); err != nil {
		return Procs{}, err
	}
	procs, logs := answer, ""
	if i := strings.Index(answer, "\n["); i >= 0 {
		procs, logs = answer[:i+1], answer[i+1:]
	}
	if p, err = ParseProcs(procs); err != nil {
		return Procs{}, err
	}
	end := loadEnd(logs, p.MasterPID)
	switch {
	case end == Loaded && len(p.Workers) > 0, end == Failed && len(p.Workers) == 0:
		m.mu.Lock()
		m.over = p.load()
		m.mu.Unlock()
		return p.settled(), nil
	case end == Loaded: // and the worker has ended since
		return p, nil
	}
	p.Loading, p.Workers = p.Workers, nil
	return p, nil
}

// loadsInWorker reports whether that version, such as "3.2.26-1", loads the
// configuration in the worker: from 3.1 on, including its development versions.
func loadsInWorker(version string) bool {
	majorText, rest, _ := strings.Cut(version, ".")
	minorText := rest
	if i := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' }); i >= 0 {
		minorText = rest[:i]
	}
	major, err1 := strconv.Atoi(majorText)
	minor, err2 := strconv.Atoi(minorText)
	return err1 == nil && err2 == nil && (major > 3 || major == 3 && minor >= 1)
}

func (p Procs) load() load { return load{p.MasterPID, p.Reloads, p.WorkerPID()} }

// settled is p after the end of a load: if that failed, the youngest of the
// others serves on.
func (p Procs) settled() Procs {
	if len(p.Workers) == 0 && len(p.Old) > 0 {
		youngest := slices.MinFunc(p.Old, func(a, b Proc) int { return cmp.Compare(a.Reloads, b.Reloads) })
		p.Workers = []Proc{youngest}
		p.Old = slices.DeleteFunc(p.Old, func(w Proc) bool { return w == youngest })
	}
	return p
}

// What the master prints at the end of a load.
var (
	loadMessage = regexp.MustCompile(`^\[[A-Z]+\] +\(([0-9]+)\) : (?:config : )?(.*)$`)
	failures    = []string{
		"Loading failure",                          // up to 3.0
		"Failed to load worker",                    // from 3.1 on, by the worker
		"Master failed to parse new configuration", // from 3.1 on, by the master
	}
)

// loadEnd finds what the master printed at the end of its load; Unknown is for
// a load that goes on.
func loadEnd(logs string, masterPID int) Outcome {
	for line := range strings.Lines(logs) {
		m := loadMessage.FindStringSubmatch(strings.TrimRight(line, "\r\n"))
		switch {
		case m == nil || m[1] != strconv.Itoa(masterPID):
		case m[2] == "Loading success.":
			return Loaded
		case ReloadFailed(line):
			return Failed
		}
	}
	return Unknown
}

// ReloadFailed reports whether that line, printed by HAProxy, is the last one
// about a reload that failed.
func ReloadFailed(line string) bool {
	m := loadMessage.FindStringSubmatch(strings.TrimRight(line, "\r\n"))
	return m != nil && slices.ContainsFunc(failures, func(f string) bool { return strings.HasPrefix(m[2], f) })
}

// Outcome is what the master says about a reload.
type Outcome int

const (
	// Unknown is for the caller to find out with [Procs.Reloaded]: up to
	// HAProxy 2.6 there is no answer, and a connection may break.
	Unknown Outcome = iota
	// Loaded says that a new worker serves.
	Loaded
	// Failed says that the old one serves on.
	Failed
	// Busy says that nothing was done, as another start or reload is under way.
	Busy
)

// Reload tells the master to reload. It returns what HAProxy printed about it,
// if the answer has that.
func (m *Master) Reload(ctx context.Context) (Outcome, []string, error) {
	answer, err := m.command(ctx, "reload")
	verdict, words, _ := strings.Cut(answer, "\n--\n")
	var lines []string
	if words = strings.TrimSpace(words); words != "" {
		lines = strings.Split(words, "\n")
	}
	switch strings.TrimSpace(verdict) {
	case "Success=1":
		return Loaded, lines, err
	case "Success=0":
		if strings.HasPrefix(words, "Another reload is still in progress") {
			return Busy, nil, err
		}
		return Failed, lines, err
	}
	return Unknown, nil, err
}

// StartupLogs returns what HAProxy printed during the last start or reload,
// and nothing where the master does not know that: up to HAProxy 2.6, and
// where it was built without shared memory.
func (m *Master) StartupLogs(ctx context.Context) ([]string, error) {
	answer, err := m.command(ctx, "show startup-logs")
	if err != nil || !strings.HasPrefix(answer, "[") {
		return nil, err
	}
	return strings.Split(strings.TrimSpace(answer), "\n"), nil
}

func (m *Master) command(ctx context.Context, command string) (string, error) {
	d := net.Dialer{Timeout: answerTimeout}
	conn, err := d.DialContext(ctx, "unix", m.Path)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	stop, err := arm(ctx, conn)
	if err != nil {
		return "", err
	}
	defer stop()
	if _, err := conn.Write([]byte(command + "\n")); err != nil {
		return "", contextError(ctx, err)
	}
	// The master answers and closes when it sees the end of the commands.
	if unixConn, ok := conn.(*net.UnixConn); ok {
		if err := unixConn.CloseWrite(); err != nil {
			return "", contextError(ctx, err)
		}
	}
	answer, err := io.ReadAll(io.LimitReader(conn, 1<<20))
	if err != nil {
		return string(answer), contextError(ctx, err)
	}
	return string(answer), nil
}

// ParseProcs reads the answer to "show proc" as it is: a worker that is listed
// counts as one that serves.
func ParseProcs(answer string) (Procs, error) {
	var p Procs
	part := "" // title of the list that follows
	for line := range strings.Lines(answer) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if strings.HasPrefix(words[0], "#") {
			part = strings.TrimSpace(strings.TrimLeft(strings.TrimSpace(line), "# "))
			continue
		}
		pid, err := strconv.Atoi(words[0])
		if err != nil || pid <= 0 || len(words) < 3 {
			return Procs{}, fmt.Errorf("show proc: cannot read %q", strings.TrimSpace(line))
		}
		reloads, err := strconv.Atoi(words[2])
		if err != nil {
			return Procs{}, fmt.Errorf("show proc: cannot read %q", strings.TrimSpace(line))
		}
		switch {
		case words[1] == "master":
			p.MasterPID, p.Reloads, p.Failed = pid, reloads, failedCount(line)
			p.Version = words[len(words)-1]
		case words[1] == "worker" && part == "old workers":
			p.Old = append(p.Old, Proc{pid, reloads})
		case words[1] == "worker":
			p.Workers = append(p.Workers, Proc{pid, reloads})
		}
	}
	if p.MasterPID == 0 {
		return Procs{}, fmt.Errorf("show proc: no master in %q", answer)
	}
	return p, nil
}

// failedCount reads "[failed: 2]".
func failedCount(line string) int {
	_, rest, _ := strings.Cut(line, "[failed:")
	digits, _, ok := strings.Cut(rest, "]")
	if !ok {
		return 0
	}
	n, err := strconv.Atoi(strings.TrimSpace(digits))
	if err != nil {
		return 0
	}
	return n
}
