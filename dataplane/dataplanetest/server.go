package dataplanetest

import (
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/internal/dpapi"
	"github.com/hapticsdk/haptic/internal/haproxyctl"
)

// Options change what a [Server] is. The zero value, like nil, is an API of
// version 3.2 without a haproxy behind it.
type Options struct {
	Username string // zero means "admin"
	Password string // zero means "secret"

	// APIVersion is what it says of itself. Zero means "v3.2.4". Before 3.2 it
	// reloads for every certificate that changes.
	APIVersion string

	// Config is the text that it starts with, as somebody would have written
	// it by hand. Zero means a small one that listens nowhere.
	Config string

	// Layout says where its files lie. It is ignored with HAProxy.
	Layout dataplane.Layout

	// Validate says why a text is refused, "" if it is not. Nil accepts every
	// text. It is ignored with HAProxy, which validates itself.
	Validate func(text string) string

	// ReloadDelay is the time to the next scheduled reload. Zero means 100 ms.
	ReloadDelay time.Duration

	// HAProxy, if set, is the real one behind the API.
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

// Server is a Dataplane API for tests.
type Server struct {
	opts   Options
	report func(error) // of what goes wrong with the files
	http   *httptest.Server
	proc   process
	dir    string // folder to remove, "" if there is none

	mu        sync.Mutex
	engine    *engine
	stores    []*store
	lastGood  string // what the last successful reload loaded
	reloads   []Reload
	pending   *time.Timer
	next      string // identifier of the pending reload
	scheduled int    // identifiers given
	requests  []Request
	actions   []string
	faults    []*fault
	behind    []string // texts that another writer gets in before a push
	failing   []string // what the next reloads fail with
	closed    bool
}

// Request is one request that arrived, before any fault.
type Request struct {
	Method string
	Path   string // below /v3, not escaped
	Query  string // raw
	Body   string
	Status int // of the answer, 0 if it has not been given, or never was
}

// New starts a Server that stops at the end of the test. Nil options are the
// zero options. What goes wrong fails the test.
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
		if s.proc != nil {
			s.proc.stop()
		}
		s.removeDir()
		return nil, err
	}
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
		// Not the folder of the test: its name can be too long for a socket.
		if base, err = os.MkdirTemp("", "dpt"); err != nil {
			return err
		}
		s.dir = base
	}
	layout, check := dataplane.Layout{Base: base}, s.opts.Validate
	if binary != "" {
		s.opts.Layout, check = layout, nil
	}
	if err := s.openStores(layout); err != nil {
		return err
	}
	if err := os.WriteFile(layout.ConfigPath(), []byte(s.opts.Config), 0o644); err != nil {
		return err
	}
	if s.engine, err = openEngine(layout.ConfigPath(), binary, check); err != nil {
		return err
	}
	s.lastGood = s.opts.Config
	if binary == "" {
		s.proc = newPretender(s)
		return nil
	}
	return s.startHAProxy(binary)
}

func (s *Server) removeDir() {
	if s.dir == "" {
		return
	}
	if err := os.RemoveAll(s.dir); err != nil {
		s.report(err)
	}
}

// Close stops the server and the haproxy behind it. It is called at the end of
// the test.
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
	for _, f := range s.faults {
		f.release()
	}
	s.mu.Unlock()
	s.http.CloseClientConnections()
	s.http.Close()
	s.proc.stop()
	s.removeDir()
}

// URL returns the URL of the API.
func (s *Server) URL() string { return s.http.URL }

// Endpoint returns what a client needs, named "test".
func (s *Server) Endpoint() dataplane.Endpoint {
	return dataplane.Endpoint{Name: "test", URL: s.http.URL, Username: s.opts.Username, Password: s.opts.Password}
}

// Layout returns where the files of this HAProxy lie.
func (s *Server) Layout() dataplane.Layout { return s.opts.Layout }

// Raw returns the text on disk, without the lines that the API adds.
func (s *Server) Raw() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return withoutHeader(s.diskText())
}

// diskText is the text on disk. The lock is held.
func (s *Server) diskText() string {
	text, err := s.engine.disk()
	if err != nil {
		s.report(err)
	}
	return text
}

// withoutHeader removes the lines that the API keeps at the top.
func withoutHeader(text string) string {
	plain, version := dpapi.SplitText(text)
	if version != 0 {
		plain = strings.TrimPrefix(plain, "\n")
	}
	return plain
}

// Memory returns the text that the API believes is stored. It differs from
// [Server.Raw] after a failed reload, until the next push.
func (s *Server) Memory() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return withoutHeader(s.engine.memory())
}

// Version returns the version of the configuration.
func (s *Server) Version() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.engine.version("")
}

// Reloads returns all reloads so far, failed ones too.
func (s *Server) Reloads() []Reload {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.reloads)
}

// Actions returns the runtime actions and map changes that were asked for, in
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

// WorkerPID returns the process that serves; without a haproxy, a number that
// every reload changes.
func (s *Server) WorkerPID() int { return s.proc.pid() }

// Write replaces the configuration as another client of the API would, without
// a reload.
func (s *Server) Write(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.write(text)
}

func (s *Server) write(text string) {
	if err := s.engine.overwrite(text); err != nil {
		s.report(err)
	}
}

// EditConfig replaces haproxy.cfg as somebody with an editor would, who leaves
// out or keeps the lines at the top: the API sees it, reads it again and counts
// the version up from that of the text. Nothing is validated or reloaded.
func (s *Server) EditConfig(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.engine.edit(text); err != nil {
		s.report(err)
	}
}

// beforeWrite lets another writer in before a push or a commit.
func (s *Server) beforeWrite() {
	if len(s.behind) > 0 {
		s.write(s.behind[0])
		s.behind = s.behind[1:]
	}
}
