package cases

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/internal/jsonpath"
)

// holds says why an assertion does not hold, or, as an error, why that cannot be
// told.
func (p *casePlay) holds(ctx context.Context, a *Assertion) (problem string, err error) {
	switch a.Type {
	case assertValid:
		return p.valid(ctx)
	case assertDeterministic:
		return p.deterministic(ctx)
	case assertJSONPath:
		return p.jsonPath(a)
	}
	text, err := p.text(a.Target)
	if err != nil {
		return "", err
	}
	t := targetText{name: a.Target, text: text, mask: p.mask, hidden: strings.HasPrefix(a.Target, "cert:")}
	if a.Target == errorTarget && p.err == nil {
		t.absent = "the render did not fail"
	}
	switch a.Type {
	case assertContains:
		return t.contains(a.patterns[0]), nil
	case assertNotContains:
		return t.lacks(a.patterns[0]), nil
	case assertMatchCount:
		return t.count(a.patterns[0], a.count), nil
	case assertEquals:
		return t.equals(*a.expected), nil
	case assertMatchOrder:
		return t.order(a.patterns), nil
	}
	return "", fmt.Errorf("no type of assertion is %q", a.Type)
}

func (p *casePlay) valid(ctx context.Context) (string, error) {
	if p.runner.Validator == nil {
		return "", errors.New("Runner.Validator is missing")
	}
	if err := p.runner.ask(ctx, p.rendered.Config); err != nil {
		if ctx.Err() != nil {
			return "", err
		}
		return err.Error(), nil
	}
	return "", nil
}

// text is the text of a target.
func (p *casePlay) text(target string) (string, error) {
	switch target {
	case errorTarget:
		if p.err == nil {
			return "", nil
		}
		return p.err.Error(), nil
	case refusedTarget:
		var b strings.Builder
		for _, r := range p.rendered.Refused {
			b.WriteString(r.String() + "\n")
		}
		return b.String(), nil
	case mainTarget:
		return p.rendered.Config.Main(), nil
	}
	kind, name, ok := fileTarget(target)
	if !ok {
		return "", fmt.Errorf("no target %q", target)
	}
	f, ok := p.rendered.Config.File(kind, name)
	if !ok {
		var have []string
		for _, f := range p.rendered.Config.Files() {
			have = append(have, targetOf(f))
		}
		if len(have) == 0 {
			have = []string{"none"}
		}
		return "", fmt.Errorf("there is no %s, of files there are: %s", target, strings.Join(have, ", "))
	}
	return string(f.Content), nil
}

func (p *casePlay) jsonPath(a *Assertion) (string, error) {
	var data any
	if a.Target == jsonTarget {
		data = p.asJSON()
	} else {
		text, err := p.text(a.Target)
		if err != nil {
			return "", err
		}
		if err := json.Unmarshal([]byte(text), &data); err != nil {
			return "", fmt.Errorf("%s is not JSON: %w", a.Target, err)
		}
	}
	query, err := jsonpath.NewQuery(a.path, true)
	if err != nil {
		return "", err
	}
	found, err := query.Find(data)
	if err != nil {
		return "", fmt.Errorf("%s: %w", a.path, err)
	}
	var values []string
	for _, v := range found {
		text, ok := v.(string)
		if !ok {
			encoded, err := json.Marshal(v)
			if err != nil {
				return "", err
			}
			text = string(encoded)
		}
		values = append(values, text)
	}
	got := strings.Join(values, " ")
	switch {
	case len(values) == 0:
		return fmt.Sprintf("%s has nothing at %s", a.Target, a.path), nil
	case a.expected != nil && got != *a.expected && strings.HasPrefix(a.Target, "cert:"):
		return a.path + " has another value", nil
	case a.expected != nil && got != *a.expected:
		return fmt.Sprintf("%s is %s, not %s", a.path, p.mask.shown(got), p.mask.shown(*a.expected)), nil
	}
	return "", nil
}

// asJSON is the render for jsonpath. Certificates are in it by name alone: they
// hold keys.
func (p *casePlay) asJSON() any {
	files := map[string]any{}
	for _, f := range p.rendered.Config.Files() {
		if f.Kind == dataplane.Certificate {
			files[targetOf(f)] = "(secret)"
			continue
		}
		files[targetOf(f)] = string(f.Content)
	}
	refused := []any{}
	for _, r := range p.rendered.Refused {
		refused = append(refused, map[string]any{"resource": r.Resource, "source": r.Source, "field": r.Field, "reason": r.Reason})
	}
	resources := map[string]any{}
	for kind, n := range p.rendered.Resources {
		resources[kind] = n
	}
	return map[string]any{"config": p.rendered.Config.Main(), "files": files, "refused": refused, "resources": resources}
}

// targetText is a text that assertions look at.
type targetText struct {
	name   string
	text   string
	mask   *caseMask
	hidden bool   // nothing of it may be shown
	absent string // why there is none
}

// line describes the line of an offset.
func (t *targetText) line(at int) string {
	n := strings.Count(t.text[:at], "\n") + 1
	if t.hidden {
		return fmt.Sprintf("line %d", n)
	}
	begin := strings.LastIndexByte(t.text[:at], '\n') + 1
	line, _, _ := strings.Cut(t.text[begin:], "\n")
	return fmt.Sprintf("line %d: %s", n, t.mask.shown(line))
}

func (t *targetText) contains(pattern *regexp.Regexp) string {
	if pattern.MatchString(t.text) {
		return ""
	}
	return "no match in " + t.name + t.instead(pattern)
}

// instead helps to see why a pattern does not match.
func (t *targetText) instead(pattern *regexp.Regexp) string {
	source := strings.TrimPrefix(pattern.String(), multiline)
	if t.absent != "" {
		return ", " + t.absent
	}
	if t.text == "" {
		return ", which is empty"
	}
	if at := strings.Index(t.text, source); at >= 0 {
		return fmt.Sprintf(`; as plain text it is in %s: \Q...\E takes special characters as they are`, t.line(at))
	}
	if t.hidden {
		return ""
	}
	if at, ok := nearestLine(t.text, source); ok {
		return "; nearest is " + t.line(at)
	}
	return ""
}

func (t *targetText) lacks(pattern *regexp.Regexp) string {
	if at := pattern.FindStringIndex(t.text); at != nil {
		return "it matches " + t.name + " " + t.line(at[0])
	}
	return ""
}

func (t *targetText) count(pattern *regexp.Regexp, want int) string {
	found := pattern.FindAllStringIndex(t.text, -1)
	if len(found) == want {
		return ""
	}
	s := fmt.Sprintf("%d matches in %s, not %d", len(found), t.name, want)
	if len(found) == 0 {
		return s + t.instead(pattern)
	}
	lines, last := 0, ""
	for _, at := range found {
		line := t.line(at[0])
		if line == last {
			continue
		}
		if lines++; lines > 5 {
			return s + "\n..."
		}
		s += "\n" + line
		last = line
	}
	return s
}

func (t *targetText) equals(want string) string {
	switch {
	case t.text == want:
		return ""
	case t.hidden:
		return t.name + " differs"
	case t.absent != "":
		return t.absent
	}
	return t.name + " differs: " + t.mask.differing(want, t.text)
}

// order compares the first matches.
func (t *targetText) order(patterns []*regexp.Regexp) string {
	last := -1
	for i, pattern := range patterns {
		at := pattern.FindStringIndex(t.text)
		name := strings.TrimPrefix(pattern.String(), multiline)
		switch {
		case at == nil:
			return fmt.Sprintf("no match of /%s/ in %s%s", name, t.name, t.instead(pattern))
		case at[0] < last:
			before := strings.TrimPrefix(patterns[i-1].String(), multiline)
			return fmt.Sprintf("/%s/ stands before /%s/ in %s\n%s\n%s", name, before, t.name, t.line(at[0]), t.line(last))
		}
		last = at[0]
	}
	return ""
}
