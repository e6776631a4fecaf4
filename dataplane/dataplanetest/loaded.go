package dataplanetest

import (
	"net"
	"strconv"
	"strings"
)

// asked is what the running process answers, "" if it does not. The lock is
// held.
func (s *Server) asked(command string) string {
	out, err := s.proc.ask(command)
	if err != nil {
		s.report(err)
	}
	return out
}

// LoadedMap returns the entries that a map has in the running process, nil if
// no process has loaded it.
func (s *Server) LoadedMap(name string) map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.asked("show map " + s.store("maps").path(name))
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

// LoadedServer returns the address and the administrative state (ready, drain
// or maint) that a server has in the running process, "" if there is none.
func (s *Server) LoadedServer(backend, server string) (address, state string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.asked("show servers state " + backend)
	for _, srv := range parseServers(out) {
		if srv.Name == server {
			port := int64(0)
			if srv.Port != nil {
				port = *srv.Port
			}
			return net.JoinHostPort(srv.Address, strconv.FormatInt(port, 10)), srv.AdminState
		}
	}
	return "", ""
}

// LoadedCertificate returns the SHA-1 fingerprint, in upper-case hexadecimal
// digits, of the certificate that the running process has loaded from a file of
// that name, "" if there is none.
func (s *Server) LoadedCertificate(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for line := range strings.Lines(s.asked("show ssl cert " + s.store("ssl_certificates").path(name))) {
		if sum, ok := strings.CutPrefix(line, "SHA1 FingerPrint: "); ok {
			return strings.TrimSpace(sum)
		}
	}
	return ""
}

// Runtime sends a command to the running process behind the API's back, such as
// "set server be/s1 state maint", and returns its answer: drift. What a Server
// without a haproxy understands is what the API's own endpoints lead to.
func (s *Server) Runtime(command string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked(command)
}
