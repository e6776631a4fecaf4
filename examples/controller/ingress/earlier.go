package ingress

import (
	"iter"
	"path/filepath"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/reconcile/endpoints"
)

// earlier is what a configuration of these templates shows of the process that made it: the
// owners of hosts, who serves a line, the servers of endpoints, and certificates. The owners
// keep what they still claim. Its nil pointer knows nothing.
type earlier struct {
	owners  map[string]string // namespaces, by host
	lines   map[line]string   // backends
	tlsFile map[string]string // files, by host
	slots   map[string]endpoints.Slots
	files   map[string][]byte // certificates
}

// readEarlier reads a configuration; nil: there is none.
func readEarlier(previous *dataplane.Config) *earlier {
	if previous == nil {
		return nil
	}
	e := &earlier{owners: map[string]string{}, lines: map[line]string{}, tlsFile: map[string]string{}, slots: endpoints.ReadSlots(previous), files: map[string][]byte{}}
	for _, f := range previous.Files() {
		if f.Kind == dataplane.Certificate {
			e.files[f.Name] = f.Content
		}
	}
	for host, ns := range linesOf(previous, "hosts.map") {
		e.owners[host] = ns
	}
	for kind, name := range pathMaps() {
		for key, backend := range linesOf(previous, name) {
			e.lines[line{kind, key}] = backend
		}
	}
	for text := range strings.Lines(previous.Main()) {
		if words := strings.Fields(text); len(words) == 2 && words[0] == "default_backend" && strings.Contains(words[1], "_") {
			e.lines[line{}] = words[1]
		}
	}
	for file, host := range tlsHostsOf(previous) {
		e.tlsFile[host] = file
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

func (e *earlier) owner(host string) string {
	if e == nil {
		return ""
	}
	return e.owners[host]
}

func (e *earlier) holder(of line) string {
	if e == nil {
		return ""
	}
	return e.lines[of]
}

func (e *earlier) tls(host string) string {
	if e == nil {
		return ""
	}
	return e.tlsFile[host]
}

func (e *earlier) slotsOf(backend string) endpoints.Slots {
	if e == nil {
		return nil
	}
	return e.slots[backend]
}

func (e *earlier) certificate(file string) []byte {
	if e == nil {
		return nil
	}
	return e.files[file]
}

// linesOf yields the keys and values of a map.
func linesOf(cfg *dataplane.Config, name string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		file, _ := cfg.File(dataplane.Map, name)
		for line := range strings.Lines(string(file.Content)) {
			words := strings.Fields(line)
			if len(words) == 2 && !strings.HasPrefix(line, "#") && !yield(words[0], words[1]) {
				return
			}
		}
	}
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
