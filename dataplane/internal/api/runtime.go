package api

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/hapticsdk/haptic/dataplane/internal/change"
	"github.com/hapticsdk/haptic/dataplane/internal/config"
	"github.com/hapticsdk/haptic/internal/dpapi"
)

// maxEntries is the number of entries of maps and patterns beyond which one reload is
// cheaper than a request for each.
const maxEntries = 2000

// limit turns those steps into reloads for which the Dataplane API has no way.
func limit(steps []change.Step) {
	whole := map[string]string{} // why a file takes a reload
	entries := 0
	for i := range steps {
		s := &steps[i]
		if s.Do == nil {
			continue
		}
		why := whyNot(s.Do)
		if entries += len(s.Do.Entries); why == "" && entries > maxEntries {
			why = "more than " + strconv.Itoa(maxEntries) + " entries change"
		}
		if why != "" && s.Do.Verb == change.ChangeEntries {
			whole[string(s.Do.File.Kind)+" "+s.Do.File.Name] = why
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
func whyNot(do *change.Do) string {
	if do.Ref.Server != "" && (!dpapi.SafeWord(do.Ref.Backend) || !dpapi.SafeWord(do.Ref.Server)) {
		return whyUnsafe
	}
	switch do.Verb {
	case change.SetServer:
		for _, set := range do.Set {
			if !dpapi.SafeWord(set.Value) {
				return whyUnsafe
			}
		}
	case change.AddServer:
		_, why := addedServer(do.Server)
		return why
	case change.ChangeEntries:
		switch {
		case config.SpeaksOfSecrets(do.File.Name):
			return "its entries would stand in requests, which are logged"
		case do.Whole:
			return "the order of the entries, or a key that stands there twice, is beyond the Dataplane API"
		}
		for _, e := range do.Entries {
			if !dpapi.SafeWord(e.Key) || e.Action != change.Delete && do.File.Kind == config.Map && !dpapi.SafeWord(e.Value) {
				return whyUnsafe
			}
		}
	case change.AddListEntry, change.SetListEntry, change.DeleteListEntry:
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

// addedServer returns the fields of a server as the API wants them, or says why it
// would not be the same as after a reload.
func addedServer(s *config.Server) (fields map[string]any, why string) {
	address, _ := s.Literal()
	fields = map[string]any{"name": s.Name, "address": address.Addr().String(), "port": int(address.Port())}
	if address.Addr().Is6() {
		fields["address"] = "[" + address.Addr().String() + "]"
	}
	for _, keyword := range slices.Sorted(maps.Keys(s.Options)) { // so that the reason is always the same
		values := s.Options[keyword]
		row, _ := change.AddableKeyword(keyword)
		switch {
		case keyword == "state":
			continue
		case keyword == "check" || keyword == "agent-check":
			return nil, "nothing turns on the health checks of a server that the Dataplane API adds"
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
