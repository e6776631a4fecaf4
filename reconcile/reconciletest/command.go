package reconciletest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/reconcile"
)

// command does what one line says, and lets everything happen that can happen at
// this time.
func (p *player) command(words []string) error {
	verb, args := words[0], words[1:]
	var err error
	switch verb {
	case "expect", "cmp":
		if p.loop == nil {
			return errors.New("nothing can be expected before start")
		}
		err = p.expectation(verb, args)
	case "instance":
		err = p.instances(args)
	case "create", "update", "delete":
		err = p.change(verb, args)
	case "start":
		err = p.start()
	case "trigger", "advance", "wait":
		if p.loop == nil {
			return fmt.Errorf("%s: the controller has not been started", verb)
		}
		err = p.pass(verb, args)
	case "fail":
		err = p.fail(args)
	case "hang", "recover", "drift":
		err = p.fault(verb, args)
	case "leader":
		err = p.leader(args)
	default:
		return fmt.Errorf("there is no command %q", verb)
	}
	if err != nil {
		return err
	}
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ended
}

func (p *player) instances(names []string) error {
	if len(names) == 0 {
		return errors.New("instance needs names")
	}
	p.setTargets(names...)
	if p.loop != nil {
		return p.loop.SetTargets(p.asTargets()...)
	}
	return nil
}

// change creates, updates or deletes the objects of files.
func (p *player) change(verb string, names []string) error {
	if len(names) == 0 {
		return fmt.Errorf("%s needs files", verb)
	}
	for _, name := range names {
		objs, err := p.manifests(name)
		if err != nil {
			return err
		}
		for _, obj := range objs {
			there := p.exists(obj)
			switch {
			case verb == "create" && there:
				return fmt.Errorf("%s is there already", describe(obj))
			case verb != "create" && !there:
				return fmt.Errorf("%s is not there", describe(obj))
			case verb == "delete":
				p.scene.Source.Delete(obj)
			default:
				p.scene.Source.Apply(obj)
			}
		}
	}
	return nil
}

func describe(obj k8swatch.Object) string {
	return obj.GetObjectKind().GroupVersionKind().Kind + " " + strings.TrimPrefix(obj.GetNamespace()+"/"+obj.GetName(), "/")
}

func (p *player) exists(obj k8swatch.Object) bool {
	gvr, _ := meta.UnsafeGuessKindToResource(obj.GetObjectKind().GroupVersionKind())
	return slices.ContainsFunc(p.scene.Source.List(gvr), func(o k8swatch.Object) bool {
		return o.GetNamespace() == obj.GetNamespace() && o.GetName() == obj.GetName()
	})
}

// manifests reads the objects of a file of the script.
func (p *player) manifests(name string) ([]k8swatch.Object, error) {
	text, ok := p.files[name]
	if !ok {
		return nil, fmt.Errorf("the script has no file %s", name)
	}
	objs, err := k8swatch.ParseManifests(name, []byte(text))
	if err == nil && len(objs) == 0 {
		err = fmt.Errorf("%s has no objects", name)
	}
	return objs, err
}

// pass lets time pass, or asks for a reconciliation.
func (p *player) pass(verb string, args []string) error {
	switch {
	case verb == "trigger" && len(args) == 0:
		p.loop.Trigger("the script")
		return nil
	case verb == "advance" && len(args) == 1:
		d, err := time.ParseDuration(args[0])
		if err != nil || d <= 0 {
			return fmt.Errorf("%q is not a duration", args[0])
		}
		<-time.After(d)
		return nil
	case verb == "wait" && len(args) > 0 && args[0] == "deployed":
		return p.waitDeployed(args[1:])
	}
	return errors.New("want trigger, advance DURATION, or wait deployed [NAME...]")
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
		missing = missing[:0]
		want := p.loop.State().Validated
		for _, t := range targets {
			if cfg := t.Current(); cfg == nil || cfg.Hash() != want {
				missing = append(missing, p.stateOf(t.Name()))
			}
		}
		if len(missing) == 0 {
			return nil
		}
	}
	if e := p.loop.State().LastError; e != "" {
		missing = append(missing, "the last reconciliation: "+e)
	}
	return fmt.Errorf("not deployed after %s: %s", patience, strings.Join(missing, "; "))
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

// stateOf describes an instance for the message of a failure.
func (p *player) stateOf(name string) string {
	e, ok := p.state(name)
	if !ok {
		return name + " is not an instance of the loop"
	}
	if e.Error != "" {
		return fmt.Sprintf("%s failed %d times: %s", name, e.Failures, e.Error)
	}
	return name + " has not the newest"
}

func (p *player) state(name string) (reconcile.InstanceState, bool) {
	for _, e := range p.loop.State().Instances {
		if e.Name == name {
			return e, true
		}
	}
	return reconcile.InstanceState{}, false
}

func (p *player) fail(args []string) error {
	switch {
	case len(args) == 2 && args[0] == "validation":
		p.setInvalid(errors.New(args[1]))
		return nil
	case len(args) == 3 && args[0] == "instance":
		targets, err := p.named(args[1:2])
		if err != nil {
			return err
		}
		fault, ok := faultOf(args[1], args[2])
		if !ok {
			return fmt.Errorf("an instance cannot fail with %q", args[2])
		}
		targets[0].Fail(fault)
		return nil
	}
	return errors.New("want fail instance NAME WHY, or fail validation MESSAGE")
}

func (p *player) setInvalid(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.invalid = err
}

func (p *player) fault(verb string, args []string) error {
	if verb == "recover" && len(args) == 1 && args[0] == "validation" {
		p.setInvalid(nil)
		return nil
	}
	if len(args) != 2 || args[0] != "instance" {
		return fmt.Errorf("want %s instance NAME", verb)
	}
	targets, err := p.named(args[1:])
	if err != nil {
		return err
	}
	switch verb {
	case "hang":
		targets[0].Hang()
	case "recover":
		targets[0].Fail(nil)
	case "drift":
		targets[0].Drift(nil)
	}
	return nil
}

func (p *player) leader(args []string) error {
	if len(args) != 1 || args[0] != "lost" && args[0] != "won" {
		return errors.New("want leader lost, or leader won")
	}
	p.following.Store(args[0] == "lost")
	if p.loop != nil {
		p.loop.LeadershipChanged()
	}
	return nil
}
