package config

import (
	"cmp"
	"path"
)

// Layout says in which folders a HAProxy finds its files. Package dataplane documents it.
type Layout struct {
	Base         string // folder of haproxy.cfg; zero means /etc/haproxy
	Maps         string // zero means Base/maps
	Certificates string // zero means Base/ssl
	General      string // CA files, crt-lists and everything else; zero means Base/general
}

// Path returns the path under which the configuration refers to a file.
func (l Layout) Path(kind FileKind, name string) string { return path.Join(l.Dir(kind), name) }

// Dir returns the folder in which files of that kind lie.
func (l Layout) Dir(kind FileKind) string {
	switch kind {
	case Map:
		return cmp.Or(l.Maps, path.Join(l.base(), "maps"))
	case Certificate:
		return cmp.Or(l.Certificates, path.Join(l.base(), "ssl"))
	default:
		return cmp.Or(l.General, path.Join(l.base(), "general"))
	}
}

func (l Layout) base() string { return cmp.Or(l.Base, "/etc/haproxy") }

// ConfigPath returns the path of haproxy.cfg.
func (l Layout) ConfigPath() string { return path.Join(l.base(), "haproxy.cfg") }
