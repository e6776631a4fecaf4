package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// tutorialBlock is a fenced block: its language, what it is for, and its text.
var tutorialBlock = regexp.MustCompile("(?ms)^```(sh|text)([a-z ]*)\n(.*?)^```$")

// TestTutorial does what docs/tutorial.md says: it runs each command of the page, in
// order, and compares what the page shows with what is printed.
func TestTutorial(t *testing.T) {
	t.Parallel()
	needHAProxy(t)
	for _, name := range []string{"curl", "openssl"} {
		_, err := exec.LookPath(name)
		require.NoError(t, err, "the page calls it")
	}
	page, err := os.ReadFile("../../docs/tutorial.md")
	require.NoError(t, err)
	blocks := tutorialBlock.FindAllStringSubmatch(string(page), -1)
	require.NotEmpty(t, blocks)
	require.Equal(t, strings.Count(string(page), "```"), 2*len(blocks), "a fenced block that this test does not know")

	r := newTutorial(t)
	for _, b := range blocks {
		text := r.elsewhere.Replace(b[3])
		switch b[1] + b[2] {
		case "sh":
			r.command(text)
		case "text":
			r.shows(text)
		case "sh controller":
			r.start(text)
		case "text controller":
			r.tells(text)
		case "text controller ends":
			r.stop()
			r.tells(text)
		default:
			t.Fatalf("a block of kind %q", b[1]+b[2])
		}
	}
	require.NoFileExists(t, filepath.Join(r.dir, "pods.pid"))
	require.NoDirExists(t, r.dir, "the page deletes what it made")
}

// tutorial is a reader with two terminals.
type tutorial struct {
	tb        testing.TB
	dir       string            // of this reader, in place of that of the page
	elsewhere *strings.Replacer // of the folder and the ports of the page
	question  string            // a command that only asks; an output comes next
	printed   string            // by the last command
	log       output            // of the controller
	mark      int               // how much of it is older than the last command
	stop      func()
}

func newTutorial(tb testing.TB) *tutorial {
	above := tb.TempDir()
	require.NoError(tb, os.Chmod(filepath.Dir(above), 0o711)) // haproxy runs under an account of its own
	r := &tutorial{tb: tb, dir: filepath.Join(above, "t")}
	replace := []string{"/tmp/tutorial", r.dir}
	for _, port := range []string{"8080", "8443", "9090", "6060", "18081", "18082"} {
		_, free, _ := strings.Cut(freeAddress(tb), ":")
		replace = append(replace, port, free)
	}
	r.elsewhere = strings.NewReplacer(replace...)
	tb.Cleanup(func() {
		if pid := filepath.Join(r.dir, "pods.pid"); tb.Failed() {
			_ = exec.Command("sh", "-c", "test -f "+pid+" && kill $(cat "+pid+")").Run()
		}
	})
	return r
}

// command runs what the reader types. One that only asks waits for the block with the
// answer, which may take a moment to become true.
func (r *tutorial) command(text string) {
	r.tb.Helper()
	require.Empty(r.tb, r.question, "a question without an output on the page")
	if strings.HasPrefix(text, "curl ") {
		r.question = text
		return
	}
	r.mark = len(r.log.String())
	require.NoError(r.tb, r.sh(text), "%s\n%s", text, r.printed)
}

// sh runs a command in the folder of the page, as soon as there is one.
func (r *tutorial) sh(text string) error {
	cmd := exec.Command("sh", "-ec", text)
	if _, err := os.Stat(r.dir); err == nil {
		cmd.Dir = r.dir
	}
	out, err := cmd.CombinedOutput()
	r.printed = string(out)
	return err
}

// shows compares all that the last command printed.
func (r *tutorial) shows(want string) {
	r.tb.Helper()
	if r.question != "" {
		r.until(want, func() string {
			if err := r.sh(r.question); err != nil {
				return r.printed + err.Error()
			}
			return r.printed
		}, `\A`+tutorialLine(want)+`\z`)
		r.question = ""
		return
	}
	require.Regexp(r.tb, `\A`+tutorialLine(want)+`\z`, r.printed)
}

// tells finds these lines, in this order, in what the controller printed since the
// last command.
func (r *tutorial) tells(want string) {
	r.tb.Helper()
	require.Empty(r.tb, r.question, "a question without an output on the page")
	var pattern strings.Builder
	for line := range strings.Lines(want) {
		pattern.WriteString(`(?m:^)` + tutorialLine(line) + `(?s:.*)`)
	}
	r.until(want, func() string { return r.log.String()[r.mark:] }, pattern.String())
}

// tutorialLine is a pattern of a text with "..." for what varies.
func tutorialLine(text string) string {
	return strings.ReplaceAll(regexp.QuoteMeta(text), `\.\.\.`, `.+`)
}

// until waits for what the page says.
func (r *tutorial) until(want string, is func() string, pattern string) {
	r.tb.Helper()
	shown, deadline := regexp.MustCompile(pattern), time.Now().Add(patience)
	for got := is(); !shown.MatchString(got); got = is() {
		if time.Now().After(deadline) {
			r.tb.Fatalf("the page says:\n%s\nbut it is:\n%s\nThe controller printed:\n%s", want, got, r.log.String())
		}
		<-time.After(10 * time.Millisecond)
	}
}

// start runs the controller, until the test ends.
func (r *tutorial) start(text string) {
	r.tb.Helper()
	words := strings.Fields(text)
	require.Greater(r.tb, len(words), 3)
	require.Equal(r.tb, []string{"go", "run", "./examples/controller"}, words[:3])
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan int, 1)
	go func() { ended <- run(ctx, words[3:], &r.log, &r.log) }()
	r.stop = func() {
		r.mark = len(r.log.String())
		cancel()
		select {
		case code := <-ended:
			require.Zero(r.tb, code, "%s", r.log.String())
		case <-time.After(patience):
			r.tb.Fatalf("the controller does not end:\n%s", r.log.String())
		}
	}
	r.tb.Cleanup(func() {
		cancel()
		if r.tb.Failed() {
			select {
			case <-ended:
			case <-time.After(patience):
			}
		}
	})
}
