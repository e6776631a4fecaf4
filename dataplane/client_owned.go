package dataplane

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/hapticsdk/haptic/internal/dpapi"
	"github.com/hapticsdk/haptic/internal/haproxycfg"
)

// ownedFile is a stored file in which a Client with the strategy [Transaction]
// lists what it has deployed, one a line: "section backend shop", "file maps
// hosts.map". Sections and files that stand neither there nor in the desired
// configuration belong to somebody else.
var ownedFile = fileRef{dpapi.General, "haptic-owned.txt"}

// owned is the content of that file.
type owned map[string]bool

func ownedSection(s haproxycfg.Section) string {
	return strings.TrimRight("section "+s.Kind+" "+s.Name, " ")
}

func ownedFileOf(ref fileRef) string { return "file " + string(ref.storage) + " " + ref.name }

func parseOwned(content []byte) owned {
	o := owned{}
	for l := range strings.Lines(string(content)) {
		if l = strings.TrimSpace(l); l != "" && !strings.HasPrefix(l, "#") {
			o[l] = true
		}
	}
	return o
}

func (o owned) content() []byte {
	lines := []string{"# What haptic has deployed here. All else belongs to somebody else."}
	var names []string
	for name := range o {
		names = append(names, name)
	}
	slices.Sort(names)
	return []byte(strings.Join(append(lines, names...), "\n") + "\n")
}

// includes reports whether all of p is in o.
func (o owned) includes(p owned) bool {
	for name := range p {
		if !o[name] {
			return false
		}
	}
	return true
}

// ownedBy lists what is in a configuration; text is its normal form.
func ownedBy(desired *Config, text string) owned {
	o := owned{}
	for _, s := range haproxycfg.Split(text) {
		if s.Kind != "" {
			o[ownedSection(s)] = true
		}
	}
	for _, f := range desired.files {
		o[ownedFileOf(refOf(f))] = true
	}
	return o
}

// readOwned reads what we have deployed before.
func (c *Client) readOwned(ctx context.Context) error {
	content, err := c.api.ReadFile(ctx, ownedFile.storage, ownedFile.name)
	switch {
	case isStatus(err, http.StatusNotFound):
		c.owned, c.ownedStored = owned{}, false
	case err != nil:
		return c.fileError(err, ownedFile.kind(), ownedFile.name)
	default:
		c.owned, c.ownedStored = parseOwned(content), true
	}
	return nil
}

// ownsJust reports whether what is known to stand there is that.
func (c *Client) ownsJust(o owned) bool {
	return c.ownedStored && c.owned.includes(o) && o.includes(c.owned)
}

// own stores what belongs to us, unless it is known to stand there.
func (c *Client) own(ctx context.Context, o owned) error {
	if c.ownsJust(o) {
		return nil
	}
	w := fileWrite{create: !c.ownedStored, file: File{Kind: ownedFile.kind(), Name: ownedFile.name, Content: o.content()}}
	if _, err := c.write(ctx, w); err != nil {
		c.owned = nil
		return err
	}
	c.owned, c.ownedStored = o, true
	return nil
}

// ownMore adds to what belongs to us before it is deployed, so that nobody
// takes it for somebody else's when we are killed in between.
func (c *Client) ownMore(ctx context.Context, j *job) error {
	if c.opts.Strategy != Transaction || c.ownedStored && c.owned.includes(j.ours) {
		return nil
	}
	all := owned{}
	j.owned = c.owned
	for _, o := range []owned{c.owned, j.ours} {
		for name := range o {
			all[name] = true
		}
	}
	return c.own(ctx, all)
}

// ownLess takes away what is no longer deployed.
func (c *Client) ownLess(ctx context.Context, j *job) error {
	if c.opts.Strategy != Transaction || j.ours == nil {
		return nil
	}
	return c.own(ctx, j.ours)
}

// mergeOwned puts the sections of a desired text, in normal form, in the place
// of ours in a stored one. Sections of others stay to the byte.
func mergeOwned(stored, desired string, ours owned) (string, error) {
	for _, s := range haproxycfg.Split(stored) {
		if s.Kind == "defaults" && s.Name == "" { // it will get a name, that of ours perhaps
			var err error
			if stored, err = haproxycfg.Normalise(stored); err != nil {
				return "", err
			}
			break
		}
	}
	desired = alignSections(desired, stored)
	want := map[string]haproxycfg.Section{}
	sections := haproxycfg.Split(desired)
	for _, s := range sections {
		if s.Kind != "" {
			want[ownedSection(s)] = s
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
		name := ownedSection(s)
		is, wanted := want[name]
		switch {
		case s.Kind == "" || !wanted && !ours[name]:
			write(s.Text)
		case wanted:
			if strings.HasPrefix(s.Name, "unnamed_defaults_") && !ours[name] && !equalSections(s.Text, is.Text) {
				return "", &haproxycfg.Refusal{Line: is.Header, Text: "defaults", Why: "another owner has a defaults section without a name, too: give yours one"}
			}
			write(is.Text)
			delete(want, name)
		}
	}
	for _, s := range sections {
		if _, missing := want[ownedSection(s)]; missing && s.Kind != "" {
			b.WriteByte('\n')
			write(s.Text)
		}
	}
	return b.String(), nil
}

func equalSections(a, b string) bool {
	return slices.EqualFunc(meaningfulLines(a), meaningfulLines(b), line.equal)
}

// alignSections returns a text in which the sections that mean the same in
// another text are written as they are there: the Dataplane API writes times in
// other units than one does, and names what has no name.
func alignSections(text, other string) string {
	same := map[string]bool{}
	for _, p := range sectionPairs(other, text) {
		same["section "+p.key] = p.same()
	}
	theirs := map[string]string{}
	for _, s := range haproxycfg.Split(other) {
		theirs[ownedSection(s)] = s.Text
	}
	var b strings.Builder
	for _, s := range haproxycfg.Split(text) {
		if key := ownedSection(s); same[key] {
			b.WriteString(strings.TrimRight(theirs[key], "\n") + "\n\n")
		} else {
			b.WriteString(s.Text)
		}
	}
	return b.String()
}
