package reconcile

import (
	"fmt"
	"regexp"
	"strings"
)

// Alike says of an event, or of a row, that several resources have one cause. The
// first of them tells of all in one line.
type Alike struct {
	Size  int    // resources with this cause, with this one; 0: it is alone, or Told
	Names string // of the first three, of the first; "": it is alone
	Told  bool   // the first of them tells of this one
}

// Of names the resources: one alone as it is given, or how many there are and three.
func (a Alike) Of(one string) string {
	if a.Size == 0 {
		return one
	}
	return fmt.Sprintf("%d resources, such as %s", a.Size, a.Names)
}

// AlikeRefusals finds those that have one cause: the same words, whatever the names,
// fields and numbers in them. The result has the order of refused.
func AlikeRefusals(refused []Refusal) []Alike {
	return alike(refused, func(r Refusal) (name, cause string) {
		return r.Resource, fmt.Sprint(r.Warning, plainWords(r.Reason))
	})
}

// AlikeQuarantined is [AlikeRefusals] for what is in quarantine.
func AlikeQuarantined(quarantined []Quarantined) []Alike {
	return alike(quarantined, func(q Quarantined) (name, cause string) {
		return q.Resource.String(), fmt.Sprint(q.Instances, q.Before.Name != "", plainWords(q.Fault.Message))
	})
}

// alike groups by cause; of says the name and the cause of one.
func alike[T any](all []T, of func(T) (name, cause string)) []Alike {
	const named = 3
	groups, first := make([]Alike, len(all)), map[string]int{}
	for i, one := range all {
		name, cause := of(one)
		at, again := first[cause]
		if !again {
			first[cause], groups[i] = i, Alike{Size: 1, Names: name}
			continue
		}
		groups[i].Told = true
		head := &groups[at]
		switch head.Size++; {
		case head.Size < named:
			head.Names += ", " + name
		case head.Size == named:
			head.Names += " and " + name
		}
	}
	for i := range groups {
		switch groups[i].Size {
		case 1:
			groups[i] = Alike{}
		case 2:
			groups[i].Names = strings.Replace(groups[i].Names, ", ", " and ", 1)
		}
	}
	return groups
}

var plainWord = regexp.MustCompile(`^[\pL'-]+[,.:;)]?$`)

// plainWords are those of a text that are no name, quotation or number; all of it
// where there are none.
func plainWords(text string) string {
	var words []string
	for _, w := range strings.Fields(text) {
		if plainWord.MatchString(w) && w[0] != '\'' {
			words = append(words, w)
		}
	}
	if len(words) == 0 {
		return text
	}
	return strings.Join(words, " ")
}
