package reconciletest

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/hapticsdk/haptic/dataplane"
)

// errHolds is what expect not finds where nothing is amiss.
var errHolds = errors.New("it is so, and must not be")

// expectation does expect and cmp.
func (p *player) expectation(verb string, args []string) error {
	if verb == "cmp" {
		return p.compare(args)
	}
	not := len(args) > 0 && args[0] == "not"
	if not {
		args = args[1:]
	}
	if len(args) == 0 {
		return errors.New("what is expected?")
	}
	problem, err := p.expect(args[0], args[1:])
	switch {
	case err != nil:
		return err
	case not && problem == nil:
		return errHolds
	case not:
		return nil
	}
	return problem
}

// expect returns what is not as expected, or, as err, that a line makes no sense.
func (p *player) expect(what string, args []string) (problem, err error) {
	switch {
	case len(args) == 2 && args[0] == "contains":
		return p.contains(what, args[1])
	case what == "instance" && len(args) == 2:
		return p.instanceIs(args[0], args[1])
	case what == "reloads" || what == "deployments":
		return p.counted(what, args)
	case what == "events" && len(args) > 0:
		return p.told(args), nil
	case what == "refused" && len(args) == 1:
		var lines []string
		for _, r := range p.loop.State().Refused {
			lines = append(lines, r.String())
		}
		return match("what was refused", strings.Join(lines, "\n"), args[0])
	case what == "quarantined" && len(args) == 1:
		var lines []string
		for _, q := range p.loop.State().Quarantined {
			lines = append(lines, q.String())
		}
		return match("what is in quarantine", strings.Join(lines, "\n"), args[0])
	case what == "error" && len(args) == 1:
		return match("the error", p.loop.State().LastError, args[0])
	case what == "ready" && len(args) == 0:
		if state := p.loop.State(); !state.Ready() {
			return errors.New("the loop is not ready"), nil
		}
		return nil, nil
	}
	return nil, fmt.Errorf("nothing can be expected as %q", strings.Join(append([]string{what}, args...), " "))
}

// match looks for a pattern in a text.
func match(what, text, pattern string) (problem, err error) {
	re, err := regexp.Compile("(?m)" + pattern)
	if err != nil {
		return nil, err
	}
	if re.MatchString(text) {
		return nil, nil
	}
	if text == "" {
		return fmt.Errorf("%s is empty", what), nil
	}
	return fmt.Errorf("no match in %s:\n%s", what, text), nil
}

// targetText is a text of one instance.
type targetText struct {
	instance, text string
	missing        bool // there is no such file, or no configuration
	hidden         bool // it may hold a key
}

// texts returns the text of "map:hosts.map@a", or of all instances.
func (p *player) texts(target string) ([]targetText, error) {
	name, instance, one := strings.Cut(target, "@")
	var names []string
	if one {
		names = []string{instance}
	}
	targets, err := p.named(names)
	if err != nil {
		return nil, err
	}
	prefix, file, isFile := strings.Cut(name, ":")
	kind, known := map[string]dataplane.FileKind{"map": dataplane.Map, "file": dataplane.General,
		"cert": dataplane.Certificate, "crt-list": dataplane.CRTList, "ca": dataplane.CA}[prefix]
	if name != "haproxy.cfg" && (!isFile || !known) {
		return nil, fmt.Errorf("there is no target %q", name)
	}
	var texts []targetText
	for _, t := range targets {
		found := targetText{instance: t.Name(), missing: true, hidden: kind == dataplane.Certificate}
		if cfg := t.Current(); cfg != nil && !isFile {
			found.text, found.missing = cfg.Main(), false
		} else if cfg != nil {
			f, ok := cfg.File(kind, file)
			found.text, found.missing = string(f.Content), !ok
		}
		texts = append(texts, found)
	}
	return texts, nil
}

func (p *player) contains(target, pattern string) (problem, err error) {
	texts, err := p.texts(target)
	if err != nil {
		return nil, err
	}
	for _, t := range texts {
		if t.missing {
			return fmt.Errorf("%s has no %s", t.instance, target), nil
		}
		problem, err := match(target+" of "+t.instance, t.text, pattern)
		if err != nil {
			return nil, err
		}
		if problem != nil && t.hidden {
			problem = fmt.Errorf("no match in %s of %s", target, t.instance)
		}
		if problem != nil {
			return problem, nil
		}
	}
	return nil, nil
}

func (p *player) compare(args []string) error {
	if len(args) != 2 {
		return errors.New("want cmp TARGET[@NAME] FILE")
	}
	texts, err := p.texts(args[0])
	if err != nil {
		return err
	}
	want, ok := p.files[args[1]]
	if !ok {
		return fmt.Errorf("the script has no file %s", args[1])
	}
	for _, t := range texts {
		switch {
		case t.missing:
			return fmt.Errorf("%s has no %s", t.instance, args[0])
		case t.text == want:
		case t.hidden:
			return fmt.Errorf("%s of %s differs", args[0], t.instance)
		default:
			return fmt.Errorf("%s of %s (-%s +is)\n%s", args[0], t.instance, args[1],
				cmp.Diff(strings.Split(want, "\n"), strings.Split(t.text, "\n")))
		}
	}
	return nil
}

func (p *player) instanceIs(name, want string) (problem, err error) {
	targets, err := p.named([]string{name})
	if err != nil {
		return nil, err
	}
	if !slices.Contains([]string{"current", "stale", "failing", "empty"}, want) {
		return nil, fmt.Errorf("no instance is %q", want)
	}
	state, known := p.state(name)
	cfg := targets[0].Current()
	is := map[string]bool{
		"empty":   cfg == nil,
		"failing": known && state.Failures > 0,
		"current": cfg != nil && cfg.Hash() == p.loop.State().Validated,
		"stale":   cfg == nil || cfg.Hash() != p.loop.State().Validated,
	}
	if is[want] {
		return nil, nil
	}
	var are []string
	for s, holds := range is {
		if holds {
			are = append(are, s)
		}
	}
	slices.Sort(are)
	return fmt.Errorf("%s is %s", name, strings.Join(are, ", ")), nil
}

func (p *player) counted(what string, args []string) (problem, err error) {
	if len(args) < 1 || len(args) > 2 {
		return nil, fmt.Errorf("want %s [NAME] N", what)
	}
	want, err := strconv.Atoi(args[len(args)-1])
	if err != nil {
		return nil, fmt.Errorf("%q is not a number", args[len(args)-1])
	}
	targets, err := p.named(args[:len(args)-1])
	if err != nil {
		return nil, err
	}
	got := 0
	var each []string
	for _, t := range targets {
		deployments, reloads := t.Counts()
		n := deployments
		if what == "reloads" {
			n = reloads
		}
		got += n
		each = append(each, fmt.Sprintf("%s %d", t.Name(), n))
	}
	if got != want {
		return fmt.Errorf("%d %s: %s", got, what, strings.Join(each, ", ")), nil
	}
	return nil, nil
}

// told looks for events in this order.
func (p *player) told(want []string) error {
	since := p.events.take()
	rest := since
	for _, name := range want {
		at := slices.Index(rest, name)
		if at < 0 {
			return fmt.Errorf("there is no %s in its place; events were:\n%s", name, strings.Join(since, "\n"))
		}
		rest = rest[at+1:]
	}
	return nil
}
