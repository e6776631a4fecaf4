package dataplane

import "github.com/hapticsdk/haptic/dataplane/internal/config"

// Layout says in which folders a HAProxy finds its files, as absolute paths on the machine
// where that HAProxy runs. The text of a configuration names files by [Layout.Path]. The zero
// value is the default of the Dataplane API: everything below /etc/haproxy.
type Layout struct {
	Base         string // folder of haproxy.cfg; zero means /etc/haproxy
	Maps         string // zero means Base/maps
	Certificates string // zero means Base/ssl
	General      string // CA files, crt-lists and everything else; zero means Base/general
}

// Path returns the path under which the configuration refers to a file.
func (l Layout) Path(kind FileKind, name string) string {
	return config.Layout(l).Path(config.FileKind(kind), name)
}

// Dir returns the folder in which files of that kind lie.
func (l Layout) Dir(kind FileKind) string { return config.Layout(l).Dir(config.FileKind(kind)) }

// ConfigPath returns the path of haproxy.cfg.
func (l Layout) ConfigPath() string { return config.Layout(l).ConfigPath() }
