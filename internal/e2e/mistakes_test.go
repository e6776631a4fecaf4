package e2e

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"golang.org/x/sync/errgroup"
)

var (
	mistakesFor = flag.Duration("mistakes", 0, "how long each mistake of TestMistakes stands, under 300 requests a second; 0: a short form of it")
	// assertedWithin is for a machine that has much else to do; the table has the figures.
	assertedWithin     = flag.Duration("mistakeswithin", 5*time.Second, "how long TestMistakes waits for what is promised within 2s")
	mistakesController = flag.String("mistakescontroller", "", "controller that TestMistakes asks, such as one of before; empty: that of this tree")
)

// promisedWithin is when log, page, metrics and /readyz agree with what a client sees.
const promisedWithin = 2 * time.Second

// mistake is a row of the table: what somebody does wrong, and what must hold
// while it stands. SITE in its texts is the site that the mistake is made in.
type mistake struct {
	name  string
	plant func(sc *scene) // nil: see edit
	// edit is a text and what somebody writes in its place, in the manifests of the
	// site; more of them follow as further pairs.
	edit []string

	also func(sc *scene) error // what else holds meanwhile

	says []string // in one line of the log, and in one row of the page
	ends []string // in the line that says that it is mended, besides the words for that
	own  int      // how the site answers meanwhile; 0: with 200, and no request fails

	noSite  bool // it is made in no site
	tls     bool // the site is asked over HTTPS
	silent  bool // it is none that anybody must be told of, as it changes nothing
	unready bool // /readyz answers 503 meanwhile
	passing bool // it heals by itself, so soon that only the log tells of it
	outage  bool // it stops HAProxy itself: requests fail until that is back
	ended   bool // mending it is a new process, which knows of nothing that was wrong
	long    bool // too slow for the short form

	// within is when it is said, of what takes longer to find out than is promised.
	within time.Duration

	known string // why it does not hold, of one that does not
}

// group is mistakes that are made one after the other with one controller.
type group struct {
	name     string
	mistakes []mistake
	run      func(t *testing.T, b *board, g *group)
}

// groups are all of them, those that take longest first.
var groups = []group{
	{"manifests", manifestMistakes, runFolder},
	{"process", processMistakes, runProcess},
	{"resources", resourceMistakes, runResources},
	{"templates", templateMistakes, runTemplates},
	{"secrets", secretMistakes, runSecrets},
	{"cluster", clusterMistakes, runCluster},
	{"settings", settingsMistakes, runSettings},
	{"instances", instanceMistakes, runInstances},
	{"flags", nil, runFlags},
}

// mostGroups run at once: they wait, most of the time.
const mostGroups = 4

// board is the table that the test prints.
type board struct {
	mu   sync.Mutex
	rows []*row
}

// row is what became of a mistake.
type row struct {
	group, name       string
	named             string // the line that names the place
	others, own       tally
	said, recovered   time.Duration // 0: not at all
	notSaid, notAgain error
	lines             int // of the log, warnings and errors, while it stood
	problems          []string
	known             string
}

// tally counts requests.
type tally struct{ requests, failed int }

func (c tally) String() string {
	if c.requests == 0 {
		return "-"
	}
	return fmt.Sprintf("%d/%d", c.failed, c.requests)
}

func (r *row) problem(format string, args ...any) {
	r.problems = append(r.problems, fmt.Sprintf(format, args...))
}

// TestMistakes makes the mistakes of operators and tenants, one after the other,
// under a steady load of requests. Of each one the log, the page, the metrics and
// /readyz tell within seconds, it costs nobody else a request, and once it is mended
// all of them say so.
func TestMistakes(t *testing.T) {
	startBackends(t, backendPort)
	b := &board{}
	var lanes errgroup.Group
	lanes.SetLimit(mostGroups)
	for _, g := range groups {
		lanes.Go(func() error {
			t.Run(g.name, func(t *testing.T) { g.run(t, b, &g) })
			return nil
		})
	}
	_ = lanes.Wait()
	table := b.print()
	if testing.Verbose() {
		t.Logf("\n%s", table)
	}
	if file := os.Getenv("HAPTIC_MISTAKES_TABLE"); file != "" {
		if err := os.WriteFile(file, []byte(table), 0o600); err != nil {
			t.Error(err)
		}
	}
	b.failed(t)
}

// failed ends the output of a test that fails with one line for each row that does not
// hold: CI shows the end.
func (b *board) failed(t *testing.T) {
	for _, r := range b.rows {
		if len(r.problems) > 0 && r.known == "" {
			t.Logf("%s: %s: %s", r.group, r.name, cut(strings.Join(r.problems, "; "), 400))
		}
	}
}

// atTimes begins why a mistake is known that does not hold in each run.
const atTimes = "at times "

// add puts a row on the board and fails the test where a promise does not hold, or
// where one that is known not to hold does.
func (b *board) add(t *testing.T, r *row, m *mistake) {
	t.Helper()
	b.mu.Lock()
	b.rows = append(b.rows, r)
	b.mu.Unlock()
	r.known = m.known
	if t.Failed() {
		r.problem("it did not come to an end")
	}
	switch {
	case m.known == "":
		for _, p := range r.problems {
			t.Error(p)
		}
	case len(r.problems) == 0 && (*mistakesFor > 0 || strings.HasPrefix(m.known, atTimes)):
	case len(r.problems) == 0:
		t.Errorf("it holds now: remove known: %q", m.known)
	default:
		t.Logf("known, %s: %q", m.known, r.problems)
	}
}

// print makes the table, and how many rows each column holds in.
func (b *board) print() string {
	text := &strings.Builder{}
	w := tabwriter.NewWriter(text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "mistake\tplace named\tothers failed\tsite failed\tsaid within\trecovered within\tlines\t")
	var named, untouched, own, ownAll, inTime, again, ok int
	all := slices.SortedStableFunc(slices.Values(b.rows), func(x, y *row) int { return cmp.Compare(x.group, y.group) })
	for _, r := range all {
		says := "ok"
		if len(r.problems) > 0 {
			says = cut(strings.Join(r.problems, "; "), 160)
		}
		if r.known != "" {
			says = "known: " + r.known
		}
		fmt.Fprintf(w, "%s: %s\t%s\t%v\t%v\t%s\t%s\t%d\t%s\n", r.group, r.name, cut(r.named, 110), r.others, r.own,
			took(r.said), took(r.recovered), r.lines, says)
		named += one(r.named != "")
		untouched += one(r.others.failed == 0)
		if r.own.requests > 0 {
			ownAll++
			own += one(r.own.failed == 0)
		}
		inTime += one(r.notSaid == nil && r.said <= promisedWithin)
		again += one(r.notAgain == nil)
		ok += one(len(r.problems) == 0)
	}
	_ = w.Flush()
	n := len(all)
	fmt.Fprintf(text, "\n%d mistakes: place named %d, others untouched %d, its own site untouched %d of %d, said within %v %d, recovered and said so %d, all of it %d\n",
		n, named, untouched, own, ownAll, promisedWithin, inTime, again, ok)
	return text.String()
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}

func took(d time.Duration) string {
	if d == 0 {
		return "-"
	}
	return d.Round(10 * time.Millisecond).String()
}

// cut is the beginning of a text, in one line.
func cut(text string, most int) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}
