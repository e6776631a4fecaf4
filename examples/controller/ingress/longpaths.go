package ingress

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"

	"github.com/hapticsdk/haptic/examples/controller/annotation"
	"github.com/hapticsdk/haptic/k8swatch/derive"
	"github.com/hapticsdk/haptic/templating/regex"
)

// tooLong is the backend that answers 414.
const tooLong = "too-long"

// longest is how long a path can be for a pattern of its host.
type longest struct {
	bytes int
	held
}

// derivePathLengths finds the hosts with a pattern that takes HAProxy long on a long path. Longer
// ones get 414 there: if HAProxy gave the pattern up and went on to other paths of the host,
// a client could get past the lists and passwords of the pattern.
func (m *Model) derivePathLengths() *derive.Collection[line, *Path] {
	byHost := derive.GroupBy("costly patterns", m.lines, func(of line, h held, add func(line, longest)) {
		host := "^" + regexp.QuoteMeta(h.host)
		if path, is := strings.CutPrefix(of.key, host); is && of.kind == pattern {
			if is, _ := annotation.CheckPath(path); is.Longest < regex.Subject {
				add(line{pattern, host}, longest{is.Longest, h})
			}
		}
	}, func(a, b longest) int { return cmp.Or(cmp.Compare(a.bytes, b.bytes), byAge(a.ing, b.ing)) })
	return derive.Each("longest paths", byHost, func(_ *derive.Reads, of line, all []longest, was *Path) (*Path, bool) {
		now := Path{of.key + ".{" + strconv.Itoa(all[0].bytes+1) + "}", tooLong, all[0].ing, pattern}
		if was != nil && *was == now {
			return was, true
		}
		return &now, true
	})
}
