package e2e

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// stage is a controller that mistakes are made with.
type stage struct {
	t         *testing.T
	b         *board
	group     string
	c         *controller
	manifest  manifests // of a folder; empty for others
	templates string    // "": those that are built in
	bin       string    // folder of a haproxy that can hang, "" for none
	plain     *visitor
	secure    *visitor // nil: HTTPS is not asked
	others    []*traffic

	kube     *kube   // of a cluster
	api      *badAPI // of an instance behind a Dataplane API
	settings string  // file of those
}

// scene is a mistake under way.
type scene struct {
	*stage
	t    *testing.T
	site string
	line int      // of the settings that is wrong
	undo []func() // what mend does, the last one first
}

// mark is where what is logged from now on begins. What makes or mends a mistake may
// start another process, whose log is its own.
func (sc *scene) mark() func() string {
	out, mark := sc.c.out, sc.c.out.Len()
	return func() string {
		if sc.c.out == out {
			return out.After(mark)
		}
		return sc.c.out.String()
	}
}

// siteOf names the site of mistake i.
func siteOf(i int) string { return fmt.Sprintf("site%02d", i) }

// runAll makes all mistakes of the group.
func (s *stage) runAll(g *group) {
	for i := range g.mistakes {
		m := &g.mistakes[i]
		if m.long && *mistakesFor == 0 {
			continue
		}
		s.t.Run(m.name, func(t *testing.T) {
			if s.c.ended() != nil {
				must(t, s.c.again())
				s.c.awaitReady(patience)
			}
			s.measure(t, m, siteOf(i))
		})
	}
	for _, tr := range s.others {
		tr.stop()
	}
}

// measure makes a mistake, mends it, and sees what log, page, metrics, /readyz and
// clients say of it.
func (s *stage) measure(t *testing.T, m *mistake, site string) {
	sc := &scene{stage: s, t: t, site: site}
	defer sc.mend()
	r := &row{group: s.group, name: m.name}
	defer s.b.add(t, r, m)
	var own *traffic
	if !m.noSite {
		s.await(t, "the site is served before", sc.answers(m, http.StatusOK))
		if m.own == 0 {
			own = startTrafficAt(t, sc.visitor(m), sc.host(), s.rate()/4)
			eventually(t, "requests are answered", own.keepsFlowing(3))
		}
	}
	others := s.tally()
	before, since, start := s.look(), sc.mark(), time.Now()

	m.make(sc)
	r.notSaid = sc.note(&r.said, m, start, func() error { return sc.stands(m, r, since(), before) })
	time.Sleep(*mistakesFor)
	s.flow(t, own, m)
	if r.notSaid == nil && !m.outage {
		if err := sc.stands(m, r, since(), before); err != nil {
			r.problem("it does not last: %v", err)
		}
	}
	if r.notSaid != nil {
		r.problem("within %v: %v", max(*assertedWithin, m.within), r.notSaid)
	}
	r.lines = warnings(since())
	if most := 3 + int(math.Log2(1+time.Since(start).Seconds())); r.lines > most {
		r.problem("%d lines of the log, more than %d: %s", r.lines, most, cut(since(), 600))
	}

	since, start = sc.mark(), time.Now()
	sc.mend()
	r.notAgain = sc.note(&r.recovered, m, start, func() error { return sc.mended(m, since(), before) })
	if r.notAgain != nil {
		r.problem("after it was mended: %v", r.notAgain)
	}
	s.flow(t, own, m)
	r.others = s.tally().minus(others)
	if own != nil {
		own.stop()
		r.own = tally{own.requests, own.failures}
		if own.failures > 0 && !m.outage {
			r.problem("%d of %d requests to its own site failed: %s", own.failures, own.requests, cut(own.examples[0], 120))
		}
	}
	if r.others.failed > 0 && !m.outage {
		r.problem("%d of %d requests of others failed: %s", r.others.failed, r.others.requests, s.example())
	}
}

// mend takes back what was made, once.
func (sc *scene) mend() {
	undo := sc.undo
	sc.undo = nil
	for _, f := range slices.Backward(undo) {
		f()
	}
}

// await waits for what is so before a mistake is made. What the one before left is no
// fault of this one: the controller starts anew.
func (s *stage) await(t *testing.T, what string, check func() error) {
	t.Helper()
	if err := poll(t.Context(), *assertedWithin, check); err == nil {
		return
	}
	t.Logf("starting again until %s", what)
	s.c.stop()
	must(t, s.c.again())
	eventually(t, what, check)
}

// note notes when a condition holds, and returns why it does not in time.
func (sc *scene) note(took *time.Duration, m *mistake, start time.Time, check func() error) error {
	limit := max(*assertedWithin, *mistakesFor, m.within)
	if m.known != "" && *mistakesFor == 0 {
		limit = promisedWithin
	}
	if err := poll(sc.t.Context(), limit, check); err != nil {
		return err
	}
	*took = time.Since(start)
	return nil
}

// make makes the mistake.
func (m *mistake) make(sc *scene) {
	if m.plant != nil {
		m.plant(sc)
		return
	}
	sc.edit(m.edit...)
}

// rate is how many requests a second are made of others.
func (s *stage) rate() int {
	if *mistakesFor > 0 {
		return 300
	}
	return 80
}

// startOthers begins the load.
func (s *stage) startOthers(host string) {
	if s.secure == nil {
		s.others = append(s.others, startTrafficAt(s.t, s.plain, host, s.rate()))
		return
	}
	s.others = append(s.others, startTrafficAt(s.t, s.plain, host, s.rate()*3/4), startTrafficAt(s.t, s.secure, host, s.rate()/4))
}

func (s *stage) tally() (sum tally) {
	for _, tr := range s.others {
		tr.mu.Lock()
		sum.requests, sum.failed = sum.requests+tr.requests, sum.failed+tr.failures
		tr.mu.Unlock()
	}
	return sum
}

func (c tally) minus(o tally) tally { return tally{c.requests - o.requests, c.failed - o.failed} }

func (s *stage) example() string {
	for _, tr := range s.others {
		tr.mu.Lock()
		defer tr.mu.Unlock()
		if len(tr.examples) > 0 {
			return cut(tr.examples[len(tr.examples)-1], 160)
		}
	}
	return ""
}

// flow waits until so many requests were made that they prove something.
func (s *stage) flow(t *testing.T, own *traffic, m *mistake) {
	if m.outage {
		return
	}
	goal := s.tally().requests + 12
	eventually(t, "there is traffic", func() error {
		if n := s.tally().requests; n < goal {
			return fmt.Errorf("%d requests, waiting for %d", n, goal)
		}
		return nil
	})
	if own != nil {
		own.mu.Lock()
		goal := own.requests + 3
		own.mu.Unlock()
		eventually(t, "there is traffic of the site", own.reaches(goal))
	}
}

func (sc *scene) host() string { return sc.site + ".test" }

func (sc *scene) visitor(m *mistake) *visitor {
	if m.tls {
		return sc.secure
	}
	return sc.plain
}

// unknownName is in place of a status: HAProxy has no certificate for the name.
const unknownName = -1

func (sc *scene) answers(m *mistake, status int) func() error {
	if status != unknownName {
		return sc.visitor(m).expectStatus(sc.host(), "/", status)
	}
	return func() error {
		a, err := sc.visitor(m).get(sc.host(), "/")
		if err != nil && strings.Contains(err.Error(), "unrecognized name") {
			return nil
		}
		return fmt.Errorf("%s: got %d, %w, want no certificate", sc.host(), a.status, err)
	}
}

// stands is a condition: all of the controller and the clients of the site say that
// the mistake is there.
func (sc *scene) stands(m *mistake, r *row, lines string, before view) error {
	var errs []error
	if !m.noSite && !m.passing {
		if err := sc.answers(m, cmp.Or(m.own, http.StatusOK))(); err != nil {
			errs = append(errs, fmt.Errorf("client: %w", err))
		}
	}
	if m.also != nil {
		if err := m.also(sc); err != nil {
			errs = append(errs, fmt.Errorf("client: %w", err))
		}
	}
	if m.silent {
		return errors.Join(errs...)
	}
	says := sc.words(m.says)
	if line := find(strings.Split(lines, "\n"), says); line != "" {
		r.named = message(line)
	} else {
		errs = append(errs, fmt.Errorf("log: no line has all of %q, but: %s", says, cut(warned(lines), 400)))
	}
	if m.passing {
		return errors.Join(errs...)
	}
	now, err := sc.c.view()
	if err != nil {
		return errors.Join(append(errs, err)...)
	}
	if find(now.rows, says) == "" {
		errs = append(errs, fmt.Errorf("page: no row has all of %q", says))
	}
	if now.title == allWell {
		errs = append(errs, errors.New("page: "+allWell))
	}
	if now.failed <= before.failed {
		errs = append(errs, errors.New("metrics: none says that something is wrong"))
	}
	if now.ready == m.unready {
		errs = append(errs, fmt.Errorf("/readyz: ready is %v", now.ready))
	}
	return errors.Join(errs...)
}

// again are the words for what is in order again, one of which the line has.
var again = []string{"in order again", "no longer refused", "released from quarantine", "answers again", "HAProxy started", "deployed, after"}

// mended is a condition: all of the controller and the clients of the site say that
// the mistake is there no more.
func (sc *scene) mended(m *mistake, lines string, before view) error {
	var errs []error
	if !m.noSite {
		if err := sc.answers(m, http.StatusOK)(); err != nil {
			errs = append(errs, fmt.Errorf("client: %w", err))
		}
	}
	if m.silent {
		return errors.Join(errs...)
	}
	said := m.ended || m.passing
	for _, word := range again {
		said = said || find(strings.Split(lines, "\n"), append(sc.words(m.ends), word)) != ""
	}
	if !said {
		errs = append(errs, fmt.Errorf("log: no line says that it is %s, with %q, but: %s", again[0], sc.words(m.ends), cut(lines, 400)))
	}
	now, err := sc.c.view()
	if err != nil {
		return errors.Join(append(errs, err)...)
	}
	if row := find(now.rows, sc.words(m.says)); row != "" {
		errs = append(errs, fmt.Errorf("page: %s", cut(row, 200)))
	}
	if now.failed > before.failed {
		errs = append(errs, fmt.Errorf("metrics: %v are wrong, %v were", now.failed, before.failed))
	}
	if now.ready != before.ready {
		errs = append(errs, fmt.Errorf("/readyz: ready is %v", now.ready))
	}
	return errors.Join(errs...)
}
