package dataplanetest

import (
	"net"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/dataplane/dataplanetest/internal/daemon"
)

// Raw returns the text on disk, without the lines that the API adds.
func (s *Server) Raw() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return withoutHeader(s.diskText())
}

// diskText returns the text on disk. The lock is held.
func (s *Server) diskText() string {
	text, err := os.ReadFile(s.file)
	if err != nil {
		s.report(err)
	}
	return string(text)
}

// Memory returns the text that the API believes is stored. It differs from
// [Server.Raw] after a failed reload, until the next push.
func (s *Server) Memory() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return withoutHeader(s.memory)
}

// Version returns the version of the configuration.
func (s *Server) Version() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

// Reloads returns all reloads so far, failed ones too.
func (s *Server) Reloads() []Reload {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.reloads)
}

// Actions returns all runtime actions and other runtime changes that clients asked for, in
// order: "SetServerAddr be s1 192.0.2.1 80", "set map hosts.map key value".
func (s *Server) Actions() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.actions)
}

// Requests returns all requests so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Files returns the names of all files of that kind, sorted. CA files and
// crt-lists are general files.
func (s *Server) Files(kind dataplane.FileKind) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	names, err := s.names(kind)
	if err != nil {
		s.report(err)
	}
	return names
}

// File returns the content of a file.
func (s *Server) File(kind dataplane.FileKind, name string) (content []byte, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	content, err := os.ReadFile(s.disk.Path(kind, name))
	if err != nil && !os.IsNotExist(err) {
		s.report(err)
	}
	return content, err == nil
}

// SetFile stores a file behind the back of the API's clients; nil content removes it. The
// running process keeps what it has loaded.
func (s *Server) SetFile(kind dataplane.FileKind, name string, content []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	path := s.disk.Path(kind, name)
	var err error
	if content == nil {
		err = os.Remove(path)
	} else {
		err = os.WriteFile(path, content, 0o644)
	}
	if err != nil {
		s.report(err)
	}
}

// asked returns the answer of the running process, "" if it does not answer. The lock is
// held.
func (s *Server) asked(command string) string {
	out, err := s.proc.Ask(command)
	if err != nil {
		s.report(err)
	}
	return out
}

// LoadedMap returns the entries of a map in the running process, nil if the process has not
// loaded it.
func (s *Server) LoadedMap(name string) map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.asked("show map " + s.opts.Layout.Path(dataplane.Map, name))
	if strings.HasPrefix(out, "Unknown map") {
		return nil
	}
	entries := map[string]string{}
	for line := range strings.Lines(out) {
		if f := strings.SplitN(strings.TrimSpace(line), " ", 3); len(f) == 3 {
			entries[f[1]] = f[2]
		}
	}
	return entries
}

// LoadedServer returns the address and the administrative state (ready, drain or maint) of a
// server in the running process, "" if there is none.
func (s *Server) LoadedServer(backend, server string) (address, state string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, srv := range readServers(s.asked("show servers state " + backend)) {
		if srv.Name == server {
			return net.JoinHostPort(srv.Address, strconv.Itoa(srv.Port)), srv.AdminState
		}
	}
	return "", ""
}

// LoadedCertificate returns the SHA-1 fingerprint of the certificate that the running process
// has loaded from a file of that name, "" if there is none. The digits are upper-case
// hexadecimal.
func (s *Server) LoadedCertificate(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fingerprint(s.asked("show ssl cert " + s.opts.Layout.Path(dataplane.Certificate, name)))
}

// WorkerPID returns the process that serves. Without a haproxy it is a number that changes at
// every reload.
func (s *Server) WorkerPID() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proc.PID()
}

// ReloadCommand returns a command that makes the haproxy behind the server reload, as words
// separated by blanks, and the master socket. A real Dataplane API needs both to take the
// place of this one. Both are "" without a haproxy.
func (s *Server) ReloadCommand() (command, masterSocket string) {
	if d, ok := s.proc.(*daemon.Process); ok {
		return d.ReloadCommand()
	}
	return "", ""
}
