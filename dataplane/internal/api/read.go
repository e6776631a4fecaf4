package api

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/hapticsdk/haptic/dataplane/internal/change"
	"github.com/hapticsdk/haptic/dataplane/internal/config"
	"github.com/hapticsdk/haptic/internal/dpapi"
)

// inspect asks what API and what HAProxy an endpoint has. It fails with
// ErrUnsupported for an API of version 2 or older.
func (c *call) inspect(ctx context.Context, j *job) error {
	if !j.info.AtLeast(change.API30.Major, change.API30.Minor) {
		return &config.Error{
			Stage: "probe", Err: config.ErrUnsupported,
			Output: fmt.Sprintf("the Dataplane API is of version %s, which is older than %s: update it", strings.TrimSpace(j.info.APIVersion), change.API30),
		}
	}
	j.target = change.Target{Transport: change.API, API: change.ParseVersion(strings.TrimSpace(j.info.APIVersion))}
	if j.target.API == (change.Version{}) {
		j.target.API = change.APINewest
	}
	process, err := c.api.Process(ctx)
	switch status := dpapi.Status(err); {
	case err == nil:
		j.target.Version = change.ParseVersion(process.Version)
	case status == 0 || status == 401 || status == 403:
		return errorAt("probe", err)
	default:
		c.log.Debug("the Dataplane API does not tell which HAProxy runs", "error", err)
	}
	return nil
}

// readText reads the stored text and the ledger.
func (c *call) readText(ctx context.Context, j *job) error {
	raw, err := c.api.GetRaw(ctx)
	if err != nil {
		return errorAt("read", err)
	}
	j.before.text, j.before.version = raw.Text, raw.Version
	j.repair = raw.FileVersion != 0 && raw.FileVersion != raw.Version
	return c.readLedger(ctx)
}

// readStored reads the stored files, makes a configuration of them and the stored
// text, and of that the one that the process runs.
func (c *call) readStored(ctx context.Context, j *job) error {
	files, err := c.readFiles(ctx, j)
	if err != nil {
		return err
	}
	text := j.before.text
	if text != j.text {
		// A text that the API has not rewritten yet compares better in its normal form.
		if n, err := c.stored.Normalise(text); err == nil {
			text = n
		}
	}
	if strings.TrimSpace(text) == "" {
		j.before.config = config.Empty().WithFiles(files)
		return nil
	}
	if j.before.config, err = config.New(text, files...); err != nil {
		c.log.Warn("the stored configuration cannot be compared", "error", err)
		j.before.config = nil
	}
	return nil
}

// readFiles reads the stored files as far as the API tells them, and lists what has
// to be written and deleted.
func (c *call) readFiles(ctx context.Context, j *job) ([]config.File, error) {
	desired := map[fileRef]config.File{}
	for _, f := range j.desired.Files {
		desired[refOf(f)] = f
	}
	keep := c.keeper(j)
	var files []config.File
	c.looked = time.Now()
	for _, storage := range []dpapi.Storage{dpapi.Maps, dpapi.Certificates, generalStorage} {
		listed, err := c.api.Files(ctx, storage)
		if err != nil {
			return nil, errorAt("files", fmt.Errorf("list %s: %w", storage, err))
		}
		for _, info := range listed {
			ref := fileRef{storage, info.Name}
			want, ok := desired[ref]
			switch {
			case ref == ledgerFile:
				continue
			case !ok:
				f := config.File{Kind: ref.kind(), Name: info.Name}
				if config.CheckFileName(f.Kind, f.Name) == nil && !keep(ref) {
					files = append(files, f)
					j.deletes = append(j.deletes, ref)
				}
				continue
			}
			delete(desired, ref)
			stored, write, err := c.readFile(ctx, j, want)
			if err != nil {
				return nil, err
			}
			files = append(files, stored)
			if write != nil {
				j.writes = append(j.writes, *write)
			}
		}
	}
	for _, f := range j.desired.Files {
		if _, missing := desired[refOf(f)]; missing {
			j.writes = append(j.writes, fileWrite{file: f, create: true})
		}
	}
	sortRefs(j.deletes)
	return files, nil
}

// readFile returns the stored version of a desired file and what must be written, nil
// if nothing.
func (c *call) readFile(ctx context.Context, j *job, want config.File) (config.File, *fileWrite, error) {
	if want.Kind == config.Certificate {
		return c.readCertificate(ctx, j, want)
	}
	content, err := c.api.ReadFile(ctx, refOf(want).storage, want.Name)
	if err != nil {
		return config.File{}, nil, readError(err, want)
	}
	if string(content) == string(onWire(want)) {
		return want, nil, nil
	}
	return config.File{Kind: want.Kind, Name: want.Name, Content: content},
		&fileWrite{file: want, old: content, oldKnown: true}, nil
}

// readCertificate compares by what the API tells of the file, and by the hash in the
// ledger. A certificate without one in the ledger must be what the process has. Where
// that cannot be told either, it is stored and told again.
func (c *call) readCertificate(ctx context.Context, j *job, want config.File) (config.File, *fileWrite, error) {
	info, err := c.api.CertificateInfo(ctx, want.Name)
	if err != nil {
		return config.File{}, nil, readError(err, want)
	}
	unknown := config.File{Kind: want.Kind, Name: want.Name}
	if !looksLike(info, want) {
		if content, ok := c.certs[want.Name]; ok {
			if unknown.Content = content; looksLike(info, unknown) {
				return unknown, &fileWrite{file: want, old: content, oldKnown: true}, nil
			}
			unknown.Content = nil
		}
		return unknown, &fileWrite{file: want}, nil
	}
	hash := c.ledger.owned[refOf(want).entry()]
	if hash == "" {
		loaded, err := c.loadedFingerprint(ctx, j, want)
		if err != nil {
			return unknown, nil, err
		}
		if loaded != "" && loaded == config.Fingerprint(want.Content) {
			return want, nil, nil
		}
	}
	if hash != config.HashOf(want.Content)[:32] {
		return unknown, &fileWrite{file: want}, nil
	}
	return want, nil, nil
}

// current reads what is stored, as far as the API tells it.
func (c *call) current(ctx context.Context) (*config.Config, error) {
	raw, err := c.api.GetRaw(ctx)
	if err != nil {
		return nil, errorAt("read", err)
	}
	if strings.TrimSpace(raw.Text) == "" {
		return nil, nil
	}
	var files []config.File
	kinds := config.GeneralKinds(raw.Text)
	for _, storage := range []dpapi.Storage{dpapi.Maps, generalStorage} {
		listed, err := c.api.Files(ctx, storage)
		if err != nil {
			return nil, errorAt("files", fmt.Errorf("list %s: %w", storage, err))
		}
		for _, info := range listed {
			ref := fileRef{storage, info.Name}
			if ref == ledgerFile || config.CheckFileName(ref.kind(), ref.name) != nil {
				continue
			}
			content, err := c.api.ReadFile(ctx, storage, info.Name)
			if ok, err := told(err); err != nil {
				return nil, err
			} else if !ok {
				continue // it went a moment ago, or is a socket
			}
			kind := ref.kind()
			if k, ok := kinds[ref.name]; ok && storage == generalStorage {
				kind = k
			}
			files = append(files, config.File{Kind: kind, Name: ref.name, Content: content})
		}
	}
	current, err := config.New(raw.Text, files...)
	if err != nil {
		return nil, config.At("read", err)
	}
	return current, nil
}
