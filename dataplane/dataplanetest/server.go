package dataplanetest

import (
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/internal/haproxycfg"
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

	mu       sync.Mutex
	disk     string // the text as stored, without the lines of the API
	diskVer  int64  // version that stands in it, 0 before the first write
	memory   string // what the API believes is stored
	version  int64
	lastGood string // what the last successful reload loaded
	goodVer  int64
	norm     haproxycfg.Normaliser
	files    map[string]map[string][]byte // storage -> name -> content
	reloads  []Reload
	pending  *time.Timer
	requests []Request
	actions  []string
	faults   []*fault
	behind   []string // texts that another writer gets in before a push
	failing  []string // what the next reloads fail with
	closed   bool
}

// Reload is one reload that took place.
type Reload struct {
	ID     string // of a scheduled reload, "" if it was forced
	Failed bool
	Output string
}

// Request is one request that arrived, before any fault.
type Request struct {
	Method string
	Path   string // below /v3, not escaped
	Query  string // raw
	Body   string
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
	s := &Server{report: report, version: 1, files: map[string]map[string][]byte{"maps": {}, "ssl_certificates": {}, "general": {}}}
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
	s.disk, s.memory, s.lastGood = s.opts.Config, s.opts.Config, s.opts.Config
	if s.opts.HAProxy == nil {
		s.proc = newPretender(s)
	} else if err := s.startHAProxy(); err != nil {
		return nil, err
	}
	s.http = httptest.NewServer(s)
	return s, nil
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
	return s.disk
}

// Memory returns the text that the API believes is stored. It differs from
// [Server.Raw] after a failed reload, until the next push.
func (s *Server) Memory() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.memory
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

// Files returns the names of all files of that kind, sorted. CA files and
// crt-lists are general files.
func (s *Server) Files(kind dataplane.FileKind) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for name := range s.files[storageOf(kind)] {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// File returns the content of a file.
func (s *Server) File(kind dataplane.FileKind, name string) (content []byte, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	content, ok = s.files[storageOf(kind)][name]
	return slices.Clone(content), ok
}

// SetFile stores a file behind the back of the API's clients.
func (s *Server) SetFile(kind dataplane.FileKind, name string, content []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.store(storageOf(kind), name, slices.Clone(content))
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

// Write replaces the configuration as somebody else would, without a reload.
func (s *Server) Write(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.write(text)
}

func (s *Server) write(text string) {
	s.version++
	s.disk, s.memory, s.diskVer = text, text, s.version
	s.proc.save(text)
}

func storageOf(kind dataplane.FileKind) string {
	switch kind {
	case dataplane.Map:
		return "maps"
	case dataplane.Certificate:
		return "ssl_certificates"
	default:
		return "general"
	}
}

func (s *Server) store(storage, name string, content []byte) {
	s.files[storage][name] = content
	s.proc.saveFile(storage, name, content)
}

func (s *Server) remove(storage, name string) {
	delete(s.files[storage], name)
	s.proc.saveFile(storage, name, nil)
}

// pathOf is where haproxy finds a file.
func (s *Server) pathOf(storage, name string) string {
	kind := dataplane.General
	switch storage {
	case "maps":
		kind = dataplane.Map
	case "ssl_certificates":
		kind = dataplane.Certificate
	}
	return s.opts.Layout.Path(kind, name)
}
