package haptic

import (
	"bytes"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// fencedBlock is a block of a page: its language, what it is, and its text. A language with a
// capital, as in Go, is no such block: it is only to read.
var fencedBlock = regexp.MustCompile("(?ms)^```([a-z]+)(?: ([^\n]+))?\n(.*?)^```$")

// TestOwnController does what docs/own-controller.md says: it writes each file, runs each
// command and compares what the page shows with what is printed. In place of the release
// it takes this repository, with its versions of other modules, so that nothing is fetched.
func TestOwnController(t *testing.T) {
	if _, err := exec.LookPath("haproxy"); err != nil && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	text, err := os.ReadFile("docs/own-controller.md")
	require.NoError(t, err)
	r := newReader(t)
	printed := ""
	for _, b := range fencedBlock.FindAllStringSubmatch(string(text), -1) {
		language, is, text := b[1], b[2], r.elsewhere.Replace(b[3])
		switch {
		case language == "sh" && is == "controller":
			r.start(text)
		case language == "sh" && strings.HasPrefix(text, "curl "):
			printed = text
		case language == "sh":
			for line := range strings.Lines(text) {
				r.run(strings.TrimSpace(line))
			}
		case is == "" && language == "text":
			r.eventually(printed, text)
		default:
			require.NotEmpty(t, is, "a block that is neither a command nor a file:\n%s", text)
			require.NoError(t, os.WriteFile(filepath.Join(r.dir, is), []byte(text), 0o644))
		}
	}
	require.NotEmpty(t, printed, "the page asks the program nothing")
}

// reader follows the page in a folder of their own.
type reader struct {
	t         *testing.T
	root, dir string
	elsewhere *strings.Replacer // of the ports and folders of the page
}

func newReader(t *testing.T) *reader {
	root, err := os.Getwd()
	require.NoError(t, err)
	dir, err := os.MkdirTemp("", "own") // haproxy runs under an account of its own
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o711))
	replace := []string{"/tmp/sites", filepath.Join(dir, "state")}
	for _, port := range []string{"8080", "9090"} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		replace = append(replace, "127.0.0.1:"+port, l.Addr().String())
		require.NoError(t, l.Close())
	}
	return &reader{t, root, dir, strings.NewReplacer(replace...)}
}

// run does what a line says.
func (r *reader) run(line string) {
	switch {
	case strings.HasPrefix(line, "cd "):
		r.dir = filepath.Join(r.dir, strings.TrimPrefix(line, "cd "))
	case strings.HasPrefix(line, "go get github.com/hapticsdk/haptic"):
		r.require()
	case line == "go mod tidy": // require has done it
	default:
		out, err := r.command(line).CombinedOutput()
		require.NoError(r.t, err, "%s\n%s", line, out)
	}
}

func (r *reader) command(line string) *exec.Cmd {
	cmd := exec.Command("sh", "-ec", line)
	// Without vet, which would look at all that the program needs once more.
	cmd.Dir, cmd.Env = r.dir, append(os.Environ(), "GOFLAGS="+os.Getenv("GOFLAGS")+" -mod=mod -vet=off", "GOPROXY=off", "GOWORK=off")
	return cmd
}

// require adds this repository to the module of the page.
func (r *reader) require() {
	ours, err := os.ReadFile(filepath.Join(r.root, "go.mod"))
	require.NoError(r.t, err)
	_, needs, ok := strings.Cut(string(ours), "\n") // behind the name of the module
	require.True(r.t, ok)
	name := filepath.Join(r.dir, "go.mod")
	theirs, err := os.ReadFile(name)
	require.NoError(r.t, err)
	module, _, _ := strings.Cut(string(theirs), "\n")
	require.NoError(r.t, os.WriteFile(name, []byte(module+"\n"+needs+"\nrequire github.com/hapticsdk/haptic v0.0.0\nreplace github.com/hapticsdk/haptic => "+r.root+"\n"), 0o644))
	sums, err := os.ReadFile(filepath.Join(r.root, "go.sum"))
	require.NoError(r.t, err)
	require.NoError(r.t, os.WriteFile(filepath.Join(r.dir, "go.sum"), sums, 0o644))
}

// start runs the program of the page until the test ends.
func (r *reader) start(line string) {
	r.run("go build -o program .")
	cmd := r.command("exec " + strings.Replace(strings.TrimSpace(line), "go run .", "./program", 1))
	log := &lockedBuffer{}
	cmd.Stdout, cmd.Stderr = log, log
	require.NoError(r.t, cmd.Start())
	r.t.Cleanup(func() {
		require.NoError(r.t, cmd.Process.Signal(syscall.SIGTERM))
		err := cmd.Wait()
		if r.t.Failed() || err != nil {
			r.t.Errorf("the program ended with %v and printed:\n%s", err, log)
		}
	})
}

// eventually compares what a question prints with what the page shows.
func (r *reader) eventually(question, want string) {
	require.NotEmpty(r.t, question, "an output without a question")
	var out []byte
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); <-time.After(20 * time.Millisecond) {
		if out, _ = r.command(question).CombinedOutput(); string(out) == want {
			return
		}
	}
	r.t.Errorf("the page says:\n%s\nbut it is:\n%s", want, out)
}

// lockedBuffer is for a process and a test.
type lockedBuffer struct {
	mu  sync.Mutex
	all bytes.Buffer
}

var _ io.Writer = (*lockedBuffer)(nil)

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.String()
}
