package observe

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hapticsdk/haptic/reconcile"
)

//go:embed page.html
var pageHTML string

//go:embed page.css
var pageCSS string

// Bounds of the page, which is to be read at a glance; the variables have it all.
const (
	rowsOnPage    = 50
	plansOnPage   = 6
	linesOfPlan   = 14
	eventsOnPage  = 40
	defaultReload = 10 // seconds
)

// pageData is what the page shows.
type pageData struct {
	CSS      template.CSS
	Now      string
	Reload   int // in seconds, 0 for never
	Verdict  verdict
	Figures  []figure
	Problems []problemRow

	Instances   []instanceRow
	Quarantined []quarantineRow
	Refused     []reconcile.Refusal
	Plans       []planRow
	Watches     []watchRow
	Events      []eventRow
	More        map[string]int // rows that are not shown, by section
	Settings    *settingsInfo
	Vars        []string

	Version, Go, Leader, Uptime string
	Leading                     bool
}

// verdict is the one line that says how things are.
type verdict struct {
	Class, Title, Text string // Class is "good", "warn" or "bad"
}

type figure struct{ Name, Value, Note, Class string }

type problemRow struct{ Class, Component, Text string }

type instanceRow struct {
	Class, Name, Status, Hash, Deployed, Stale, Error string
	Reloads, Commands                                 uint64
}

type quarantineRow struct{ Resource, Source, Message, Template, Since, Retry string }

type planRow struct {
	Class, Instance, Summary, Text, When, Took, Error string
	Reconciliation                                    uint64
}

type watchRow struct {
	Class, Name, State, Since, Error string
	Objects                          int
}

type eventRow struct {
	Class, Time, Level, Name, Text, Instance string
	Reconciliation                           uint64
}

// page answers with the state at a glance. It has no script, loads nothing, and
// says so to the browser.
func (o *Observer) page(w http.ResponseWriter, r *http.Request, vars []string) {
	reload := defaultReload
	if n, err := strconv.Atoi(r.URL.Query().Get("reload")); err == nil && n >= 0 && n <= 3600 {
		reload = n
	}
	page, err := template.New("page").Parse(pageHTML)
	var buf bytes.Buffer
	if err == nil {
		err = safely(func() error { return page.Execute(&buf, o.pageData(time.Now(), reload, vars)) })
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	sum := sha256.Sum256([]byte(pageCSS))
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+
		"'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	_, _ = w.Write(buf.Bytes())
}

func (o *Observer) pageData(now time.Time, reload int, vars []string) *pageData {
	d := &pageData{CSS: template.CSS(pageCSS), Now: now.Format("2006-01-02 15:04:05 MST"), Reload: reload, More: map[string]int{},
		Version: o.subject.version(), Go: o.subject.buildInfo().Go, Leader: o.history.leads(), Uptime: brief(now.Sub(o.started).Round(time.Second)),
		Vars: vars}
	var s reconcile.State
	if o.subject.Loop != nil {
		s = o.subject.Loop.State()
	}
	d.Leading = s.Leading
	findings := o.Health.All()
	for _, f := range findings {
		if f.Err != nil && f.Component != "instances" && f.Component != "quarantine" { // those have sections of their own
			d.Problems = append(d.Problems, problemRow{classOf(f.Probe), f.Component, f.Err.Error()})
		}
	}
	d.fill(s, now)
	d.plans(o.history.lastPlans(), now)
	if o.subject.Settings != nil {
		info := infoOf(o.subject.Settings())
		d.Settings = &info
	}
	d.watches(o.subject, now)
	d.events(o.history.ring.Last(eventsOnPage))
	d.Verdict = judge(s, findings)
	d.Figures = figures(s, now)
	return d
}

func classOf(p Probe) string {
	if p == Reported {
		return "warn"
	}
	return "bad"
}

// judge says in a line how things are: what is worst first.
func judge(s reconcile.State, findings []Finding) verdict {
	switch {
	case failing(findings, Live) != nil:
		return verdict{"bad", "Stalled", "a component makes no progress"}
	case s.LastError != "" && s.Validated != "":
		return verdict{"bad", "Last good configuration", "the newest one failed, the one before stays deployed"}
	case failing(findings, ReadyToServe) != nil:
		return verdict{"warn", "Not ready", "something is not there yet"}
	case failing(findings, Reported) != nil || len(s.Refused) > 0:
		return verdict{"warn", "Serving", "with something to look at"}
	case !s.Leading:
		return verdict{"good", "Standing by", "another process leads; this one is ready to take over"}
	case len(s.Instances) == 0:
		return verdict{"warn", "Nobody to serve with", "no HAProxy is known to deploy to"}
	}
	return verdict{"good", "All is well", "every HAProxy has the newest valid configuration"}
}

func figures(s reconcile.State, now time.Time) []figure {
	stale := 0
	for _, e := range s.Instances {
		if !e.StaleSince.IsZero() || e.Hash == "" {
			stale++
		}
	}
	up := figure{"Instances up to date", strconv.Itoa(len(s.Instances)-stale) + " / " + strconv.Itoa(len(s.Instances)), "have the newest configuration", "good"}
	if stale > 0 && s.Leading {
		up.Class = "bad"
	}
	validated := figure{Name: "Configuration", Value: "none yet", Class: "warn"}
	if s.Validated != "" {
		validated = figure{"Configuration", short(s.Validated), "valid " + ago(s.ValidatedAt, now) + ", #" + strconv.FormatUint(s.Reconciliation, 10), "good"}
	}
	quarantined := figure{"In quarantine", strconv.Itoa(len(s.Quarantined)), "left out as a whole", "good"}
	if len(s.Quarantined) > 0 {
		quarantined.Class = "bad"
	}
	refused := figure{"Refused", strconv.Itoa(len(s.Refused)), "left out in part", "good"}
	if len(s.Refused) > 0 {
		refused.Class = "warn"
	}
	return []figure{up, validated, quarantined, refused}
}

// fill shows what the loop knows: what is in trouble first.
func (d *pageData) fill(s reconcile.State, now time.Time) {
	instances := slices.Clone(s.Instances)
	slices.SortStableFunc(instances, func(a, b reconcile.InstanceState) int {
		return cmp.Or(-cmp.Compare(truth(a.Error != ""), truth(b.Error != "")), -cmp.Compare(stale(a, now), stale(b, now)))
	})
	for _, e := range d.first("instances", len(instances)) {
		d.Instances = append(d.Instances, rowOf(instances[e], s, now))
	}
	for _, i := range d.first("quarantine", len(s.Quarantined)) {
		q := s.Quarantined[i]
		row := quarantineRow{Resource: q.Resource.String(), Source: q.Resource.Source, Message: q.Fault.Message, Since: ago(q.Since, now), Retry: in(q.RetryAt, now)}
		if q.Fault.Template.File != "" {
			row.Template = q.Fault.Template.String()
		}
		d.Quarantined = append(d.Quarantined, row)
	}
	for _, i := range d.first("refused", len(s.Refused)) {
		d.Refused = append(d.Refused, s.Refused[i])
	}
	if s.LastError != "" {
		d.Problems = slices.Insert(d.Problems, 0, problemRow{"bad", "last reconciliation, " + ago(s.LastErrorAt, now), s.LastError})
	}
}

// first returns the indexes of the rows to show, and counts the others.
func (d *pageData) first(section string, n int) []int {
	shown := min(n, rowsOnPage)
	if n > shown {
		d.More[section] = n - shown
	}
	rows := make([]int, shown)
	for i := range rows {
		rows[i] = i
	}
	return rows
}

func rowOf(e reconcile.InstanceState, s reconcile.State, now time.Time) instanceRow {
	row := instanceRow{Class: "good", Name: e.Name, Status: "up to date", Hash: short(e.Hash), Deployed: ago(e.DeployedAt, now),
		Error: e.Error, Reloads: e.Reloads, Commands: e.Commands}
	switch {
	case e.Error != "":
		row.Class, row.Status = "bad", "failed "+times(e.Failures)
		if !e.RetryAt.IsZero() {
			row.Status += ", next try " + in(e.RetryAt, now)
		}
	case !s.Leading:
		row.Class, row.Status = "idle", "left to the leader"
	case e.Hash == "":
		row.Class, row.Status = "warn", "first deployment"
	case !e.StaleSince.IsZero():
		row.Class, row.Status = "warn", "behind"
	}
	if !e.StaleSince.IsZero() {
		row.Stale = brief(stale(e, now).Round(time.Second))
	}
	return row
}

func (d *pageData) plans(plans []planEntry, now time.Time) {
	for _, p := range plans[:min(len(plans), plansOnPage)] {
		row := planRow{Class: "good", Instance: p.Instance, Summary: p.Summary, When: ago(p.Time, now), Took: brief(p.Took),
			Error: p.Error, Reconciliation: p.Reconciliation}
		switch {
		case p.Error != "":
			row.Class, row.Summary = "bad", "failed"
			if p.Plan != nil {
				row.Summary += "; " + p.Summary
			}
		case p.Drift || p.Fallback != "":
			row.Class = "warn"
		}
		lines := strings.Split(strings.TrimSpace(p.Plan.String()), "\n")
		if len(lines) > linesOfPlan {
			lines = append(lines[:linesOfPlan], "... "+count(len(lines)-linesOfPlan, "more line"))
		}
		row.Text = strings.Join(lines, "\n")
		d.Plans = append(d.Plans, row)
	}
	if more := len(plans) - plansOnPage; more > 0 {
		d.More["plans"] = more
	}
}

func (d *pageData) watches(s *Subject, now time.Time) {
	infos := s.watchInfos()
	names := slices.Sorted(maps.Keys(infos))
	for _, i := range d.first("watches", len(names)) {
		w := infos[names[i]]
		row := watchRow{Class: "good", Name: names[i], State: w.State, Since: ago(w.Since, now), Objects: w.Objects, Error: w.Error}
		switch {
		case w.State != "Synced" && !w.Synced:
			row.Class = "bad"
		case w.State != "Synced":
			row.Class = "warn"
		}
		d.Watches = append(d.Watches, row)
	}
}

// events shows them, the newest first.
func (d *pageData) events(entries []entry) {
	for _, e := range slices.Backward(entries) {
		class := map[string]string{"ERROR": "bad", "WARN": "warn"}[e.Level]
		d.Events = append(d.Events, eventRow{Class: class, Time: e.Time.Format("15:04:05"), Level: strings.ToLower(e.Level), Name: e.Event,
			Text: e.Text, Instance: e.Instance, Reconciliation: e.Reconciliation})
	}
}

// ago says how long something is past.
func ago(at, now time.Time) string {
	if at.IsZero() {
		return "never"
	}
	return span(now.Sub(at)) + " ago"
}

// in says when something is to come.
func in(at, now time.Time) string {
	if !at.After(now) {
		return "now"
	}
	return "in " + span(at.Sub(now))
}

// span is a length of time with one unit.
func span(d time.Duration) string {
	for _, u := range []struct {
		of   time.Duration
		name string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "min"}, {time.Second, "s"}} {
		if d >= u.of {
			return strconv.Itoa(int(d/u.of)) + " " + u.name
		}
	}
	return "0 s"
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

func short(hash string) string { return hash[:min(len(hash), 8)] }
