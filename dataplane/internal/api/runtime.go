package api

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hapticsdk/haptic/dataplane/internal/change"
	"github.com/hapticsdk/haptic/dataplane/internal/config"
	"github.com/hapticsdk/haptic/internal/dpapi"
)

// maxEntries bounds the changed entries of maps and patterns. Above it, one reload is cheaper
// than a request for each entry.
const maxEntries = 2000

// limit turns the steps that the Dataplane API cannot do into reloads.
func limit(steps []change.Step) {
	whole := map[string]string{} // why a file takes a reload
	entries := 0
	for i := range steps {
		s := &steps[i]
		if s.Do == nil {
			continue
		}
		why := whyNot(s.Do)
		do, ofEntries := s.Do.(*change.ChangeEntries)
		if ofEntries {
			entries += len(do.Entries)
		}
		if why == "" && entries > maxEntries {
			why = "more than " + strconv.Itoa(maxEntries) + " entries change"
		}
		if why != "" && ofEntries {
			whole[string(do.File.Kind)+" "+do.File.Name] = why
		}
		s.Needs(why)
	}
	for i := range steps { // the other steps of the same file
		if s := &steps[i]; s.Impact == change.Runtime && s.Do == nil {
			s.Needs(whole[s.Parent] + whole[s.Kind+" "+s.Name])
		}
	}
}

const whyUnsafe = "it has characters that the Dataplane API cannot pass on"

// whyNot says why the Dataplane API cannot carry a change out, or "".
func whyNot(do change.Do) string {
	if ref := change.RefOf(do); ref.Server != "" && (!dpapi.SafeWord(ref.Backend) || !dpapi.SafeWord(ref.Server)) {
		return whyUnsafe
	}
	switch do := do.(type) {
	case *change.SetServer:
		for _, set := range do.Set {
			if !dpapi.SafeWord(set.Value) {
				return whyUnsafe
			}
		}
	case *change.AddServer:
		_, why := addedServer(do.Server)
		return why
	case *change.ChangeEntries:
		switch {
		case config.SpeaksOfSecrets(do.File.Name):
			return "its entries would stand in requests, which are logged"
		case do.Whole:
			return "the Dataplane API cannot keep the order of entries, or a key that occurs twice"
		}
		for _, e := range do.Entries {
			if !dpapi.SafeWord(e.Key) || e.Action != change.Delete && do.File.Kind == config.Map && !dpapi.SafeWord(e.Value) {
				return whyUnsafe
			}
		}
	case *change.ChangeListEntry:
		if slices.ContainsFunc(do.Entry, func(w string) bool { return !dpapi.SafeWord(w) }) {
			return whyUnsafe
		}
		if cert := do.Entry.Certificate(); !strings.Contains(cert, "/") || strings.Contains(cert, ":") {
			return "the certificate of the entry is not named by its path"
		}
		if options, filters := do.Entry.Split(); len(options) > 0 && len(filters) == 0 {
			return "the Dataplane API cannot send an entry with options but without filters"
		}
	}
	return ""
}

// addedServer returns the fields of a server in the form of the API. Otherwise it says why
// the added server would differ from the same server after a reload.
func addedServer(s *config.Server) (fields map[string]any, why string) {
	address, _ := s.Literal()
	fields = map[string]any{"name": s.Name, "address": address.Addr().String(), "port": int(address.Port())}
	if address.Addr().Is6() {
		fields["address"] = "[" + address.Addr().String() + "]"
	}
	for _, keyword := range slices.Sorted(maps.Keys(s.Options)) { // sorted, so that the reason is always the same
		values := s.Options[keyword]
		row, _ := change.AddableKeyword(keyword)
		switch {
		case keyword == "state":
			continue
		case keyword == "check" || keyword == "agent-check":
			return nil, "the Dataplane API cannot turn on the health checks of a server that it adds"
		case row.Field == "" || len(values) != 1:
			return nil, fmt.Sprintf("the Dataplane API cannot add a server with %s", keyword)
		}
		n, err := strconv.ParseInt(values[0], 10, 64)
		switch {
		case row.As == change.AsFlag:
			fields[row.Field] = "enabled"
		case row.As == change.AsNumber && err == nil:
			fields[row.Field] = n
		case row.As == change.AsWord && dpapi.SafeWord(values[0]):
			fields[row.Field] = values[0]
		default:
			return nil, fmt.Sprintf("the Dataplane API cannot add a server with %s %s", keyword, values[0])
		}
	}
	return fields, ""
}

// header returns the runtime actions of a push without a reload. They change the servers of
// the steps, unless that happened before the push, and all late servers. sets counts the
// settings of the steps. A server goes into maintenance before anything else changes, and
// leaves it last.
func (j *job) header() (actions []string, sets int) {
	if j.impact() == change.Reload {
		return nil, 0
	}
	add := func(ref change.ServerRef, settings []change.Setting) {
		for _, set := range change.InOrder(settings) {
			actions = append(actions, set.Row.Header(ref, set.Value))
		}
	}
	for _, one := range change.RuntimeChanges(j.steps) {
		do, ok := one.(*change.SetServer)
		if j.first || !ok {
			continue
		}
		sets += len(do.Set)
		if _, late := j.late[do.Ref]; !late {
			add(do.Ref, do.Set)
		}
	}
	for _, ref := range slices.SortedFunc(maps.Keys(j.late), change.ServerRef.Compare) {
		add(ref, j.late[ref].set)
	}
	return actions, sets
}

// storeTold stores the certificates that the process takes over when they are stored. If the
// process does not take one over, the job becomes one with a reload.
func (c *Client) storeTold(ctx context.Context, j *job, out *change.Outcome) error {
	writes := j.writes
	j.writes = nil
	for _, w := range writes {
		if !w.runtime || j.impact() == change.Reload {
			j.writes = append(j.writes, w)
			continue
		}
		if err := c.writeFile(ctx, j, w, out); err != nil {
			return err
		}
	}
	return nil
}

// sendRuntime changes the running process, except for changes that go with a push or a stored
// certificate. It then reads the servers back.
func (c *Client) sendRuntime(ctx context.Context, j *job, out *change.Outcome) error {
	deadline := time.Now().Add(serverLeaves)
	dos := change.RuntimeChanges(j.steps)
	for _, do := range dos {
		_, set := do.(*change.SetServer)
		if _, stored := storedTold(do); stored || set && !j.first {
			continue // done elsewhere
		}
		j.sent = true
		n, err := c.tellOne(ctx, j, do, deadline)
		out.Commands += n
		if err != nil {
			return errorAt("runtime", err)
		}
	}
	return c.readBack(ctx, dos)
}

func (c *Client) tellOne(ctx context.Context, j *job, do change.Do, deadline time.Time) (calls int, err error) {
	path := func(f config.File) string { return c.opts.Layout.Path(f.Kind, f.Name) }
	switch do := do.(type) {
	case *change.SetServer:
		return c.setServer(ctx, j, do)
	case *change.AddServer:
		return 1, c.addServer(ctx, do.Ref, do.Server)
	case *change.DeleteServer:
		return 1, c.deleteServer(ctx, do.Ref, deadline)
	case *change.ChangeEntries:
		return len(do.Entries), c.changeEntries(ctx, do, path(do.File))
	case *change.DeleteCertificate:
		return 1, except(c.api.ForgetCertificate(ctx, path(do.File)), http.StatusNotFound)
	case *change.ChangeListEntry:
		return 1, c.changeList(ctx, do, path(do.File))
	case *change.SetCA:
		return 1, c.api.SetCAFile(ctx, path(do.File), do.File.Content)
	}
	return 0, fmt.Errorf("the Dataplane API has no way for change %T", do)
}

func (c *Client) addServer(ctx context.Context, ref change.ServerRef, server *config.Server) error {
	fields, _ := addedServer(server)
	fields["name"] = ref.Server
	if err := c.api.AddServer(ctx, ref.Backend, fields); err != nil || server.Disabled() {
		return err
	}
	return c.setState(ctx, ref, change.Ready)
}

// serverLeaves bounds how long sendRuntime waits for the last connections of all servers that go.
// After that a reload is better: the old process serves the connections to their end.
const serverLeaves = time.Second

func (c *Client) deleteServer(ctx context.Context, r change.ServerRef, deadline time.Time) error {
	if late, ok := c.late[r]; ok {
		delete(c.late, r)
		if late.standIn != "" {
			if err := c.retireNow(ctx, change.ServerRef{Backend: r.Backend, Server: late.standIn}); err != nil {
				return err
			}
		}
	}
	for wait := 10 * time.Millisecond; ; wait *= 2 {
		err := except(c.api.DeleteServer(ctx, r.Backend, r.Server), http.StatusNotFound)
		if !isStatus(err, http.StatusInternalServerError) || time.Now().Add(wait).After(deadline) || !sleep(ctx, wait) {
			return err
		}
	}
}

// changeEntries changes entries of a map, or patterns of ACLs. The id of patterns changes at
// each reload, so changePatterns looks it up by the path.
func (c *Client) changeEntries(ctx context.Context, do *change.ChangeEntries, path string) error {
	if do.File.Kind != config.Map {
		return c.changePatterns(ctx, do, path)
	}
	for _, e := range do.Entries {
		var err error
		switch e.Action {
		case change.Create:
			if err = c.api.AddMapEntry(ctx, do.File.Name, e.Key, e.Value); isStatus(err, http.StatusConflict) {
				err = c.api.SetMapEntry(ctx, do.File.Name, e.Key, e.Value)
			}
		case change.Delete:
			err = except(c.api.DeleteMapEntry(ctx, do.File.Name, e.Key), http.StatusNotFound)
		default:
			err = c.api.SetMapEntry(ctx, do.File.Name, e.Key, e.Value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *Client) changePatterns(ctx context.Context, do *change.ChangeEntries, path string) error {
	files, err := c.api.ACLFiles(ctx)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(files, func(f dpapi.ACLFile) bool { return f.Path == path })
	if at < 0 {
		return fmt.Errorf("%s %s is not loaded: %w", do.File.Kind, do.File.Name, errNotApplied)
	}
	id := files[at].ID
	loaded, err := c.api.ACLEntries(ctx, id)
	if err = except(err, http.StatusNotFound); err != nil { // an empty list answers with this status, too
		return err
	}
	stands := map[string][]string{} // the ids of each pattern
	for _, entry := range loaded {
		stands[entry.Value] = append(stands[entry.Value], entry.ID)
	}
	for _, e := range do.Entries {
		switch {
		case e.Action == change.Delete:
			for _, entry := range stands[e.Key] {
				if err := except(c.api.DeleteACLEntry(ctx, id, entry), http.StatusNotFound); err != nil {
					return err
				}
			}
		case len(stands[e.Key]) == 0:
			if err := c.api.AddACLEntry(ctx, id, e.Key); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *Client) changeList(ctx context.Context, do *change.ChangeListEntry, list string) error {
	if do.Action != change.Create {
		if err := c.api.DeleteCrtListEntry(ctx, list, do.Entry.Certificate()); err != nil || do.Action == change.Delete {
			return err
		}
	}
	options, filters := do.Entry.Split()
	return c.api.AddCrtListEntry(ctx, list, dpapi.CrtListEntry{
		File: do.Entry.Certificate(), Options: strings.Join(options, " "), Filters: filters,
	})
}
