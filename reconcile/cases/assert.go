package cases

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/internal/jsonpath"
)

// holds says why an assertion does not hold. An error says why that cannot be told.
func (p *play) holds(ctx context.Context, a *Assertion) (problem string, err error) {
	switch a.Type {
	case "haproxy_valid":
		return p.valid(ctx)
	case "deterministic":
		return p.deterministic(ctx)
	case "jsonpath":
		return p.jsonPath(a)
	}
	judge := assertionTypes()[a.Type].text
	if judge == nil {
		return "", fmt.Errorf("no type of assertion is %q", a.Type)
	}
	text, err := p.text(a.Target)
	if err != nil {
		return "", err
	}
	return judge(&target{name: a.Target, text: text, mask: p.mask}, a), nil
}

func (p *play) valid(ctx context.Context) (string, error) {
	if p.runner.Validator == nil {
		return "", errors.New("Runner.Validator is missing")
	}
	if err := p.runner.validate(ctx, p.rendered.Config); err != nil {
		if ctx.Err() != nil {
			return "", err
		}
		blamed := p.rendered.Explain(ctx, "validate", err)
		if len(blamed.Faults) > 0 {
			p.refused = blamed.Faults[0].Template
		}
		return strings.TrimPrefix(blamed.Error(), "validate: "), nil
	}
	return "", nil
}

// text returns the text of a target.
func (p *play) text(target string) (string, error) {
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
	kind, name, _ := fileTarget(target)
	if f, ok := p.rendered.Config.File(kind, name); ok {
		return string(f.Content), nil
	}
	have := []string{}
	for _, f := range p.rendered.Config.Files() {
		have = append(have, targetOf(f))
	}
	return "", fmt.Errorf("there is no %s: the rendered files are %s", target, strings.Join(have, ", "))
}

func (p *play) jsonPath(a *Assertion) (string, error) {
	path, err := jsonpath.Compile(a.JSONPath)
	if err != nil {
		return "", err
	}
	data := p.asJSON()
	if a.Target != jsonTarget {
		text, err := p.text(a.Target)
		if err != nil {
			return "", err
		}
		if data, err = jsonpath.Decode([]byte(text)); err != nil {
			return "", fmt.Errorf("%s is not JSON: %w", a.Target, err)
		}
	}
	found, err := path.Find(data)
	if err != nil {
		return "", err
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
		return fmt.Sprintf("%s has nothing at %s", a.Target, a.JSONPath), nil
	case a.Expected == nil || got == string(*a.Expected):
		return "", nil
	}
	return fmt.Sprintf("%s is %s, not %s", a.JSONPath, p.mask.shown(got), p.mask.shown(string(*a.Expected))), nil
}

// asJSON returns the render for jsonpath. Certificates appear by name alone: they hold keys.
func (p *play) asJSON() any {
	files := map[string]any{}
	for _, f := range p.rendered.Config.Files() {
		files[targetOf(f)] = string(f.Content)
		if f.Kind == dataplane.Certificate {
			files[targetOf(f)] = hidden
		}
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

// target is a text that assertions look at.
type target struct {
	name, text string
	mask       mask
}

// line describes the line of an offset.
func (t *target) line(at int) string {
	n := strings.Count(t.text[:at], "\n") + 1
	line, _, _ := strings.Cut(t.text[strings.LastIndexByte(t.text[:at], '\n')+1:], "\n")
	return fmt.Sprintf("line %d: %s", n, t.mask.shown(line))
}

func (t *target) contains(a *Assertion) string {
	if a.patterns[0].MatchString(t.text) {
		return ""
	}
	return t.noMatch()
}

// noMatch says that a pattern does not match.
func (t *target) noMatch() string {
	if t.text == "" {
		return "no match in " + t.name + ", which is empty"
	}
	return "no match in " + t.name
}

func (t *target) lacks(a *Assertion) string {
	if at := a.patterns[0].FindStringIndex(t.text); at != nil {
		return "it matches " + t.name + " " + t.line(at[0])
	}
	return ""
}

func (t *target) count(a *Assertion) string {
	found := a.patterns[0].FindAllStringIndex(t.text, -1)
	if len(found) == a.count {
		return ""
	}
	s := fmt.Sprintf("%d matches in %s, not %d", len(found), t.name, a.count)
	for i, at := range found {
		if i == 5 {
			return s + "\n..."
		}
		s += "\n" + t.line(at[0])
	}
	return s
}

func (t *target) equals(a *Assertion) string {
	if want := string(*a.Expected); t.text != want {
		return t.name + " differs: " + t.mask.differing(want, t.text)
	}
	return ""
}

// order compares the positions of the first matches.
func (t *target) order(a *Assertion) string {
	last := -1
	for i, pattern := range a.patterns {
		at := pattern.FindStringIndex(t.text)
		switch {
		case at == nil:
			return fmt.Sprintf("/%s/: %s", source(pattern), t.noMatch())
		case at[0] < last:
			return fmt.Sprintf("/%s/ stands before /%s/ in %s\n%s\n%s", source(pattern), source(a.patterns[i-1]), t.name, t.line(at[0]), t.line(last))
		}
		last = at[0]
	}
	return ""
}
