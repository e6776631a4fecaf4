package validate

import (
	"bytes"
	"strings"

	"github.com/hapticsdk/haptic/dataplane"
)

// parsedList is what phase 1 knows of one crt-list.
type parsedList struct {
	content []byte
	refs    []reference // Line from 1
}

// list returns what is known of a crt-list, which it parses only when its
// content changed.
func (c *sectionCache) list(f dataplane.File) *parsedList {
	p := c.lists[f.Name]
	if p == nil || !bytes.Equal(p.content, f.Content) {
		p = parseList(f.Content)
		if c.lists == nil {
			c.lists = map[string]*parsedList{}
		}
		c.lists[f.Name] = p
	}
	return p
}

// forgetLists forgets all crt-lists but these.
func (c *sectionCache) forgetLists(but map[string]bool) {
	for name := range c.lists {
		if !but[name] {
			delete(c.lists, name)
		}
	}
}

// parseList reads lines of "certificate [options] names" (configuration
// manual, section 5.1, crt-list). A line with quotes or backslashes is
// HAProxy's alone to read.
func parseList(content []byte) *parsedList {
	p := &parsedList{content: content}
	n := 0
	for line := range strings.Lines(string(content)) {
		n++
		line, _, _ = strings.Cut(line, "#")
		if strings.ContainsAny(line, "\"'\\") {
			continue
		}
		certificate, rest, _ := strings.Cut(strings.TrimSpace(line), "[")
		options, _, _ := strings.Cut(rest, "]")
		words := append(strings.Fields(certificate), "")[:1]
		if strings.HasPrefix(words[0], "/") {
			p.refs = append(p.refs, reference{kind: "file", name: words[0], line: n})
		}
		for _, path := range paths(append([]string{"crt"}, strings.Fields(options)...)) {
			p.refs = append(p.refs, reference{kind: "file", name: path, line: n})
		}
	}
	return p
}

// inLists finds what the crt-lists that bind lines name refer to and does not
// exist.
func (c *checker) inLists(cache *sectionCache) {
	used := map[string]bool{}
	for _, p := range c.all {
		for _, r := range p.refs {
			if r.kind != "file" || p.skips(r) {
				continue
			}
			kind, name := c.inLayout(r.name)
			if name == "" || used[name] || c.layout.Dir(kind) != c.layout.Dir(dataplane.CRTList) {
				continue
			}
			if f, ok := c.cfg.File(dataplane.CRTList, name); ok {
				used[name] = true
				c.inList(f, cache.list(f), p.section.Kind+" "+p.section.Name)
			}
		}
	}
	cache.forgetLists(used)
}

func (c *checker) inList(f dataplane.File, list *parsedList, section string) {
	for _, r := range list.refs {
		if message := c.missing(r, nil); message != "" {
			c.findings = append(c.findings, Finding{
				File: c.layout.Path(f.Kind, f.Name), Line: r.line, Section: section, Message: message,
				Text:     strings.TrimSpace(lineOf(string(f.Content), r.line)),
				Position: dataplane.Position{Kind: f.Kind, Name: f.Name, Line: r.line},
			})
		}
	}
}
