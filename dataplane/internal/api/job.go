package api

import (
	"bytes"
	"context"

	"github.com/hapticsdk/haptic/dataplane/internal/change"
	"github.com/hapticsdk/haptic/dataplane/internal/config"
	"github.com/hapticsdk/haptic/dataplane/internal/diff"
	"github.com/hapticsdk/haptic/internal/dpapi"
)

// job is all that one attempt is going to do.
type job struct {
	desired *config.Config
	text    string // what is to be stored, in the normal form that the API gives it
	before  known  // what is there now; its config is nil where that cannot be compared
	ledger  ledger // when the job is done
	repair  bool   // the API has another text in memory than on disk
	info    dpapi.Info
	target  change.Target

	running *config.Config // what the process has
	steps   []change.Step
	writes  []fileWrite
	deletes []fileRef

	// What happens while the job is carried out.
	written []fileWrite
	told    bool // the process has been told something that the stored text does not undo
}

func (j *job) impact() change.Impact { return change.ImpactOf(j.steps) }

func (j *job) pushes() bool {
	return j.repair || j.before.config == nil || j.text != j.before.config.Main || j.impact() == change.Reload || len(j.header()) > 0
}

func (j *job) empty() bool {
	return len(j.steps) == 0 && !j.pushes() && len(j.writes) == 0 && len(j.deletes) == 0
}

// prepare finds out what differs. It reads from the endpoint only what is not known,
// and changes nothing there.
func (c *call) prepare(ctx context.Context, info dpapi.Info, desired *config.Config) (*job, error) {
	j := &job{desired: desired, info: info}
	if err := checkFiles(desired); err != nil {
		return nil, err
	}
	if err := c.inspect(ctx, j); err != nil {
		return nil, err
	}
	var err error
	if j.text, err = c.Client.desired.Normalise(desired.Main); err != nil {
		return nil, refused(err)
	}
	fromMemory := c.known != nil && c.known.version == info.Version
	if fromMemory {
		j.before = *c.known
	} else if err := c.readText(ctx, j); err != nil {
		return nil, err
	}
	j.ledger = newLedger(desired, j.text, c.opts.Shared)
	if c.opts.Shared {
		if err := c.merge(j); err != nil {
			return nil, err
		}
	}
	if fromMemory {
		j.writes, j.deletes = fileChanges(j.before.config, desired)
		return j, c.compare(j, j.before.config)
	}
	if err := c.readStored(ctx, j); err != nil {
		return nil, err
	}
	if j.before.config == nil {
		step := change.Step{Action: change.Update, Kind: "configuration"}
		step.Needs("the stored configuration cannot be compared")
		j.steps = []change.Step{step}
		return j, nil
	}
	process, err := c.readProcess(ctx, j, j.before.config)
	if err != nil {
		return nil, err
	}
	return j, c.compare(j, diff.Running(j.before.config, process))
}

// compare finds the steps from what the process runs to what is desired.
func (c *call) compare(j *job, running *config.Config) error {
	wanted, err := config.New(j.text, j.desired.Files...)
	if err != nil {
		return &config.Error{Stage: "check", File: config.MainFile, Err: err}
	}
	j.running, j.steps = running, diff.Compare(running, wanted, j.target)
	limit(j.steps)
	j.steps = diff.WithDrift(j.steps, j.before.config, running, wanted, j.target)
	if c.doubt {
		j.steps = append(j.steps, processStep("an earlier attempt ended without saying what it achieved"))
	}
	j.prepareWrites()
	return nil
}

// processStep is a reload for another reason than what differs.
func processStep(reason string) change.Step {
	step := change.Step{Action: change.Update, Kind: "process"}
	step.Needs(reason)
	return step
}

// prepareWrites has the process take over certificates as they are stored. One that
// the process does not have, although it is stored, is stored again for that.
func (j *job) prepareWrites() {
	if j.impact() == change.Reload {
		return
	}
	for _, do := range change.Tells(j.steps) {
		if do.Verb != change.SetCertificate && do.Verb != change.NewCertificate {
			continue
		}
		found := false
		for i := range j.writes {
			if w := &j.writes[i]; refOf(w.file) == refOf(do.File) {
				w.tell, found = true, true
			}
		}
		if !found {
			j.writes = append(j.writes, fileWrite{file: do.File, tell: true})
		}
	}
}

// fileChanges lists the files to write and delete against what was deployed before.
func fileChanges(before, desired *config.Config) (writes []fileWrite, deletes []fileRef) {
	old := map[fileRef]config.File{}
	for _, f := range before.Files {
		old[refOf(f)] = f
	}
	for _, f := range desired.Files {
		was, ok := old[refOf(f)]
		delete(old, refOf(f))
		switch {
		case !ok:
			writes = append(writes, fileWrite{file: f, create: true})
		case !bytes.Equal(was.Content, f.Content):
			writes = append(writes, fileWrite{file: f, old: was.Content, oldKnown: true})
		}
	}
	for ref := range old {
		deletes = append(deletes, ref)
	}
	sortRefs(deletes)
	return writes, deletes
}

// onlyRuntime cuts a job down to what needs no reload. It returns nil where nothing is
// left to do now.
func (c *call) onlyRuntime(j *job, out *change.Outcome) (*job, error) {
	out.Left, out.Hash = j.steps, ""
	if c.doubt || j.repair || j.before.config == nil {
		return nil, nil
	}
	wanted := j.desired.With(j.text)
	partial := diff.RuntimePart(j.running, wanted, j.steps, j.target)
	if partial == j.running {
		return nil, nil
	}
	p := &job{desired: partial, text: partial.Main, before: j.before, info: j.info, target: j.target}
	p.ledger = newLedger(partial, partial.Main, c.opts.Shared)
	for name, hash := range c.ledger.owned {
		if _, ok := p.ledger.owned[name]; !ok {
			p.ledger.owned[name] = hash
		}
	}
	p.writes, _ = fileChanges(j.before.config, partial)
	if err := c.compare(p, j.running); err != nil || p.impact() == change.Reload {
		return nil, err // the API may have no way for it
	}
	out.Left, out.Hash = diff.Compare(partial, wanted, j.target), partial.Hash()
	limit(out.Left)
	return p, nil
}
