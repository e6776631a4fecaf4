package api

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/hapticsdk/haptic/dataplane/internal/change"
	"github.com/hapticsdk/haptic/dataplane/internal/config"
	"github.com/hapticsdk/haptic/dataplane/internal/diff"
	"github.com/hapticsdk/haptic/internal/dpapi"
	"github.com/hapticsdk/haptic/internal/haproxycfg"
)

// inspect asks for the versions of the API and of HAProxy. It fails with ErrUnsupported for
// an API of version 2 or older.
func (c *Client) inspect(ctx context.Context, info dpapi.Info) (target change.Target, pid int, err error) {
	version := strings.TrimSpace(info.APIVersion)
	target = change.Target{Transport: change.API, API: change.ParseVersion(version)}
	switch {
	case target.API == (change.Version{}): // for example a build from a branch
		target.API = change.APINewest
	case target.API.Compare(change.API30) < 0:
		return target, 0, &config.Error{
			Stage: "probe", Err: config.ErrUnsupported,
			Output: fmt.Sprintf("the Dataplane API is of version %.12s, which is older than %s: update it", version, change.API30),
		}
	}
	process, err := c.api.Process(ctx)
	_, err = answered("probe", err)
	target.Version = change.ParseVersion(process.Version) // zero if the API does not give it out
	return target, process.PID, err
}

// readText reads the stored text and the ledger.
func (c *Client) readText(ctx context.Context, j *job) error {
	raw, err := c.api.GetRaw(ctx)
	if err != nil {
		return errorAt("read", err)
	}
	j.before.text, j.before.version = raw.Text, raw.Version
	j.repair = raw.FileVersion != 0 && raw.FileVersion != raw.Version
	return c.readLedger(ctx)
}

// readAll reads the stored files and makes the stored configuration of them and the stored
// text. From that it derives the configuration that the process runs, and returns it. It
// returns nil if the stored configuration cannot be compared.
func (c *Client) readAll(ctx context.Context, j *job) (*config.Config, error) {
	files, err := c.readFiles(ctx, j)
	if err != nil {
		return nil, err
	}
	j.writes, j.deletes = fileChanges(files, j.desired.Files)
	text := j.before.text
	if !c.comparable(text, j.wanted.Main()) {
		c.log.Warn("the stored configuration is too large to be compared", "bytes", len(text))
		return nil, nil
	}
	if text != j.wanted.Main() {
		// A text that the API has not rewritten yet is easier to compare in its normal form.
		if n, err := c.stored.Normalise(text); err == nil {
			text = n
		}
	}
	if strings.TrimSpace(text) == "" {
		j.before.config = config.Empty().WithFiles(files)
	} else if j.before.config, err = config.New(text, files...); err != nil {
		c.log.Warn("the stored configuration cannot be compared", "error", err)
		return nil, nil
	}
	process, err := c.readProcess(ctx, j, j.before.config)
	if err != nil {
		return nil, err
	}
	return diff.Running(j.before.config, process), nil
}

// comparable reports whether a stored text may be parsed. A lying API could send a text that
// takes hours to parse, and no other instance would be served meanwhile. Beside another owner
// a text may have any size.
func (c *Client) comparable(stored, wanted string) bool {
	return c.opts.Shared || len(stored) <= 4*len(wanted)+1<<20 && len(haproxycfg.Split(stored)) <= 4*len(haproxycfg.Split(wanted))+1000
}

// listFiles lists stored files, except the ledger and files that no configuration can have.
func (c *Client) listFiles(ctx context.Context, kinds ...config.FileKind) ([]fileRef, error) {
	var refs []fileRef
	for _, kind := range kinds {
		storage := fileRef{kind: kind}.storage()
		listed, err := c.api.Files(ctx, storage)
		if err != nil {
			return nil, errorAt("files", fmt.Errorf("list %s: %w", storage, err))
		}
		for _, info := range listed {
			ref := fileRef{kind, info.Name}
			if ref != ledgerFile && config.CheckFileName(ref.kind, ref.name) == nil {
				refs = append(refs, ref)
			}
		}
	}
	return refs, nil
}

// readFiles reads the stored files as far as the API gives them out. It skips files that stay
// although they are not desired.
func (c *Client) readFiles(ctx context.Context, j *job) ([]config.File, error) {
	c.looked = time.Now()
	refs, err := c.listFiles(ctx, config.Map, config.Certificate, config.General)
	if err != nil {
		return nil, err
	}
	desired := map[fileRef]config.File{}
	for _, f := range j.desired.Files {
		desired[refOf(f)] = f
	}
	var files []config.File
	for _, ref := range refs {
		f, ok := desired[ref]
		switch {
		case ok && f.Kind == config.Certificate:
			f, err = c.readCertificate(ctx, j, f)
		case ok:
			f, err = c.readFile(ctx, f)
		default:
			f = config.File{Kind: ref.kind, Name: ref.name}
		}
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return c.replaceable(j, files), nil
}

// readFile returns the stored version of a desired file.
func (c *Client) readFile(ctx context.Context, want config.File) (config.File, error) {
	content, err := c.api.ReadFile(ctx, refOf(want).storage(), want.Name)
	if err != nil {
		return want, readError(err, want)
	}
	if string(content) != string(onWire(want)) {
		want.Content = content
	}
	return want, nil
}

// Current returns what is stored: the text, maps and general files. The API gives out no
// certificates. Current returns nil if no configuration is stored.
func (c *Client) Current(ctx context.Context) (*config.Config, error) {
	ctx, end, err := c.begin(ctx, change.Limits{})
	if err != nil {
		return nil, err
	}
	defer end()
	raw, err := c.api.GetRaw(ctx)
	if err != nil {
		return nil, errorAt("read", err)
	}
	if strings.TrimSpace(raw.Text) == "" {
		return nil, nil
	}
	refs, err := c.listFiles(ctx, config.Map, config.General)
	if err != nil {
		return nil, err
	}
	var files []config.File
	kinds := config.GeneralKinds(raw.Text)
	for _, ref := range refs {
		content, err := c.api.ReadFile(ctx, ref.storage(), ref.name)
		if ok, err := answered("read", err); err != nil {
			return nil, err
		} else if !ok {
			continue // it was deleted a moment ago, or it is a socket
		}
		kind := ref.kind
		if k, ok := kinds[ref.name]; ok && ref.kind == config.General {
			kind = k
		}
		files = append(files, config.File{Kind: kind, Name: ref.name, Content: content})
	}
	current, err := config.New(raw.Text, files...)
	if err != nil {
		return nil, config.At("read", err)
	}
	return current, nil
}
