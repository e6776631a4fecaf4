package ingress

import (
	"iter"
	"maps"
	"path/filepath"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/reconcile/claims"
	"github.com/hapticsdk/haptic/reconcile/endpoints"
	"github.com/hapticsdk/haptic/templating/regex"
)

// earlier is what a configuration of these templates shows of the process that made it. The
// owners keep what they still claim. The zero value knows nothing.
type earlier struct {
	owners  map[string]string              // namespaces, by host
	holders map[line]claims.Holder[string] // backends
	tls     map[string]claims.Holder[Name] // Secrets, by host
	slots   map[string]endpoints.Slots     // by backend
	files   map[string][]byte              // certificates
}

// readEarlier reads a configuration; nil: there is none.
func readEarlier(previous *dataplane.Config) earlier {
	if previous == nil {
		return earlier{}
	}
	e := earlier{
		owners: maps.Collect(claims.Entries(previous, "hosts.map")), holders: map[line]claims.Holder[string]{}, tls: map[string]claims.Holder[Name]{},
		slots: endpoints.ReadSlots(previous), files: map[string][]byte{},
	}
	for _, f := range previous.Files() {
		if f.Kind == dataplane.Certificate {
			e.files[f.Name] = f.Content
		}
	}
	serves := func(of line, backend string) {
		ns, _, _ := strings.Cut(backend, "_")
		e.holders[of] = claims.Holder[string]{By: claims.Claimant{Namespace: ns}, Serves: backend}
	}
	for kind, name := range pathMaps() {
		for key, backend := range claims.Entries(previous, name) {
			serves(line{kind, strings.TrimPrefix(key, regex.Limit)}, backend)
		}
	}
	for text := range strings.Lines(previous.Main()) {
		if words := strings.Fields(text); len(words) == 2 && words[0] == "default_backend" && strings.Contains(words[1], "_") {
			serves(line{}, words[1])
		}
	}
	for file, host := range tlsHostsOf(previous) {
		e.tls[host] = claims.Holder[Name]{Serves: secretOfFile(file)}
	}
	return e
}

// HasHosts reports whether a configuration of these templates says who owns which host. That of
// a new instance does not.
func HasHosts(previous *dataplane.Config) bool {
	if previous == nil {
		return false
	}
	_, ok := previous.File(dataplane.Map, "hosts.map")
	return ok
}

// pathMaps are the maps of paths, by the kind of their lines.
func pathMaps() map[networkingv1.PathType]string {
	return map[networkingv1.PathType]string{networkingv1.PathTypeExact: "exact.map", networkingv1.PathTypePrefix: "prefix.map", pattern: "paths_reg.map"}
}

// tlsHostsOf yields the files and hosts of the crt-list.
func tlsHostsOf(cfg *dataplane.Config) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		list, _ := cfg.File(dataplane.CRTList, "certificates.txt")
		for line := range strings.Lines(string(list.Content)) {
			words := strings.Fields(line)
			for i := 1; i < len(words) && words[0] != "#"; i++ {
				if !strings.HasPrefix(words[i], "!") && !yield(filepath.Base(words[0]), words[i]) {
					return
				}
			}
		}
	}
}
