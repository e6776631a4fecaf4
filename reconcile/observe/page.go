package observe

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"maps"
	"net/http"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/hapticsdk/haptic/internal/panics"
	"github.com/hapticsdk/haptic/internal/phrase"
	"github.com/hapticsdk/haptic/internal/printable"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/settings"
)

//go:embed page.html
var pageHTML string

//go:embed page.css
var pageCSS string

// Bounds of the page, which people read at a glance. The variables show everything. page.html
// has the bounds of its tables.
const (
	linesOfPlan   = 14
	eventsOnPage  = 40
	defaultReload = 10 // seconds
)

// pageData is the input of page.html.
type pageData struct {
	CSS      template.CSS
	Now      time.Time
	Reload   int // in seconds, 0 for never
	Verdict  verdict
	Figures  []figure
	Problems []problemRow

	// Resources with one cause are one row.
	Quarantined, Refused, Warned []resourceRow

	State    reconcile.State // instances in trouble come first
	Plans    []planEntry
	Watches  []watchRow // by name
	Events   []entry    // the newest first
	Settings *settings.State
	Vars     []string

	Version, Go, Leader, Uptime string
}

// verdict is a one-line judgement.
type verdict struct {
	Class, Title, Text string // Class is "good", "warn", "bad" or "idle"
}

type figure struct{ Name, Value, Note, Class string }

type problemRow struct{ Class, Component, Text string }

type resourceRow struct {
	Name, Source, Field, Text string
	More                      int // refusals that are counted and not shown
	Of                        reconcile.Quarantined
}

type watchRow struct {
	Name string
	watchInfo
}

// page answers with the state at a glance. The page has no script and loads nothing, and its
// headers make the browser enforce that.
func (o *Observer) page(w http.ResponseWriter, r *http.Request, vars []string) {
	reload := defaultReload
	if n, err := strconv.Atoi(r.URL.Query().Get("reload")); err == nil && n >= 0 && n <= 3600 {
		reload = n
	}
	d := o.pageData(time.Now(), reload, vars)
	page, err := template.New("page").Funcs(d.funcs()).Parse(pageHTML)
	var buf bytes.Buffer
	if err == nil {
		err = panics.Guard(func() error { return page.Execute(&buf, d) })
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
	_, _ = io.WriteString(w, printable.Text(buf.String()))
}

func (o *Observer) pageData(now time.Time, reload int, vars []string) *pageData {
	s := o.subject.state()
	s.Instances = slices.SortedStableFunc(slices.Values(s.Instances), func(a, b reconcile.InstanceState) int {
		return cmp.Or(-cmp.Compare(truth(a.Error != ""), truth(b.Error != "")), -cmp.Compare(stale(a, now), stale(b, now)))
	})
	d := &pageData{CSS: template.CSS(pageCSS), Now: now, Reload: reload, State: s, Plans: o.history.lastPlans(),
		Events: o.history.ring.Last(eventsOnPage), Settings: o.subject.settings(), Vars: vars,
		Version: o.subject.version(), Go: runtime.Version(), Leader: o.history.leads(), Uptime: brief(now.Sub(o.started).Round(time.Second))}
	slices.Reverse(d.Events)
	if s.LastError != "" {
		d.Problems = append(d.Problems, problemRow{"bad", "last reconciliation, " + d.ago(s.LastErrorAt), s.LastError})
	}
	findings := o.Health.findings()
	for _, f := range findings {
		if f.Error != "" && !slices.Contains([]string{"newest", "instances", "quarantine"}, f.Component) { // these have their own sections
			class := "bad"
			if f.Probe == Reported {
				class = "warn"
			}
			d.Problems = append(d.Problems, problemRow{class, f.Component, f.Error})
		}
	}
	d.resources()
	infos := o.subject.watchInfos()
	for _, name := range slices.Sorted(maps.Keys(infos)) {
		d.Watches = append(d.Watches, watchRow{name, infos[name]})
	}
	d.Verdict, d.Figures = judge(s, findings), d.figures()
	return d
}

// resources makes the rows of quarantined, refused and warned resources.
func (d *pageData) resources() {
	for i, a := range reconcile.AlikeQuarantined(d.State.Quarantined) {
		if q := d.State.Quarantined[i]; !a.Told {
			d.Quarantined = append(d.Quarantined, resourceRow{Name: a.Of(q.Resource.String()), Source: q.Resource.Source, Text: q.Fault.Message, Of: q})
		}
	}
	for i, a := range reconcile.AlikeRefusals(d.State.Refused) {
		if r := d.State.Refused[i]; !a.Told {
			rows := &d.Refused
			if r.Warning {
				rows = &d.Warned
			}
			*rows = append(
				*rows,
				resourceRow{Name: a.Of(r.Resource), Source: r.Source, Field: r.Field, Text: strings.TrimSuffix(r.Reason+"; "+r.Detail, "; "), More: r.More},
			)
		}
	}
}

// judge returns one verdict, the worst that applies. All is well only if no check fails, no
// resource is refused or warned of, and every instance is up to date.
func judge(s reconcile.State, findings []finding) verdict {
	look := failingNames(findings, Reported)
	refused, warned := countResources(s.Refused)
	if refused > 0 {
		look = append(look, fmt.Sprintf("%d refused", refused))
	}
	if warned > 0 {
		look = append(look, fmt.Sprintf("%d warned of", warned))
	}
	waits := slices.ContainsFunc(s.Instances, func(e reconcile.InstanceState) bool { return e.Waits != "" })
	if waits {
		look = append(look, "a reload waits")
	}
	live, ready := failingNames(findings, Live), failingNames(findings, ReadyToServe)
	switch {
	case len(live) > 0:
		return verdict{"bad", "Stalled", "a component makes no progress: " + strings.Join(live, ", ")}
	case s.LastError != "" && s.Validated != "":
		return verdict{"bad", "Last good configuration", "the newest one failed, the one before stays deployed"}
	case s.Validated != "" && s.Leading && len(s.Instances) == 0:
		return verdict{"warn", "No instance to serve with", "no HAProxy is known to deploy to"}
	case len(ready) > 0:
		return verdict{"warn", "Not ready", "something is not there: " + strings.Join(ready, ", ")}
	case len(look) > 0:
		return verdict{"warn", "Serving", "with something to look at: " + strings.Join(look, ", ")}
	case !s.Leading:
		return verdict{"good", "Standing by", "another process leads; this one is ready to take over"}
	case slices.ContainsFunc(s.Instances, func(e reconcile.InstanceState) bool { return !e.StaleSince.IsZero() }):
		return verdict{"good", "Deploying", "an instance gets the newest configuration now"}
	}
	return verdict{"good", "All is well", "every instance has the newest valid configuration"}
}

// failingNames returns the failing components of one probe.
func failingNames(all []finding, p Probe) (names []string) {
	for _, f := range all {
		if f.Probe == p && f.Error != "" {
			names = append(names, f.Component)
		}
	}
	return names
}

// countResources counts refused resources, and resources with only a warning.
func countResources(all []reconcile.Refusal) (refused, warned int) {
	seen := map[reconcile.Refusal]bool{}
	for _, r := range all {
		is := reconcile.Refusal{Resource: r.Resource, Warning: r.Warning}
		if seen[is] {
			continue
		}
		seen[is] = true
		if r.Warning {
			warned++
		} else {
			refused++
		}
	}
	return refused, warned
}

func (d *pageData) figures() []figure {
	s, behind := d.State, 0
	for _, e := range s.Instances {
		if !e.StaleSince.IsZero() || e.Hash == "" {
			behind++
		}
	}
	// class is "good" if n is 0.
	class := func(n int, otherwise string) string {
		if n == 0 {
			return "good"
		}
		return otherwise
	}
	up := figure{"Instances up to date", fmt.Sprintf("%d / %d", len(s.Instances)-behind, len(s.Instances)), "have the newest configuration", "good"}
	if s.Leading {
		up.Class = class(behind, "bad")
	}
	validated := figure{Name: "Configuration", Value: "none yet", Class: "warn"}
	if s.Validated != "" {
		validated = figure{"Configuration", phrase.Short(s.Validated), fmt.Sprintf("valid %s, #%d", d.ago(s.ValidatedAt), s.Reconciliation), "good"}
	}
	refused, warned := countResources(s.Refused)
	left := figure{"Refused", strconv.Itoa(refused), "left out by a rule", class(refused+warned, "warn")}
	if warned > 0 {
		left.Note += fmt.Sprintf("; %d served with a warning", warned)
	}
	return []figure{up, validated,
		{"In quarantine", strconv.Itoa(len(s.Quarantined)), "as they were, or left out", class(len(s.Quarantined), "bad")}, left}
}

// funcs returns the functions of page.html.
func (d *pageData) funcs() template.FuncMap {
	return template.FuncMap{
		"ago": d.ago, "in": d.in, "brief": brief, "short": phrase.Short, "status": d.status, "planText": planText,
		"behind": func(e reconcile.InstanceState) string { return brief(stale(e, d.Now).Round(time.Second)) },
		// first returns the first n of a list, and more the number of the others.
		"first": func(n int, list any) any {
			v := reflect.ValueOf(list)
			return v.Slice(0, min(n, v.Len())).Interface()
		},
		"more": func(n int, list any) int { return max(0, reflect.ValueOf(list).Len()-n) },
	}
}

// status returns the verdict on an instance.
func (d *pageData) status(e reconcile.InstanceState) verdict {
	switch {
	case e.Error != "":
		v := verdict{Class: "bad", Title: "failed " + times(e.Failures)}
		if !e.RetryAt.IsZero() {
			v.Title += ", next try " + d.in(e.RetryAt)
		}
		return v
	case !d.State.Leading:
		return verdict{Class: "idle", Title: "left to the leader"}
	case e.Waits != "":
		return verdict{Class: "warn", Title: e.Waits}
	case e.Hash == "":
		return verdict{Class: "warn", Title: "first deployment"}
	case !e.StaleSince.IsZero():
		return verdict{Class: "warn", Title: "behind"}
	}
	return verdict{Class: "good", Title: "up to date"}
}

// planText returns a plan, cut to a few lines.
func planText(p planEntry) string {
	lines := strings.Split(strings.TrimSpace(p.Plan.String()), "\n")
	if more := len(lines) - linesOfPlan; more > 0 {
		lines = append(lines[:linesOfPlan], fmt.Sprintf("... and %d more", more))
	}
	return strings.Join(lines, "\n")
}

// ago returns how long ago a time was.
func (d *pageData) ago(at time.Time) string {
	if at.IsZero() {
		return "never"
	}
	return duration.HumanDuration(d.Now.Sub(at)) + " ago"
}

// in returns how far away a time is.
func (d *pageData) in(at time.Time) string {
	if !at.After(d.Now) {
		return "now"
	}
	return "in " + duration.HumanDuration(at.Sub(d.Now))
}
