package dataplane

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/hapticsdk/haptic/internal/dpapi"
	"github.com/hapticsdk/haptic/internal/haproxycfg"
)

// baseline is what a client knows to be deployed.
type baseline struct {
	hash     string  // of the desired configuration that led to it
	version  int64   // that the API counts for it
	deployed *Config // normalised text, and the files; nil if it cannot be one
	text     string  // as stored, which may be in another form than that of deployed
}

// job is all that one attempt is going to do.
type job struct {
	desired *Config
	text    string   // what is to be stored, normalised
	push    string   // what to send for it
	before  baseline // what is there now
	repair  bool     // the API has another text in memory than on disk
	told    bool     // the running process may have part of it already
	open    bool     // what an earlier attempt achieved was not known before
	api     dpapi.Info
	plan    *Plan

	target Target // the API, and what runs; that is zero if the API does not tell
	pid    int    // process that serves, 0 if the API does not tell

	writes   []fileWrite
	deletes  []fileRef
	actions  []string // for X-Runtime-Actions
	entries  []entryChange
	replaces []mapReplace
	servers  []serverChange
	limits   map[string]string // connections at most, by frontend
	lists    []listChange
	patterns []*action
	cas      []File // CA files that change
	forgets  []File // certificates that the process need not have any more
	pending  string // the reload that the API has scheduled of its own accord

	ours    owned              // what belongs to us, with the strategy Transaction
	owned   owned              // what did before, where that has been written over
	changes []structuredChange // what makes j.text of the stored one then
}

// impact is what the whole job costs.
func (j *job) impact() Impact { return j.plan.Impact() }

func (j *job) pushes() bool {
	return j.repair || j.before.deployed == nil || j.text != j.before.deployed.main ||
		j.impact() == ImpactReload || len(j.actions) > 0
}

func (j *job) empty() bool {
	return !j.pushes() && len(j.writes) == 0 && len(j.deletes) == 0 && j.calls() == 0
}

// prepare finds out what differs. It reads from the endpoint only what is not
// known, and changes nothing there.
func (c *Client) prepare(ctx context.Context, info dpapi.Info, desired *Config) (*job, error) {
	j := &job{desired: desired, api: info}
	if err := c.checkFiles(desired); err != nil {
		return nil, err
	}
	if err := c.inspect(ctx, j); err != nil {
		return nil, err
	}
	var err error
	if j.text, err = c.norm.Normalise(desired.Main()); err != nil {
		return nil, c.refused(err)
	}
	j.push = desired.Main()
	fromMemory := c.known != nil && c.known.version == info.Version && c.known.deployed != nil
	if fromMemory {
		j.before = *c.known
	} else if err := c.readText(ctx, j); err != nil {
		return nil, err
	}
	if c.opts.Strategy == Transaction {
		if err := c.shared(ctx, j); err != nil {
			return nil, err
		}
	}
	if severalDefaults(j.text) && !keepsDefaults(j.push) {
		j.push = j.text
	}
	wanted, err := NewConfig(j.text, desired.Files()...)
	if err != nil {
		return nil, &Error{Endpoint: c.Name(), Stage: "check", File: configFile, Err: err}
	}
	if fromMemory {
		j.fromMemory()
	} else if err := c.readRemote(ctx, j); err != nil {
		return nil, err
	}
	if j.before.deployed == nil {
		j.plan = &Plan{Ops: []Op{{
			Action: Update, Kind: "configuration", Impact: ImpactReload, Reason: "what is stored cannot be compared",
		}}}
		return j, nil
	}
	d, err := compare(j.before.deployed, wanted, j.target)
	if err != nil {
		return nil, &Error{Endpoint: c.Name(), Stage: "diff", Err: err}
	}
	if c.unsettled && c.late.hasFailed(j.pid) {
		c.unsettled, c.late = false, lateReload{}
		c.unmark(ctx, j.text)
	}
	c.settle(j, d)
	if c.opts.Strategy == Transaction && j.impact() == ImpactReload && j.text != j.before.deployed.main {
		j.changes, err = c.structuredChanges(desired, j.before.deployed.main, j.text)
	}
	return j, err
}

// severalDefaults reports whether a normalised text has more than one defaults
// section. Then its proxies must name theirs when it is sent: the API orders the
// sections of what it gets, but adds no "from", so that all proxies without one
// would fall under the last.
func severalDefaults(normal string) bool {
	return strings.Count("\n"+normal, "\ndefaults ") > 1
}

// keepsDefaults reports whether a text has its defaults sections where the API
// puts them: by name and above all else that falls under one, as in what it has
// written itself.
func keepsDefaults(text string) bool {
	last, proxies := "", false
	for _, s := range haproxycfg.Split(text) {
		switch s.Kind {
		case "defaults":
			if proxies || s.Name == "" || s.Name == "from" || s.Name < last {
				return false
			}
			last = s.Name
		case "frontend", "backend", "listen":
			proxies = true
		}
	}
	return true
}

// fromMemory lists the file changes against what was deployed before.
func (j *job) fromMemory() {
	old := map[fileRef]File{}
	for _, f := range j.before.deployed.files {
		old[refOf(f)] = f
	}
	for _, f := range j.desired.files {
		ref := refOf(f)
		was, ok := old[ref]
		delete(old, ref)
		switch {
		case !ok:
			j.writes = append(j.writes, fileWrite{file: f, create: true})
		case string(was.Content) != string(f.Content):
			j.writes = append(j.writes, fileWrite{file: f, old: was.Content, oldKnown: true})
		}
	}
	for ref := range old {
		j.deletes = append(j.deletes, ref)
	}
	sortRefs(j.deletes)
}

// readText reads the stored text.
func (c *Client) readText(ctx context.Context, j *job) error {
	raw, err := c.api.GetRaw(ctx)
	if err != nil {
		return c.errorAt("read", err)
	}
	j.before.text, j.before.version = raw.Text, raw.Version
	j.repair = raw.FileVersion != 0 && raw.FileVersion != raw.Version
	c.owned = nil
	return nil
}

// readRemote reads the stored files and makes a configuration of them and the
// stored text.
func (c *Client) readRemote(ctx context.Context, j *job) error {
	files, err := c.readFiles(ctx, j)
	if err != nil {
		return err
	}
	text := j.before.text
	if text != j.text {
		// A text that the API has not rewritten yet, or one of another version
		// of it, compares better in the order of our parser.
		if n, err := c.stored.Normalise(text); err == nil {
			text = n
		}
	}
	deployed, err := NewConfig(text, files...)
	if err != nil {
		c.log.Warn("what is stored cannot be compared", "error", err)
		return nil
	}
	j.before.deployed = deployed
	return nil
}

// readFiles reads the stored files as far as the API gives them out, and lists
// what has to be written and deleted.
func (c *Client) readFiles(ctx context.Context, j *job) ([]File, error) {
	desired := map[fileRef]File{}
	for _, f := range j.desired.files {
		desired[refOf(f)] = f
	}
	keep := c.keeper(j)
	var files []File
	c.looked = time.Now()
	for _, storage := range []dpapi.Storage{dpapi.Maps, dpapi.Certificates, dpapi.General} {
		listed, err := c.api.Files(ctx, storage)
		if err != nil {
			return nil, c.errorAt("files", fmt.Errorf("list %s: %w", storage, err))
		}
		if storage == unfinished.storage {
			c.marked = markState{} // until it is found
		}
		for _, info := range listed {
			ref := fileRef{storage, info.Name}
			if ref == unfinished {
				if err := c.readMark(ctx); err != nil {
					return nil, err
				}
				continue
			}
			if ref == ownedFile && c.opts.Strategy == Transaction {
				continue
			}
			want, ok := desired[ref]
			if !ok {
				if f := (File{Kind: ref.kind(), Name: info.Name}); CheckFileName(f.Kind, f.Name) == nil && !keep(ref) {
					files = append(files, f)
					j.deletes = append(j.deletes, ref)
				}
				continue
			}
			delete(desired, ref)
			stored, write, err := c.readFile(ctx, want)
			if err != nil {
				return nil, err
			}
			files = append(files, stored)
			if write != nil {
				j.writes = append(j.writes, *write)
			}
		}
	}
	for _, f := range j.desired.files {
		if _, missing := desired[refOf(f)]; missing {
			j.writes = append(j.writes, fileWrite{file: f, create: true})
		}
	}
	sortRefs(j.deletes)
	return files, nil
}

// readFile returns the stored version of a desired file and what must be
// written, nil if nothing.
func (c *Client) readFile(ctx context.Context, want File) (File, *fileWrite, error) {
	if want.Kind == Certificate {
		return c.readCertificate(ctx, want)
	}
	content, err := c.api.ReadFile(ctx, refOf(want).storage, want.Name)
	if err != nil {
		return File{}, nil, c.readError(err, want)
	}
	if string(content) == string(onWire(want)) {
		return want, nil, nil
	}
	return File{Kind: want.Kind, Name: want.Name, Content: content},
		&fileWrite{file: want, old: content, oldKnown: true}, nil
}

// readCertificate compares by what the API tells. A certificate of the same
// size and serial number is taken for the same, but what this client has not
// stored itself it stores again, without a reload, for a key alone may differ.
func (c *Client) readCertificate(ctx context.Context, want File) (File, *fileWrite, error) {
	info, err := c.api.CertificateInfo(ctx, want.Name)
	if err != nil {
		return File{}, nil, c.readError(err, want)
	}
	known, ours := c.certs[want.Name]
	same := looksLike(info, want)
	old := File{Kind: want.Kind, Name: want.Name, Content: known}
	switch {
	case same && string(known) == string(want.Content):
		return want, nil, nil
	case ours && looksLike(info, old):
		return old, &fileWrite{file: want, old: known, oldKnown: true}, nil
	case same && !ours:
		return want, &fileWrite{file: want, quiet: true}, nil
	}
	return File{Kind: want.Kind, Name: want.Name}, &fileWrite{file: want}, nil
}

// looksLike reports whether what the API tells of a stored certificate is true
// of that one.
func looksLike(info dpapi.FileInfo, f File) bool {
	content := onWire(f)
	return info.Size == int64(len(content)) && (info.Serial == "" || hasSerial(content, info.Serial))
}

// isStatus reports whether the API answered with that status.
func isStatus(err error, status int) bool {
	return status == dpapi.Status(err) && status != 0
}

// checkFiles refuses certificates that the storage would refuse, and files in
// the places of our own.
func (c *Client) checkFiles(desired *Config) error {
	for _, f := range desired.files {
		if refOf(f) == unfinished || refOf(f) == ownedFile {
			return &Error{
				Endpoint: c.Name(), Stage: "check", File: string(f.Kind) + " " + f.Name, Err: ErrInvalid, Output: "the name is taken",
			}
		}
		if f.Kind != Certificate {
			continue
		}
		if sentinel, why := checkCertificate(f.Content); sentinel != nil {
			return &Error{
				Endpoint: c.Name(), Stage: "check", File: string(f.Kind) + " " + f.Name, Err: sentinel, Output: why,
			}
		}
	}
	return nil
}
