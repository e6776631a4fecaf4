package api

import (
	"slices"
	"strings"

	"github.com/hapticsdk/haptic/dataplane/internal/config"
	"github.com/hapticsdk/haptic/internal/haproxycfg"
)

// merge returns the text to store beside another owner. Our sections replace those that we
// have deployed before; all others stay as they are. The desired sections are in normal form.
func (c *Client) merge(stored string, desired []string) ([]string, error) {
	merged, err := mergeSections(stored, strings.Join(desired, ""), c.ledger.owned)
	if err != nil {
		return nil, refused(err)
	}
	parts, err := c.merged.Sections(haproxycfg.Texts(merged))
	if err != nil {
		e := refused(err)
		e.Line, e.Output = 0, "the stored and the desired sections together are refused: "+e.Output
		return nil, e
	}
	return parts, nil
}

// mergeSections replaces our sections in a stored text by those of a desired text in normal
// form. Sections of others stay the same byte for byte.
func mergeSections(stored, desired string, ours map[string]string) (string, error) {
	if slices.ContainsFunc(haproxycfg.Split(stored), func(s haproxycfg.Section) bool { return s.Kind == "defaults" && s.Name == "" }) {
		// The API will name it, perhaps with the name of one of ours.
		var err error
		if stored, err = haproxycfg.Normalise(stored); err != nil {
			return "", err
		}
	}
	want := map[string]haproxycfg.Section{}
	sections := haproxycfg.Split(desired)
	for _, s := range sections {
		if s.Kind != "" {
			want[sectionEntry(s)] = s
		}
	}
	var b strings.Builder
	write := func(text string) {
		b.WriteString(text)
		if !strings.HasSuffix(text, "\n") {
			b.WriteByte('\n')
		}
	}
	for _, s := range haproxycfg.Split(stored) {
		name := sectionEntry(s)
		is, wanted := want[name]
		_, owned := ours[name]
		switch {
		case s.Kind == "" || !wanted && !owned:
			write(s.Text)
		case wanted:
			if strings.HasPrefix(s.Name, "unnamed_defaults_") && !owned && !equalLines(s, is) {
				return "", &haproxycfg.Refusal{Line: is.Header, Text: "defaults", Why: "another owner has a defaults section without a name, too: give yours one"}
			}
			write(is.Text)
			delete(want, name)
		}
	}
	for _, s := range sections {
		if _, missing := want[sectionEntry(s)]; missing && s.Kind != "" {
			b.WriteByte('\n')
			write(s.Text)
		}
	}
	return b.String(), nil
}

func equalLines(a, b haproxycfg.Section) bool {
	x, y := config.SectionOf(a), config.SectionOf(b)
	return slices.EqualFunc(x.Lines(), y.Lines(), config.Line.Equal)
}
