package annotation

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// HAProxy and NGINX are the prefixes of haproxytech's controller and of ingress-nginx.
// Other is a second prefix of haproxytech, for the same names.
const HAProxy, NGINX, Other = "haproxy.org/", "nginx.ingress.kubernetes.io/", "haproxy.com/"

// MaxGuessed bounds the annotations of an object for which Read compares unknown names
// with known ones.
const MaxGuessed = 100

// Kind is the kind of an object with annotations.
type Kind string

// The kinds of objects whose annotations are read.
const (
	Ingress Kind = "Ingress"
	Service Kind = "Service"
)

// Row is an annotation of the table.
type Row struct {
	// HAProxy and NGINX are its names behind the prefixes, separated by spaces. If
	// HAProxy is "", the prefix of haproxytech takes the names of NGINX too. "-" means
	// that there is none.
	HAProxy, NGINX string

	Value   string // its type, in words
	Needs   string // it does nothing without one of these annotations
	Service bool   // a Service may have it too, and overrides the Ingress
	Becomes string // what it does
	Differs string // how it differs from the other controllers; "": it does not
	Refused string // why it is refused, and what to do; then all else is empty
	Ignored string // why it does nothing, and is not needed
	Closes  bool   // without it something would be open: if it is refused, paths get 503

	set      func(r *reader, v value) (problem string)
	off      func(r *reader) // undoes related options if it is refused
	closesOn *regexp.Regexp  // a refused one closes if its value matches
	always   bool            // refused even if its value is "false" or "off"
	secret   bool            // it names a Secret

	ofService bool // other controllers take it on a Service; there it closes if Closes is set
}

// Problem is a mistake in an annotation.
type Problem struct {
	Name    string // with its prefix
	Reason  string
	Warning bool // nothing is refused
	Row     *Row // nil: it is unknown
}

// Field returns the place of the annotation in its object.
func (p *Problem) Field() string { return "metadata.annotations[" + p.Name + "]" }

// reader collects options.
type reader struct {
	Options
	longest  time.Duration // of timeouts
	burst    int
	perS     int
	authType bool
	period   string
	answer   string // name of the row that set Answer

	canaryOff bool // it is a canary, and its part is unknown
	problems  []Problem
	row       *Row
	name      string
}

// refuse notes that an annotation has no effect.
func (r *reader) refuse(row *Row, name, reason string) { r.refuseAs(row, name, reason, row.Closes) }

func (r *reader) refuseAs(row *Row, name, reason string, closes bool) {
	if closes {
		r.Closed = true
		reason += "; the paths of the Ingress answer 503 until it is right, because they would be open without it"
	}
	r.problems = append(r.problems, Problem{Name: name, Reason: reason, Row: row})
}

func (r *reader) warn(row *Row, name, reason string) {
	r.problems = append(r.problems, Problem{Name: name, Reason: reason, Row: row, Warning: true})
}

// given is an annotation with one of the prefixes.
type given struct {
	name string
	row  int // -1: it is unknown
	value
}

// Has reports whether there is an annotation with one of the prefixes.
func Has(annotations map[string]string) bool {
	for name := range annotations {
		if isOurs(name) {
			return true
		}
	}
	return false
}

func isOurs(name string) bool { return strings.HasPrefix(name, NGINX) || isHAProxy(name) }

func isHAProxy(name string) bool {
	return strings.HasPrefix(name, HAProxy) || strings.HasPrefix(name, Other)
}

// Given returns the name under which an object has an annotation. of is any name of its
// row, see [Of]. "": the object does not have it.
func Given(annotations map[string]string, of string) (given string) {
	row := Of(of)
	for name := range annotations {
		if row != nil && isOurs(name) && Of(name) == row && (given == "" || name < given) {
			given = name
		}
	}
	return given
}

// Secrets returns the values of the annotations that name Secrets, good or bad, in the order of
// the table. Other annotations may make them useless.
func Secrets(annotations map[string]string) (all []string) {
	if !Has(annotations) {
		return nil
	}
	for _, g := range ours(annotations) {
		if g.row >= 0 && table[g.row].secret {
			all = append(all, g.text)
		}
	}
	return all
}

// UsesRegex reports whether annotations of an Ingress make its paths patterns.
func UsesRegex(annotations map[string]string) bool {
	if !Has(annotations) {
		return false
	}
	o, _ := Read(Ingress, annotations, Options{})
	return o.Regex
}

// Read returns the options that the annotations of an object ask for, and their problems. For
// a Service, base has the options of an Ingress, and the Service adds to them.
func Read(of Kind, annotations map[string]string, base Options) (Options, []Problem) {
	return Reader{}.Read(of, annotations, base)
}

// Read is [Read] with what the operator allows.
func (allowed Reader) Read(of Kind, annotations map[string]string, base Options) (Options, []Problem) {
	r := &reader{Options: base, longest: cmp.Or(allowed.LongestTimeout, UsualTimeout)}
	all := ours(annotations)
	for i, g := range all {
		switch {
		case g.row < 0:
			r.problems = append(r.problems, Problem{Name: g.name, Reason: unknown(g.name, len(all) <= MaxGuessed), Warning: true})
			continue
		case i+1 < len(all) && all[i+1].row == g.row && table[g.row].set != nil:
			r.warn(&table[g.row], g.name, fmt.Sprintf("%s sets the same option, and that one counts: remove one of them", all[i+1].name))
			continue
		}
		r.read(of, g)
	}
	if of == Ingress && len(all) > 0 {
		r.finish(annotations)
		r.warnAlone(all)
	}
	r.finishServer()
	if r.Closed {
		r.Options = Options{Closed: true, Regex: r.Regex, Canary: r.Canary}
	}
	return r.Options, r.problems
}

// warnAlone warns about annotations that do nothing without others.
func (r *reader) warnAlone(all []given) {
	is := map[string]bool{}
	for _, g := range all {
		if g.row >= 0 {
			for _, name := range table[g.row].Names() {
				_, name, _ = strings.Cut(name, "/")
				is[name] = true
			}
		}
	}
	for _, g := range all {
		if g.row < 0 {
			continue
		}
		needs := strings.Fields(table[g.row].Needs)
		if len(needs) > 0 && !slices.ContainsFunc(needs, func(name string) bool { return is[name] }) {
			r.warn(&table[g.row], g.name, "it does nothing without "+strings.Join(needs, " or "))
		}
	}
}

// read takes one annotation.
func (r *reader) read(of Kind, g given) {
	row := &table[g.row]
	r.row, r.name = row, g.name
	switch {
	case row.Refused != "" && !row.always && (g.text == "false" || g.text == "off"): // it asks for nothing
	case row.Refused != "":
		r.refuseAs(row, g.name, row.Refused, row.Closes || row.closesOn != nil && row.closesOn.MatchString(g.text))
	case row.Ignored != "":
		r.warn(row, g.name, "it does nothing: "+row.Ignored)
	case of == Service && row.ofService:
		r.refuse(row, g.name, "only an Ingress can have it: move it")
	case of == Service && !row.Service:
		r.problems = append(r.problems, Problem{Name: g.name, Row: row, Reason: "it belongs to an Ingress, and does nothing in a Service: move it"})
	default:
		before := *r
		if problem := row.set(r, g.value); problem != "" {
			*r = before // undo all that it set
			if r.refuse(row, g.name, problem); row.off != nil {
				row.off(r)
			}
		}
	}
}

// ours returns the annotations with our prefixes, in the order of the table. If two
// have the same row, the last one counts.
func ours(annotations map[string]string) (all []given) {
	for name, text := range annotations {
		if !isOurs(name) {
			continue
		}
		row, known := index()[name]
		if !known {
			row = -1
		}
		all = append(all, given{name, row, value{strings.TrimSpace(text), isHAProxy(name)}})
	}
	slices.SortFunc(all, func(x, y given) int { return cmp.Or(cmp.Compare(x.row, y.row), -cmp.Compare(x.name, y.name)) })
	return all
}

// index finds the row of a name.
var index = sync.OnceValue(func() map[string]int {
	all := map[string]int{}
	for i := range table {
		for _, name := range table[i].Names() {
			all[name] = i
			if rest, is := strings.CutPrefix(name, HAProxy); is {
				all[Other+rest] = i
			}
		}
	}
	return all
})

// Names returns the names of a row, with their prefixes.
func (r *Row) Names() (all []string) {
	haproxy := r.HAProxy
	if haproxy == "" {
		haproxy = r.NGINX
	}
	for prefix, names := range map[string]string{HAProxy: haproxy, NGINX: r.NGINX} {
		for _, name := range strings.Fields(names) {
			if name != "-" {
				all = append(all, prefix+name)
			}
		}
	}
	slices.Sort(all)
	return all
}

// name returns the first name of a row, without a prefix.
func (r *Row) name() string {
	if r.NGINX != "-" {
		return r.NGINX
	}
	return r.HAProxy
}

// Table returns all known annotations.
func Table() []Row { return slices.Clone(table) }

// Of returns the row of an annotation by any of its names; nil: there is none.
func Of(name string) *Row {
	if i, ok := index()[name]; ok {
		return &table[i]
	}
	return nil
}

// unknown guesses the intended name.
func unknown(name string, guess bool) string {
	prefix, rest, _ := strings.Cut(name, "/")
	for _, known := range names() {
		if p, of, _ := strings.Cut(known, "/"); guess && p == prefix && Near(rest, of) {
			return "it is not known, and does nothing: did you mean " + known + "?"
		}
	}
	return "it is not known, and does nothing: docs/annotations.md lists all that are"
}

// names are all known names, sorted.
var names = sync.OnceValue(func() []string { return slices.Sorted(maps.Keys(index())) })

// table has all annotations.
var table = slices.Concat(redirects, paths, access, cors, rates, headers, timeouts, servers, balances, canaries, refused, ignored)
