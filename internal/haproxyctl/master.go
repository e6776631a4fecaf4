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
	"time"

	"github.com/hapticsdk/haptic/internal/printable"
)

// Master speaks to the master process of a HAProxy in master-worker mode. It keeps no
// connection open, because the master closes all of them when it reloads.
//
// The answers of masters depend on the version of HAProxy:
//
//   - Up to 3.0 the master loads the configuration, and answers nothing meanwhile. From 3.1
//     on the new worker loads it. The master lists that worker at once, and its messages say
//     whether the worker succeeded.
//   - After a failed reload, the process that keeps serving is listed as the worker up to
//     3.0, and as an old one from 3.1 on.
//   - Up to 2.6 "reload" has no answer. From 3.1 on the master refuses it while a worker
//     loads.
type Master struct {
	Path string // of the master socket
}

// Procs is the answer to "show proc" (management manual, section 9.4.1).
type Procs struct {
	MasterPID int
	Reloads   int // reloads of the master since it started
	Version   string
	Workers   []Proc // workers that serve; empty while none could be started
	Loading   []Proc // workers that still load the configuration; Workers is empty then
	Old       []Proc // workers that finish their connections, or serve while another one is Loading
}

// Proc is one worker.
type Proc struct {
	PID     int
	Reloads int // reloads that this worker has survived
}

// WorkerPID returns the process that serves. It returns 0 if there is none or if that is
// about to change.
func (p Procs) WorkerPID() int {
	if len(p.Workers) == 0 {
		return 0
	}
	return p.Workers[0].PID
}

// Reloaded reports whether a reload is over; before is an answer from before the reload. The
// reload succeeded if the worker differs.
func (p Procs) Reloaded(before Procs) bool {
	return p.Reloads > before.Reloads && len(p.Loading) == 0
}

// Procs asks the master for its processes.
func (m *Master) Procs(ctx context.Context) (Procs, error) {
	// One connection carries both commands, because it does not survive a reload in between.
	// The worker must not be asked through the master: HAProxy 3.2 may hang if the worker is
	// loading.
	answer, err := m.command(ctx, "show proc;show startup-logs")
	if err != nil {
		return Procs{}, err
	}
	list, logs, _ := strings.Cut(answer, "\n\n")
	p, err := ParseProcs(list)
	if err != nil || !loadsInWorker(p.Version) {
		return p, err
	}
	switch end := loadEnd(logs, p.MasterPID); {
	case end == Failed && len(p.Workers) == 0 && len(p.Old) > 0: // the youngest keeps serving
		youngest := slices.MinFunc(p.Old, func(a, b Proc) int { return cmp.Compare(a.Reloads, b.Reloads) })
		p.Workers = []Proc{youngest}
		p.Old = slices.DeleteFunc(p.Old, func(w Proc) bool { return w == youngest })
	case end != Loaded:
		p.Loading, p.Workers = p.Workers, nil
	}
	return p, nil
}

// loadsInWorker reports whether that version, such as "3.2.26-1", loads the configuration in
// the worker. That is so from 3.1 on, including its development versions.
func loadsInWorker(version string) bool {
	var major, minor int
	n, _ := fmt.Sscanf(version, "%d.%d", &major, &minor)
	return n == 2 && (major > 3 || major == 3 && minor >= 1)
}

// The messages of the master at the end of a load.
var (
	loadMessage = regexp.MustCompile(`^\[[A-Z]+\] +\(([0-9]+)\) : (?:config : )?(.*)$`)
	failures    = []string{
		"Loading failure",                          // up to 3.0
		"Failed to load worker",                    // from 3.1 on, by the worker
		"Master failed to parse new configuration", // from 3.1 on, by the master
	}
)

// loadEnd reads from the messages of the master how its load ended. Unknown means that the
// load is not over.
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

// ReloadFailed reports whether that line of HAProxy's output is the last one about a failed
// reload.
func ReloadFailed(line string) bool {
	m := loadMessage.FindStringSubmatch(strings.TrimRight(line, "\r\n"))
	return m != nil && slices.ContainsFunc(failures, func(f string) bool { return strings.HasPrefix(m[2], f) })
}

// Outcome is the result of a reload according to the master.
type Outcome int

const (
	// Unknown says that the master gave no result: up to HAProxy 2.6 there is no answer, and
	// a connection may break. The caller has to ask with [Procs.Reloaded].
	Unknown Outcome = iota
	// Loaded says that a new worker serves.
	Loaded
	// Failed says that the old worker keeps serving.
	Failed
	// Busy says that the master did nothing, because another start or reload is under way.
	Busy
)

// Reload tells the master to reload. It returns HAProxy's output about it, if the answer has
// that.
func (m *Master) Reload(ctx context.Context) (Outcome, []string, error) {
	answer, err := m.command(ctx, "reload")
	verdict, words, _ := strings.Cut(answer, "\n--\n")
	var lines []string
	words = strings.TrimSpace(words)
	if words != "" {
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

func (m *Master) command(ctx context.Context, command string) (string, error) {
	d := net.Dialer{Timeout: answerTimeout}
	begin, who := time.Now(), "the HAProxy master"
	conn, err := d.DialContext(ctx, "unix", m.Path)
	if err != nil {
		return "", inTime(ctx, err, who, begin)
	}
	defer func() { _ = conn.Close() }()
	stop, err := arm(ctx, conn)
	if err != nil {
		return "", inTime(ctx, err, who, begin)
	}
	defer stop()
	_, err = conn.Write([]byte(command + "\n"))
	if unix, ok := conn.(*net.UnixConn); ok && err == nil {
		err = unix.CloseWrite() // after that the master answers and closes
	}
	if err != nil {
		return "", inTime(ctx, err, who, begin)
	}
	answer, err := io.ReadAll(io.LimitReader(conn, 1<<20))
	return string(answer), inTime(ctx, err, who, begin)
}

// ParseProcs reads the answer to "show proc". It counts every listed worker as serving.
func ParseProcs(answer string) (Procs, error) {
	var p Procs
	part := "" // title of the current list
	for line := range strings.Lines(answer) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if strings.HasPrefix(words[0], "#") {
			part = strings.Trim(line, "# \r\n")
			continue
		}
		var pid, reloads int
		if n, _ := fmt.Sscanf(line, "%d %s %d", &pid, new(string), &reloads); n != 3 || pid <= 0 {
			return Procs{}, fmt.Errorf("show proc: cannot read %s", printable.Said(strings.TrimSpace(line), nil))
		}
		switch {
		case words[1] == "master":
			p.MasterPID, p.Reloads, p.Version = pid, reloads, words[len(words)-1]
		case words[1] == "worker" && part == "old workers":
			p.Old = append(p.Old, Proc{pid, reloads})
		case words[1] == "worker":
			p.Workers = append(p.Workers, Proc{pid, reloads})
		}
	}
	if p.MasterPID == 0 {
		return Procs{}, fmt.Errorf("show proc: no master in %s", printable.Said(answer, nil))
	}
	return p, nil
}
