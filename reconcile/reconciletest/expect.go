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
	"github.com/hapticsdk/haptic/reconcile"
)

// expectation is what can stand behind expect. It returns what is not as
// expected, or, as err, that the line makes no sense.
type expectation struct {
	usage string // as of a command
	check func(p *player, args []string) (problem string, err error)
}

// expectations are all of them.
func expectations() []expectation {
	return []expectation{
		{"TARGET contains REGEXP", (*player).contains},
		{"instance NAME STATE", (*player).instanceIs},
		{"reloads N", (*player).reloads},
		{"reloads NAME N", (*player).reloads},
		{"deployments N", (*player).deployments},
		{"deployments NAME N", (*player).deployments},
		{"events TYPE...", (*player).told},
		{"refused REGEXP", func(p *player, args []string) (string, error) {
			return match("what was refused", lines(p.loop.State().Refused), args[0])
		}},
		{"quarantined REGEXP", func(p *player, args []string) (string, error) {
			return match("what is in quarantine", lines(p.loop.State().Quarantined), args[0])
		}},
		{"error REGEXP", func(p *player, args []string) (string, error) {
			return match("the error", p.loop.State().LastError, args[0])
		}},
		{"ready", func(p *player, _ []string) (string, error) {
			if p.loop.State().Ready() {
				return "", nil
			}
			return "the loop is not ready", nil
		}},
	}
}

// expect does expect, and expect not.
func (p *player) expect(words []string, not bool) error {
	for _, e := range expectations() {
		args, ok := arguments(e.usage, words)
		if !ok {
			continue
		}
		problem, err := e.check(p, args)
		switch {
		case err != nil:
			return err
		case not && problem == "":
			return errors.New("it is so, and must not be")
		case !not && problem != "":
			return errors.New(problem)
		}
		return nil
	}
	return fmt.Errorf("nothing can be expected as %q", strings.Join(words, " "))
}

func lines[T fmt.Stringer](list []T) string {
	var all []string
	for _, v := range list {
		all = append(all, v.String())
	}
	return strings.Join(all, "\n")
}

// match looks for a pattern in a text.
func match(what, text, pattern string) (problem string, err error) {
	re, err := regexp.Compile("(?m)" + pattern)
	switch {
	case err != nil:
		return "", err
	case re.MatchString(text):
		return "", nil
	case text == "":
		return what + " is empty", nil
	}
	return fmt.Sprintf("no match in %s:\n%s", what, text), nil
}

// targetText is a text of one instance.
type targetText struct {
	name, text string // such as "haproxy.cfg of a"
	hidden     bool   // it may hold a key
}

// texts returns the text of "map:hosts.map@a", or of all instances; problem says
// where there is none.
func (p *player) texts(target string) (texts []targetText, problem string, err error) {
	name, instance, one := strings.Cut(target, "@")
	var names []string
	if one {
		names = []string{instance}
	}
	targets, err := p.named(names)
	if err != nil {
		return nil, "", err
	}
	prefix, file, isFile := strings.Cut(name, ":")
	kind, known := map[string]dataplane.FileKind{"map": dataplane.Map, "file": dataplane.General,
		"cert": dataplane.Certificate, "crt-list": dataplane.CRTList, "ca": dataplane.CA}[prefix]
	if name != "haproxy.cfg" && (!isFile || !known) {
		return nil, "", fmt.Errorf("there is no target %q", name)
	}
	for _, t := range targets {
		found, cfg := targetText{name: target + " of " + t.Name(), hidden: kind == dataplane.Certificate}, t.Current()
		if cfg != nil && isFile {
			var f dataplane.File
			f, known = cfg.File(kind, file)
			found.text = string(f.Content)
		} else if cfg != nil {
			found.text, known = cfg.Main(), true
		}
		if cfg == nil || !known {
			return nil, t.Name() + " has no " + target, nil
		}
		texts = append(texts, found)
	}
	return texts, "", nil
}

func (p *player) contains(args []string) (problem string, err error) {
	texts, problem, err := p.texts(args[0])
	for _, t := range texts {
		if problem, err = match(t.name, t.text, args[1]); problem != "" && t.hidden {
			problem = "no match in " + t.name
		}
		if problem != "" || err != nil {
			break
		}
	}
	return problem, err
}

func (p *player) compare(args []string) error {
	want, ok := p.files[args[1]]
	if !ok {
		return fmt.Errorf("the script has no file %s", args[1])
	}
	texts, problem, err := p.texts(args[0])
	if problem != "" {
		err = errors.New(problem)
	}
	for _, t := range texts {
		switch {
		case t.text == want:
		case t.hidden:
			return errors.New(t.name + " differs")
		default:
			return fmt.Errorf("%s (-%s +is)\n%s", t.name, args[1], cmp.Diff(strings.Split(want, "\n"), strings.Split(t.text, "\n")))
		}
	}
	return err
}

// state is what the loop knows of an instance; nothing of one that is not its own.
func (p *player) state(name string) (state reconcile.InstanceState) {
	for _, e := range p.loop.State().Instances {
		if e.Name == name {
			state = e
		}
	}
	return state
}

func (p *player) instanceIs(args []string) (problem string, err error) {
	targets, err := p.named(args[:1])
	if err != nil {
		return "", err
	}
	cfg := targets[0].Current()
	current := cfg != nil && cfg.Hash() == p.loop.State().Validated
	is := map[string]bool{"empty": cfg == nil, "failing": p.state(args[0]).Failures > 0, "current": current, "stale": !current}
	if _, ok := is[args[1]]; !ok {
		return "", fmt.Errorf("no instance is %q", args[1])
	}
	if is[args[1]] {
		return "", nil
	}
	return fmt.Sprintf("%s is not %s: %v", args[0], args[1], is), nil
}

func (p *player) reloads(args []string) (string, error) {
	return p.counted("reloads", args, func(t *Target) int { _, n := t.Counts(); return n })
}

func (p *player) deployments(args []string) (string, error) {
	return p.counted("deployments", args, func(t *Target) int { n, _ := t.Counts(); return n })
}

// counted compares a number of one instance, or the sum of all.
func (p *player) counted(what string, args []string, count func(*Target) int) (problem string, err error) {
	want, err := strconv.Atoi(args[len(args)-1])
	if err != nil {
		return "", fmt.Errorf("%q is not a number", args[len(args)-1])
	}
	targets, err := p.named(args[:len(args)-1])
	if err != nil {
		return "", err
	}
	got, each := 0, ""
	for _, t := range targets {
		got += count(t)
		each += fmt.Sprintf(", %s %d", t.Name(), count(t))
	}
	if got != want {
		problem = fmt.Sprintf("%d %s%s", got, what, each)
	}
	return problem, nil
}

// told looks for events in this order, since it was called last.
func (p *player) told(want []string) (problem string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	since := p.events
	p.events = nil
	rest := since
	for _, name := range want {
		at := slices.Index(rest, name)
		if at < 0 {
			return fmt.Sprintf("there is no %s in its place; events were:\n%s", name, strings.Join(since, "\n")), nil
		}
		rest = rest[at+1:]
	}
	return "", nil
}
