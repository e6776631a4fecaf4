package reconcile

import (
	"fmt"
	"regexp"
	"strings"
)

// Alike says that several resources of an event, or of a row, share one cause. The first one
// has a line for all of them.
type Alike struct {
	Size  int    // resources with this cause, with this one; 0: it is alone, or Told
	Names string // of up to three resources with this cause; set on the first one only
	Told  bool   // the first of them tells of this one
}

// Of names the resources: a single one as given, or the number of several and up to three
// names.
func (a Alike) Of(one string) string {
	if a.Size == 0 {
		return one
	}
	return fmt.Sprintf("%d resources, such as %s", a.Size, a.Names)
}

// AlikeRefusals groups refusals by cause: the same words, whatever names, fields and numbers
// stand among them. The result has the order of refused.
func AlikeRefusals(refused []Refusal) []Alike {
	return alike(refused, func(r Refusal) (name, cause string) {
		return r.Resource, fmt.Sprint(r.Warning, plainWords(r.Reason))
	})
}

// AlikeQuarantined is [AlikeRefusals] for quarantined resources.
func AlikeQuarantined(quarantined []Quarantined) []Alike {
	return alike(quarantined, func(q Quarantined) (name, cause string) {
		return q.Resource.String(), fmt.Sprint(q.Instances, q.Before.Name != "", plainWords(q.Fault.Message))
	})
}

// alike groups values by cause; of returns the name and the cause of one. A resource counts
// once.
func alike[T any](all []T, of func(T) (name, cause string)) []Alike {
	const named = 3
	type key struct{ name, cause string }
	groups, heads, first, seen := make([]Alike, len(all)), make([]int, len(all)), map[string]int{}, map[key]bool{}
	for i, one := range all {
		name, cause := of(one)
		at, again := first[cause]
		if !again {
			at, first[cause], groups[i].Names = i, i, name
		}
		groups[i].Told, heads[i] = again, at
		if is := (key{name, cause}); seen[is] {
			continue
		} else {
			seen[is] = true
		}
		head := &groups[at]
		switch head.Size++; {
		case head.Size == 1:
		case head.Size < named:
			head.Names += ", " + name
		case head.Size == named:
			head.Names += " and " + name
		}
	}
	for i, head := range heads { // a head comes before its group
		switch groups[head].Size {
		case 0, 1:
			groups[i] = Alike{}
		case 2:
			groups[head].Names = strings.Replace(groups[head].Names, ", ", " and ", 1)
		}
	}
	return groups
}

var plainWord = regexp.MustCompile(`^[\pL'-]+[,.:;)]?$`)

// plainWords returns the words of a text that are no name, quotation or number, or the whole
// text if there are none.
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
