package dataplanetest

import (
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/dataplane/dataplanetest/internal/daemon"
	"github.com/hapticsdk/haptic/dataplane/dataplanetest/internal/pretender"
	"github.com/hapticsdk/haptic/internal/haproxyctl"
)

// Options configure a [Server]. The zero value, like nil, is an API of version 3.2 without a
// haproxy behind it.
type Options struct {
	Username string // zero means "admin"
	Password string // zero means "secret"

	// APIVersion is the version that the Server reports. Zero means "v3.2.4". Before 3.2 it
	// reloads for every certificate that changes.
	APIVersion string

	// Config is the text that the Server starts with, as written by hand. Zero means a small
	// one that listens nowhere.
	Config string

	// Layout says where the files lie. The Server ignores it if HAProxy is set.
	Layout dataplane.Layout

	// Validate says why a text is refused, "" if it is not. Nil accepts every text. The
	// Server ignores it if HAProxy is set: then haproxy validates.
	Validate func(text string) string

	// ReloadDelay is the time to the next scheduled reload. Zero means 100 ms.
	ReloadDelay time.Duration

	// HAProxy, if set, puts a real haproxy behind the API.
	HAProxy *HAProxy
}

const defaultConfig = `global
  maxconn 100

defaults
  mode http
  timeout connect 1s
  timeout client 10s
  timeout server 10s
`

// HAProxy says which haproxy stands behind a [Server].
type HAProxy struct {
	Binary string // zero means haproxy in PATH, or where packages put it
	Dir    string // folder for its files: absolute, and short because sockets lie there; zero means a new one
}

// process is the haproxy behind the API, real or pretended.
type process interface {
	// Command sends a command as the Dataplane API does, which asks for messages with a
	// severity: "[3]: No such server.".
	Command(command string) (string, error)
	// Ask sends a command for the methods of Server.
	Ask(command string) (string, error)
	Reload() error
	PID() int
	Stop()
}

// Server is a Dataplane API for tests.
type Server struct {
	opts   Options
	report func(error) // called with errors of files
	http   *httptest.Server
	proc   process
	dir    string // folder to remove, "" if there is none

	disk  dataplane.Layout               // where the files are; Layout is where HAProxy finds them
	check func(file, text string) string // says why a text is refused; nil takes every text
	mux   *http.ServeMux

	mu sync.Mutex
	stored
	reloads   []Reload
	pending   *time.Timer
	next      string // identifier of the pending reload
	scheduled int    // number of identifiers given
	requests  []Request
	actions   []string
	faults    []*Fault
	behind    []string // texts that another writer stores just before a push
	failing   []string // outputs with which the next reloads fail
	closed    bool
}

// Request is one request as it arrived, before any fault.
type Request struct {
	Method string
	Path   string // below /v3, not escaped
	Query  string // raw
	Body   string
	Status int // of the answer, 0 if there is none
}

// New starts a Server that stops at the end of the test. Nil options are the zero options.
// Internal errors fail the test.
func New(t testing.TB, options *Options) *Server {
	t.Helper()
	s, err := start(options, func(err error) { t.Errorf("dataplanetest: %v", err) })
	if err != nil {
		t.Fatalf("dataplanetest: %v", err)
	}
	t.Cleanup(s.Close)
	return s
}

// Start starts a Server outside of a test, such as in an example or a demo. The
// caller closes it. Nil options are the zero options.
func Start(options *Options) (*Server, error) {
	return start(options, func(err error) { panic(err) })
}

func start(options *Options, report func(error)) (*Server, error) {
	s := &Server{report: report}
	if options != nil {
		s.opts = *options
	}
	for value, fallback := range map[*string]string{
		&s.opts.Username: "admin", &s.opts.Password: "secret", &s.opts.APIVersion: "v3.2.4", &s.opts.Config: defaultConfig,
	} {
		if *value == "" {
			*value = fallback
		}
	}
	if s.opts.ReloadDelay <= 0 {
		s.opts.ReloadDelay = 100 * time.Millisecond
	}
	if !strings.HasSuffix(s.opts.Config, "\n") {
		s.opts.Config += "\n"
	}
	if err := s.open(); err != nil {
		s.removeDir()
		return nil, err
	}
	s.mux = s.routes()
	s.http = httptest.NewServer(s)
	return s, nil
}

// open makes the folder with its files, and the process behind the API.
func (s *Server) open() (err error) {
	base, binary := "", ""
	if s.opts.HAProxy != nil {
		base = s.opts.HAProxy.Dir
		if binary, err = haproxyctl.FindBinary(s.opts.HAProxy.Binary); err != nil {
			return err
		}
	}
	if base == "" {
		// The folder of the test would not do: its name can be too long for a socket.
		if base, err = os.MkdirTemp("", "dpt"); err != nil {
			return err
		}
		s.dir = base
	}
	s.disk = dataplane.Layout{Base: base}
	for _, kind := range kinds() {
		if err := os.MkdirAll(s.disk.Dir(kind), 0o750); err != nil {
			return err
		}
	}
	text := s.opts.Config
	s.stored = stored{file: s.disk.ConfigPath(), good: text, memory: text, version: 1}
	if err := os.WriteFile(s.file, []byte(text), 0o644); err != nil {
		return err
	}
	if binary != "" {
		s.opts.Layout = s.disk
		s.check = func(file, _ string) string { return daemon.Check(binary, file) }
		s.proc, err = daemon.Start(binary, s.file)
		return err
	}
	if validate := s.opts.Validate; validate != nil {
		s.check = func(_, text string) string { return validate(withoutHeader(text)) }
	}
	s.proc = pretender.New(s.toLoad)
	return nil
}

func (s *Server) removeDir() {
	if s.dir == "" {
		return
	}
	if err := os.RemoveAll(s.dir); err != nil {
		s.report(err)
	}
}

// Close stops the server and the haproxy behind it. [New] calls it at the end of the test.
func (s *Server) Close() {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	s.closed = true
	if s.pending != nil {
		s.pending.Stop()
	}
	s.mu.Unlock()
	s.http.CloseClientConnections()
	s.http.Close()
	s.proc.Stop()
	s.removeDir()
}

// URL returns the URL of the API.
func (s *Server) URL() string { return s.http.URL }

// Endpoint returns the endpoint for a client, named "test".
func (s *Server) Endpoint() dataplane.Endpoint {
	return dataplane.Endpoint{Name: "test", URL: s.http.URL, Username: s.opts.Username, Password: s.opts.Password}
}

// Layout returns where the files of this HAProxy lie.
func (s *Server) Layout() dataplane.Layout { return s.opts.Layout }
