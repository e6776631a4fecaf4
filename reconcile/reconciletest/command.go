package reconciletest

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/k8swatch"
)

// command is what a line of a script can begin with. A word of its usage in
// capitals stands for one argument, with "..." for one or more.
type command struct {
	usage string
	late  bool // only after start
	do    func(p *player, args []string) error
}

// commands are all of them, those with more words first.
func commands() []command {
	return []command{
		{"instance NAME...", false, (*player).setInstances},
		{"create FILE...", false, (*player).apply},
		{"update FILE...", false, (*player).apply},
		{"delete FILE...", false, (*player).remove},
		{"start", false, func(p *player, _ []string) error { return p.start() }},
		{"trigger", true, func(p *player, _ []string) error { p.loop.Trigger("the script"); return nil }},
		{"advance DURATION", true, func(_ *player, args []string) error { return advance(args[0]) }},
		{"wait deployed", true, (*player).waitDeployed},
		{"wait deployed NAME...", true, (*player).waitDeployed},
		{"fail validation MESSAGE", false, func(p *player, args []string) error { p.setInvalid(errors.New(args[0])); return nil }},
		{"recover validation", false, func(p *player, _ []string) error { p.setInvalid(nil); return nil }},
		{"fail instance NAME WHY", false, (*player).fail},
		{"hang instance NAME", false, func(p *player, args []string) error { return p.each(args, (*Target).Hang) }},
		{"recover instance NAME", false, func(p *player, args []string) error { return p.each(args, func(t *Target) { t.Fail(nil) }) }},
		{"drift instance NAME", false, func(p *player, args []string) error { return p.each(args, func(t *Target) { t.Drift(nil) }) }},
		{"leader lost", false, func(p *player, _ []string) error { p.leads(false); return nil }},
		{"leader won", false, func(p *player, _ []string) error { p.leads(true); return nil }},
		{"expect not WHAT...", true, func(p *player, args []string) error { return p.expect(args, true) }},
		{"expect WHAT...", true, func(p *player, args []string) error { return p.expect(args, false) }},
		{"cmp TARGET FILE", true, (*player).compare},
	}
}

// run does what one line says, and lets everything happen that can happen at
// this time.
func (p *player) run(words []string) error {
	var usages []string
	for _, c := range commands() {
		args, ok := arguments(c.usage, words)
		switch {
		case !ok && strings.HasPrefix(c.usage+" ", words[0]+" "):
			usages = append(usages, c.usage)
			continue
		case !ok:
			continue
		case c.late && p.loop == nil:
			return errors.New("the controller has not been started")
		}
		if err := c.do(p, args); err != nil {
			return err
		}
		synctest.Wait()
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.ended
	}
	if len(usages) == 0 {
		return fmt.Errorf("there is no command %q", words[0])
	}
	return errors.New("want " + strings.Join(usages, ", or "))
}

// arguments are the words of a line that stand where its usage has capitals.
func arguments(usage string, words []string) (args []string, ok bool) {
	for i, u := range strings.Fields(usage) {
		switch {
		case len(words) <= i:
			return nil, false
		case strings.HasSuffix(u, "..."):
			return append(args, words[i:]...), true
		case strings.ToUpper(u) == u:
			args = append(args, words[i])
		case words[i] != u:
			return nil, false
		}
	}
	return args, len(words) == len(strings.Fields(usage))
}

func (p *player) setInstances(names []string) error {
	p.setTargets(names...)
	if p.loop != nil {
		return p.loop.SetTargets(p.asTargets()...)
	}
	return nil
}

func (p *player) apply(files []string) error {
	objs, err := p.manifests(files)
	p.scene.Source.Apply(objs...)
	return err
}

func (p *player) remove(files []string) error {
	objs, err := p.manifests(files)
	if err == nil && !p.scene.Source.Delete(objs...) {
		err = errors.New("what is deleted is not there")
	}
	return err
}

// manifests reads the objects of files of the script.
func (p *player) manifests(names []string) (objs []runtime.Object, err error) {
	for _, name := range names {
		text, ok := p.files[name]
		if !ok {
			return nil, fmt.Errorf("the script has no file %s", name)
		}
		more, err := k8swatch.ParseManifests(name, []byte(text))
		if err != nil {
			return nil, err
		}
		if len(more) == 0 {
			return nil, fmt.Errorf("%s has no objects", name)
		}
		for _, obj := range more {
			objs = append(objs, obj)
		}
	}
	return objs, nil
}

func advance(duration string) error {
	d, err := time.ParseDuration(duration)
	if err != nil || d <= 0 {
		return fmt.Errorf("%q is not a duration", duration)
	}
	<-time.After(d)
	return nil
}

// patience is how long wait deployed waits, in the time of the script.
const patience = 5 * time.Minute

// waitDeployed waits for the render that the debounce interval may hold back,
// and then for the instances.
func (p *player) waitDeployed(names []string) error {
	hold := p.options.Debounce
	if hold == 0 {
		hold = 500 * time.Millisecond
	}
	targets, err := p.named(names)
	if err != nil {
		return err
	}
	<-time.After(hold)
	var missing []string
	for end := time.Now().Add(patience); time.Now().Before(end); <-time.After(hold / 5) {
		synctest.Wait()
		missing = nil
		for _, t := range targets {
			if cfg := t.Current(); cfg == nil || cfg.Hash() != p.loop.State().Validated {
				missing = append(missing, fmt.Sprintf("%s has not the newest %s", t.Name(), p.state(t.Name()).Error))
			}
		}
		if len(missing) == 0 {
			return nil
		}
	}
	return fmt.Errorf("not deployed after %s: %s; %s", patience, strings.Join(missing, "; "), p.loop.State().LastError)
}

// named returns targets by name, or all.
func (p *player) named(names []string) ([]*Target, error) {
	if len(names) == 0 {
		return p.targets, nil
	}
	var found []*Target
	for _, name := range names {
		i := slices.IndexFunc(p.targets, func(t *Target) bool { return t.Name() == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no instance %s", name)
		}
		found = append(found, p.targets[i])
	}
	return found, nil
}

// each does something to named targets.
func (p *player) each(names []string, do func(*Target)) error {
	targets, err := p.named(names)
	for _, t := range targets {
		do(t)
	}
	return err
}

// fail makes the deployments of an instance fail.
func (p *player) fail(args []string) error {
	e := &dataplane.Error{Endpoint: args[0], Stage: "probe"}
	switch args[1] {
	case "conflict":
		e.Err = dataplane.ErrConflict
	case "invalid":
		e.Err = dataplane.ErrInvalid
	case "reload":
		e.Stage, e.Err = "reload", dataplane.ErrReload
	case "unauthorized":
		e.Err, e.Status = dataplane.ErrUnauthorized, 401
	case "down":
		e.Err = &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	default:
		status, err := strconv.Atoi(args[1])
		if err != nil || status < 400 || status > 599 {
			return fmt.Errorf("an instance cannot fail with %q", args[1])
		}
		e.Status, e.Err = status, errors.New("unexpected answer")
	}
	return p.each(args[:1], func(t *Target) { t.Fail(fmt.Errorf("sync: %w", e)) })
}

func (p *player) setInvalid(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.invalid = err
}

func (p *player) leads(yes bool) {
	p.following.Store(!yes)
	if p.loop != nil {
		p.loop.LeadershipChanged()
	}
}
