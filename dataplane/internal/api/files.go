package api

import (
	"bytes"
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/hapticsdk/haptic/dataplane/internal/config"
	"github.com/hapticsdk/haptic/internal/dpapi"
)

// fileRef names a stored file. Its kind stands for a storage: CA files, crt-lists and all
// others share the storage of general files.
type fileRef struct {
	kind config.FileKind
	name string
}

func refOf(f config.File) fileRef {
	if f.Kind == config.Map || f.Kind == config.Certificate {
		return fileRef{f.Kind, f.Name}
	}
	return fileRef{config.General, f.Name}
}

func (r fileRef) storage() dpapi.Storage {
	switch r.kind {
	case config.Map:
		return dpapi.Maps
	case config.Certificate:
		return dpapi.Certificates
	default:
		return dpapi.General
	}
}

func sortRefs(refs []fileRef) {
	slices.SortFunc(refs, func(a, b fileRef) int {
		return strings.Compare(string(a.storage())+"/"+a.name, string(b.storage())+"/"+b.name)
	})
}

// fileWrite is one file to store.
type fileWrite struct {
	file    config.File
	create  bool   // it is not there yet
	runtime bool   // a certificate that the running process takes over, too
	old     []byte // content before; nil for a certificate, which the API does not give out
}

// onWire returns the content to send for a file. An empty map becomes one with a comment,
// because the API refuses an empty body. A certificate has no blank lines and a line feed at
// its end, because HAProxy ends a payload at the first blank line.
func onWire(f config.File) []byte {
	switch {
	case f.Kind == config.Map && len(bytes.TrimSpace(f.Content)) == 0:
		return []byte("# empty\n")
	case f.Kind != config.Certificate:
		return f.Content
	}
	var b bytes.Buffer
	for line := range bytes.Lines(f.Content) {
		line = bytes.TrimSpace(line)
		if len(line) > 0 {
			b.Write(line)
			b.WriteByte('\n')
		}
	}
	return b.Bytes()
}

// write stores one file. If the process did not take over a certificate, it returns the id of
// the reload that the API has scheduled; otherwise "".
func (c *Client) write(ctx context.Context, w fileWrite) (reloadID string, err error) {
	ref, content := refOf(w.file), onWire(w.file)
	put := func(create bool) error {
		switch {
		case w.runtime && create:
			reloadID, err = c.api.LoadCertificate(ctx, ref.name, content)
		case w.runtime:
			reloadID, err = c.api.SwapCertificate(ctx, ref.name, content)
		case create:
			err = c.api.CreateFile(ctx, ref.storage(), ref.name, content)
		default:
			err = c.api.ReplaceFile(ctx, ref.storage(), ref.name, content)
		}
		return err
	}
	otherwise := http.StatusNotFound // another writer deleted it
	if w.create {
		otherwise = http.StatusConflict // another writer was faster, or our last answer got lost
	}
	if err = put(w.create); isStatus(err, otherwise) {
		err = put(!w.create)
	}
	if err != nil {
		delete(c.certs, ref.name)
		return "", fileError(err, w.file.Kind, w.file.Name)
	}
	if w.file.Kind == config.Certificate {
		c.certs[ref.name] = w.file.Content
	}
	return reloadID, nil
}

// undoFiles restores the former files, as far as their content is known, and deletes new
// ones. It does not touch certificates that the process has taken over.
func (c *Client) undoFiles(ctx context.Context, written []fileWrite) error {
	for _, w := range slices.Backward(written) {
		ref := refOf(w.file)
		var err error
		switch {
		case w.create:
			err = except(c.api.DeleteFile(ctx, ref.storage(), ref.name), http.StatusConflict, http.StatusNotFound)
		case w.old != nil:
			_, err = c.write(ctx, fileWrite{file: config.File{Kind: w.file.Kind, Name: w.file.Name, Content: w.old}})
		}
		if err != nil {
			return fileError(err, w.file.Kind, w.file.Name)
		}
	}
	return nil
}

// fileChanges compares stored with desired files, and lists the files to write and delete.
func fileChanges(stored, desired []config.File) (writes []fileWrite, deletes []fileRef) {
	old := map[fileRef]config.File{}
	for _, f := range stored {
		old[refOf(f)] = f
	}
	for _, f := range desired {
		was, ok := old[refOf(f)]
		delete(old, refOf(f))
		switch {
		case !ok:
			writes = append(writes, fileWrite{file: f, create: true})
		case !bytes.Equal(was.Content, f.Content):
			writes = append(writes, fileWrite{file: f, old: was.Content})
		}
	}
	for ref := range old {
		deletes = append(deletes, ref)
	}
	sortRefs(deletes)
	return writes, deletes
}

// deleteFiles deletes files that nothing needs any more. The API refuses to delete a file
// that its configuration names; such a file stays.
func (c *Client) deleteFiles(ctx context.Context, refs []fileRef) (deleted int, err error) {
	for _, ref := range refs {
		err := c.api.DeleteFile(ctx, ref.storage(), ref.name)
		switch {
		case err == nil:
			deleted++
			if ref.kind == config.Certificate {
				delete(c.certs, ref.name)
			}
		case isStatus(err, http.StatusNotFound):
		case isStatus(err, http.StatusConflict):
			c.log.Warn("a file stays because the configuration names it", "storage", ref.storage(), "file", ref.name)
		default:
			return deleted, fileError(err, ref.kind, ref.name)
		}
	}
	return deleted, nil
}

// replaceable returns stored without the files that stay although they are not desired. Those
// are the files that the text or a crt-list names, and all files in a folder that is named as
// a whole. Beside another owner, all files that are not ours stay.
func (c *Client) replaceable(j *job, stored []config.File) []config.File {
	desired := map[fileRef]bool{}
	texts := []func() string{j.wanted.Main} // a function: most calls need no joined text
	for _, f := range j.desired.Files {
		desired[refOf(f)] = true
		if f.Kind == config.CRTList {
			texts = append(texts, func() string { return string(f.Content) })
		}
	}
	whole := map[config.FileKind]func() bool{}
	for _, kind := range []config.FileKind{config.Map, config.Certificate, config.General} {
		dir := c.opts.Layout.Dir(kind)
		whole[kind] = sync.OnceValue(func() bool {
			return slices.ContainsFunc(texts, func(t func() string) bool { return namesFolder(t(), dir) })
		})
	}
	return slices.DeleteFunc(slices.Clone(stored), func(f config.File) bool {
		ref := refOf(f)
		if desired[ref] {
			return false
		}
		_, owned := c.ledger.owned[ref.entry()]
		return c.opts.KeepFiles || c.opts.Shared && !owned || whole[ref.kind]() ||
			slices.ContainsFunc(texts, func(t func() string) bool { return strings.Contains(t(), ref.name) })
	})
}

// namesFolder reports whether a text names a folder as such, or files in it by a pattern.
// Base folders ("-base" keywords) do not count, because the names of the files follow
// elsewhere.
func namesFolder(text, dir string) bool {
	for line := range strings.Lines(text) {
		first, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		if strings.HasSuffix(first, "-base") || !strings.Contains(line, dir) {
			continue
		}
		for _, rest := range strings.Split(line, dir)[1:] {
			if end := strings.IndexAny(rest, " \t\n\"',()"); end >= 0 {
				rest = rest[:end]
			}
			if rest == "" || rest == "/" || rest[0] == '/' && strings.ContainsAny(rest, "?*%$[") {
				return true
			}
		}
	}
	return false
}

// checkFiles refuses certificates that the storage would refuse with status 500. It also
// refuses a file with the name of the ledger.
func checkFiles(desired *config.Config) error {
	for _, f := range desired.Files {
		sentinel, why := error(nil), ""
		switch {
		case refOf(f) == ledgerFile:
			sentinel, why = config.ErrInvalid, "the name is taken by the ledger: choose another one"
		case f.Kind == config.Certificate:
			sentinel, why = checkCertificate(f.Content)
		}
		if sentinel != nil {
			return &config.Error{Stage: "check", File: string(f.Kind) + " " + f.Name, Err: sentinel, Output: why}
		}
	}
	return nil
}
