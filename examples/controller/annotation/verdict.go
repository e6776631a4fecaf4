package annotation

import (
	"fmt"
	"maps"
)

// Verdict says what becomes of an annotation that another controller served.
type Verdict struct {
	Name string
	Is   string // "same", "differs", "refused", "not needed" or "unknown"
	Why  string // "" if it is the same
}

// Verdicts returns a verdict for each annotation with our prefixes. wrong adds refusals
// by name that only a reader of the whole Ingress finds.
func Verdicts(of Kind, annotations, wrong map[string]string) (all []Verdict) {
	_, problems := Read(of, annotations, Options{})
	refused, warned := map[string]string{}, map[string]string{}
	for _, p := range problems {
		if p.Warning {
			warned[p.Name] = p.Reason
		} else {
			refused[p.Name] = p.Reason
		}
	}
	maps.Copy(refused, wrong)
	for _, g := range ours(annotations) {
		v := Verdict{Name: g.name, Is: "same"}
		switch {
		case g.row < 0:
			v.Is, v.Why = "unknown", warned[g.name]
		case refused[g.name] != "":
			v.Is, v.Why = "refused", refused[g.name]
		case table[g.row].Ignored != "":
			v.Is, v.Why = "not needed", table[g.row].Ignored
		case warned[g.name] != "":
			v.Why = warned[g.name]
		case table[g.row].Differs != "":
			v.Is, v.Why = "differs", table[g.row].Differs
		}
		all = append(all, v)
	}
	return all
}

// String returns one line.
func (v Verdict) String() string {
	if v.Why == "" {
		return fmt.Sprintf("%s: %s", v.Name, v.Is)
	}
	return fmt.Sprintf("%s: %s: %s", v.Name, v.Is, v.Why)
}

// Unsaid returns the verdict for an Ingress with TLS that does not mention redirects.
// Other controllers redirect it to https. A verdict without a name says nothing.
func Unsaid(annotations map[string]string) Verdict {
	if Given(annotations, NGINX+"ssl-redirect")+Given(annotations, NGINX+"force-ssl-redirect") != "" {
		return Verdict{}
	}
	return Verdict{Name: NGINX + "ssl-redirect", Is: "differs", Why: `it is not given, and hosts with TLS are not redirected to https here: write "true"`}
}
