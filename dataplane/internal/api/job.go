package api

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/hapticsdk/haptic/dataplane/internal/change"
	"github.com/hapticsdk/haptic/dataplane/internal/config"
	"github.com/hapticsdk/haptic/dataplane/internal/diff"
	"github.com/hapticsdk/haptic/internal/dpapi"
)

// job is the work of one attempt.
type job struct {
	desired *config.Config
	wanted  *config.Config // what to store, in the normal form of the API
	before  known          // what is stored now; its config is nil if it cannot be compared
	ledger  ledger         // the ledger after the job
	repair  bool           // the API has another text in memory than on disk
	target  change.Target
	pid     int  // of the process; 0 if the API does not report it
	direct  bool // the API can change addresses and weights on their own

	running *config.Config // what the process has
	steps   []change.Step
	writes  []fileWrite
	deletes []fileRef

	// The fields below change while the job runs.
	written  []fileWrite
	sent     bool // the process has a change that the stored text does not undo
	first    bool // the process gets all changes before anything is stored
	readable bool // all changes of the process can be read back
	complete bool // the process has all its changes
	stored   []config.File
	late     map[change.ServerRef]lateServer // the late servers that the push changes
}

func (j *job) impact() change.Impact { return change.ImpactOf(j.steps) }

func (j *job) pushes() bool {
	header, _ := j.header()
	return j.repair || j.before.config == nil || !j.wanted.SameMain(j.before.config) || j.impact() == change.Reload || len(header) > 0
}

func (j *job) empty() bool {
	return len(j.steps) == 0 && !j.pushes() && len(j.writes) == 0 && len(j.deletes) == 0
}

// readsBack reports whether all changes of the process can be read back.
func (j *job) readsBack() bool {
	for _, do := range change.RuntimeChanges(j.steps) {
		switch do := do.(type) {
		case *change.ChangeListEntry, *change.SetCA:
			return false
		case *change.ChangeEntries:
			if do.File.Kind != config.Map || !j.readsMap(do.File.Name) {
				return false
			}
		case *change.AddServer:
			if changedByProcess(do.Server) {
				return false
			}
		case *change.SetServer:
			if changedByProcess(do.Server) {
				return false
			}
		}
	}
	return j.target.Version.Compare(change.HAProxy27) >= 0
}

// changedByProcess reports whether the process itself changes a server.
func changedByProcess(s *config.Server) bool { return s.Has("agent-check") || s.Has("track") }

// readsMap reports whether a map can be read back. That fails if the stored map has values
// that the API cuts, or if rules write into it.
func (j *job) readsMap(name string) bool {
	if j.before.config == nil {
		return false
	}
	f, ok := j.before.config.File(config.Map, name)
	return ok && safeMap(f.Content) && !diff.WrittenByRules(j.before.config.Index(), name) && !diff.WrittenByRules(j.wanted.Index(), name)
}

// prepare finds out what differs. It reads only what is unknown from the endpoint, and
// changes nothing there.
func (c *Client) prepare(ctx context.Context, info dpapi.Info, desired *config.Config) (*job, error) {
	j := &job{desired: desired}
	err := checkFiles(desired)
	if err != nil {
		return nil, err
	}
	if j.target, j.pid, err = c.inspect(ctx, info); err != nil {
		return nil, err
	}
	j.direct = change.ParseVersion(strings.TrimSpace(info.APIVersion)).Compare(change.API34) >= 0 // an API without a readable version may be older
	if c.restarted(j.pid) && c.storing != nil {
		return nil, errStoring
	}
	parts, err := c.desired.Sections(desired.Index().Texts())
	if err != nil {
		return nil, refused(err)
	}
	fromMemory := c.isKnown(info)
	if fromMemory {
		j.before = *c.known
	} else if err := c.readText(ctx, j); err != nil {
		return nil, err
	}
	j.ledger = newLedger(desired, parts, c.opts.Shared)
	if c.opts.Shared {
		if parts, err = c.merge(j.before.text, parts); err != nil {
			return nil, err
		}
	}
	if j.wanted, err = config.NewFrom(c.last(), parts, desired.Files...); err != nil {
		return nil, &config.Error{Stage: "check", File: config.MainFile, Err: err}
	}
	var running *config.Config
	if fromMemory {
		files := c.replaceable(j, c.known.config.Files)
		running = c.known.config.WithFiles(files)
		j.before.config = running
		if c.ahead != nil {
			running = c.ahead.wanted.WithFiles(c.replaceable(j, c.ahead.wanted.Files))
		}
		j.writes, j.deletes = fileChanges(files, desired.Files)
	} else if running, err = c.readAll(ctx, j); err != nil {
		return nil, err
	}
	if running == nil {
		j.steps = []change.Step{reloadStep("configuration", "the stored configuration cannot be compared")}
		return j, nil
	}
	c.compare(j, running)
	return j, nil
}

// last returns the last configuration. The next one shares its unchanged sections, and
// everything derived from them.
func (c *Client) last() *config.Config {
	switch {
	case c.ahead != nil:
		return c.ahead.wanted
	case c.known != nil:
		return c.known.config
	}
	return config.Empty()
}

// compare finds the steps from what the process runs to the desired configuration.
func (c *Client) compare(j *job, running *config.Config) {
	j.running, j.steps = running, diff.Compare(running, j.wanted, j.target)
	limit(j.steps)
	if c.ahead == nil {
		j.steps = diff.WithDrift(j.steps, j.before.config, running, j.wanted, j.target)
	}
	if c.doubt {
		j.steps = append(j.steps, reloadStep("process", "an earlier attempt ended without saying what it achieved"))
	}
	j.prepareWrites()
}

// reloadStep returns a step for a reload that no difference causes.
func reloadStep(kind, reason string) change.Step {
	step := change.Step{Action: change.Update, Kind: kind}
	step.Needs(reason)
	return step
}

// prepareWrites makes the process take over certificates when they are stored. If a
// certificate is stored but the process does not have it, it is stored again.
func (j *job) prepareWrites() {
	if j.impact() == change.Reload {
		return
	}
	for _, do := range change.RuntimeChanges(j.steps) {
		f, ok := storedTold(do)
		if !ok {
			continue
		}
		at := slices.IndexFunc(j.writes, func(w fileWrite) bool { return refOf(w.file) == refOf(f) })
		if at >= 0 {
			j.writes[at].runtime = true
		} else {
			j.writes = append(j.writes, fileWrite{file: f, runtime: true})
		}
	}
}

// storedTold returns the certificate that the process takes over when it is stored.
func storedTold(do change.Do) (f config.File, ok bool) {
	switch do := do.(type) {
	case *change.SetCertificate:
		return do.File, true
	case *change.NewCertificate:
		return do.File, true
	}
	return f, false
}

// onlyRuntime cuts a job down to what needs no reload. It returns nil if nothing can be done
// now.
func (c *Client) onlyRuntime(j *job, out *change.Outcome) *job {
	out.Left, out.Hash = j.steps, ""
	if c.doubt || j.repair || j.before.config == nil {
		return nil
	}
	partial := diff.RuntimePart(j.running, j.wanted, j.steps, j.target)
	if partial == j.running {
		return nil
	}
	p := &job{desired: partial, wanted: partial, before: j.before, target: j.target, pid: j.pid, direct: j.direct}
	p.ledger = newLedger(partial, partial.Index().Texts(), c.opts.Shared)
	owned := c.ledger.open(p.ledger).owned // what the partial configuration lacks stays ours
	maps.Copy(owned, p.ledger.owned)
	p.ledger.owned = owned
	p.writes, _ = fileChanges(j.before.config.Files, partial.Files)
	if c.compare(p, j.running); p.impact() == change.Reload {
		return nil // the API may not be able to do it
	}
	out.Left, out.Hash = diff.Compare(partial, j.wanted, j.target), partial.Hash()
	limit(out.Left)
	return p
}
