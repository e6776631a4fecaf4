package observe

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/pprof"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/hapticsdk/haptic/internal/printable"
	"github.com/hapticsdk/haptic/reconcile"
)

// DefaultAddr and DefaultMetricsAddr are where a [Server] listens unless told
// otherwise, the second where it has MetricsOnly.
const (
	DefaultAddr        = "127.0.0.1:6060"
	DefaultMetricsAddr = ":9090"
)

// maxScrapes is how many requests for metrics are answered at once; more get 503.
const maxScrapes = 10

// readTime is how long who asks a server with MetricsOnly may take to read the answer.
const readTime = 30 * time.Second

// stopTime is how long a stop waits for requests under way, twice: once for
// them to end well, once after their connections were cut.
const stopTime = 400 * time.Millisecond

// Server is a debug server for people and, with MetricsOnly, one for Prometheus and
// the kubelet:
//
//	/                    a page for people, of a server that [Observer.Server] made
//	/metrics             of Metrics
//	/debug/vars/         the names that were registered, as JSON
//	/debug/vars/{name}   the value of one, as JSON; a part of it with ?field=, JSONPath as in package k8swatch
//	/debug/pprof/        profiles of the process (see net/http/pprof)
//	/healthz, /readyz    200 or 503, all components with ?verbose; ready is not "all is well"
//
// It only ever reads. What it shows holds the configuration, so it demands the token
// of every request: a header "Authorization: Bearer TOKEN", or in a browser TOKEN as the
// password of any user. There are two exceptions. On a unix socket, which only the
// account of this process can connect to, no token is needed. Only /healthz and
// /readyz, which a kubelet asks, never need one, and then do not say why.
//
// The zero value listens on [DefaultAddr] without a token, and so for every user of
// the host: it answers /metrics, /healthz and /readyz alone, and /metrics only where
// the request asks for a loopback address and no proxy has passed it on. Of more than
// 100 connections of one address the last are closed.
//
// With MetricsOnly it answers these three to everybody, at any address, and nothing
// else. Its probes say yes or no, and never why.
type Server struct {
	Addr  string // host:port, or unix:/path of a socket to make; zero is a default, port 0 a free one
	Token Token  // required where Addr is a host that is not loopback, but for MetricsOnly

	MetricsOnly bool // /metrics, /healthz and /readyz alone, without a token

	Metrics prometheus.Gatherer // zero: no /metrics
	Health  *Health             // zero: alive, and ready once it listens

	OnListen func(net.Addr) // called when it listens, with the port that was found free
	Logger   *slog.Logger   // zero is slog.Default()

	mu   sync.Mutex
	vars map[string]func() any
	page http.HandlerFunc // nil: none
}

// Register shows what f returns, as JSON, at /debug/vars/name. f is called for
// each request, possibly several times at once, and must return a value that
// is free of secrets and does not change any more. A second function of the same
// name replaces the first.
func (s *Server) Register(name string, f func() any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.vars == nil {
		s.vars = map[string]func() any{}
	}
	s.vars[name] = f
}

// Run serves until ctx ends, and then returns nil, within a second, also when
// requests are under way. It returns an error when it cannot listen: one that
// is [ErrNoToken] when the address is not loopback and there is no token. A socket is
// made with mode 0600, in place of one that nobody listens on, and removed at the end.
func (s *Server) Run(ctx context.Context) error {
	ln, err := s.Listen(ctx)
	if err != nil {
		return err
	}
	return s.Serve(ctx, ln)
}

// Listen opens the address, for [Server.Serve]. It is for a program that wants the
// error of an address that is taken before it begins anything else; [Server.Run] is
// both.
func (s *Server) Listen(ctx context.Context) (net.Listener, error) {
	ln, err := s.listen(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.name(), err)
	}
	return ln, nil
}

func (s *Server) name() string {
	if s.MetricsOnly {
		return "metrics server"
	}
	return "debug server"
}

// Serve is [Server.Run] with a listener, which it closes.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	logger := s.Logger
	if logger == nil {
		logger = slog.Default()
	}
	var conns sync.WaitGroup
	from := peers{open: map[string]int{}}
	srv := &http.Server{
		Handler: s.handler(ln.Addr().Network() == "unix"),
		ConnState: func(conn net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew: // before the goroutine of the connection begins
				conns.Add(1)
				if from.add(conn, 1) {
					_ = conn.Close()
				}
			case http.StateClosed: // when it ends
				from.add(conn, -1)
				conns.Done()
			}
		},
		ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
	}
	if s.MetricsOnly { // whoever reads nothing would keep a scrape, of maxScrapes
		srv.WriteTimeout = readTime
	}
	if s.OnListen != nil {
		s.OnListen(ln.Addr())
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(ln) }()
	select {
	case err := <-served:
		return fmt.Errorf("%s: %w", s.name(), err)
	case <-ctx.Done():
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
	defer cancel()
	if srv.Shutdown(stopping) != nil { // a profile, or a client that does not read
		_ = srv.Close() // ends the contexts of the requests
	}
	<-served
	ended := make(chan struct{})
	go func() { conns.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(stopTime): // a registered function hangs; nothing can end it
		logger.Warn(s.name() + ": a request is still under way")
	}
	return nil
}

// listen resolves the address first, so that what is checked is what is
// listened on, and nothing listens before the check.
func (s *Server) listen(ctx context.Context) (net.Listener, error) {
	addr := cmp.Or(s.Addr, DefaultAddr)
	if s.MetricsOnly {
		addr = cmp.Or(s.Addr, DefaultMetricsAddr)
	}
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		return listenUnix(ctx, path)
	}
	tcp, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("Server.Addr %q: want host:port, such as 127.0.0.1:6060, or unix:/path: %w", addr, err)
	}
	if !tcp.IP.IsLoopback() && s.Token == "" && !s.MetricsOnly { // no host at all means all addresses
		return nil, fmt.Errorf("%s: %w", addr, ErrNoToken)
	}
	var lc net.ListenConfig
	return lc.Listen(ctx, "tcp", tcp.String())
}

// Handler returns what Run serves, for a server of the program's own: without a
// token /metrics and probes alone, whatever that server listens on.
func (s *Server) Handler() http.Handler { return s.handler(false) }

// handler shows everything to everybody if open.
func (s *Server) handler(open bool) http.Handler {
	outer := http.NewServeMux()
	open = open && !s.MetricsOnly
	if s.Metrics != nil {
		metrics := promhttp.HandlerFor(s.Metrics, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: maxScrapes})
		if !s.MetricsOnly {
			metrics = s.guard(open, true, metrics)
		}
		outer.Handle("GET /metrics", metrics)
	}
	outer.HandleFunc("GET /healthz", s.probe(open, Live))
	outer.HandleFunc("GET /readyz", s.probe(open, ReadyToServe))
	if !s.MetricsOnly {
		outer.Handle("/", s.guard(open, false, s.pages()))
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		outer.ServeHTTP(w, r)
	})
}

// pages are those that show everything.
func (s *Server) pages() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/vars/{$}", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, s.names()) })
	mux.HandleFunc("GET /debug/vars/{name}", s.variable)
	// Without pprof.Cmdline: an argument may hold a password.
	profiles := http.NewServeMux()
	profiles.HandleFunc("GET /debug/pprof/", pprof.Index)
	profiles.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	profiles.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	profiles.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	mux.HandleFunc("GET /debug/pprof/{$}", pprof.Index)
	mux.Handle("GET /debug/pprof/", oneProfile(profiles))
	if s.page != nil {
		mux.HandleFunc("GET /{$}", s.page)
	}
	return mux
}

// probe answers 200 or 503, and why to those who may know.
func (s *Server) probe(open bool, p Probe) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var all []finding
		if s.Health != nil {
			all = s.Health.findings()
		}
		says, status := "ok", http.StatusOK
		err := failing(all, p)
		if err != nil {
			says, status = "not ok", http.StatusServiceUnavailable
		}
		if open || s.hasToken(r) && !s.MetricsOnly {
			if err != nil {
				says = err.Error()
			}
			if r.URL.Query().Has("verbose") {
				says = verbose(all) + says
			}
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, printable.Text(says)+"\n")
	}
}

// names are those of the variables.
func (s *Server) names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := slices.AppendSeq([]string{}, maps.Keys(s.vars)) // [] and not null
	slices.Sort(names)
	return names
}

func (s *Server) variable(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	s.mu.Lock()
	f, ok := s.vars[name]
	s.mu.Unlock()
	if !ok {
		writeJSON(w, http.StatusNotFound, problem{"no variable " + name})
		return
	}
	var value any
	if err := reconcile.Guard(func() error { value = f(); return nil }); err != nil {
		writeJSON(w, http.StatusInternalServerError, problem{err.Error()})
		return
	}
	expr := r.URL.Query().Get("field")
	if text, ok := value.(plain); ok && expr == "" {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, printable.Text(string(text)))
		return
	}
	if expr != "" {
		if err := reconcile.Guard(func() (err error) { value, err = field(value, expr); return err }); err != nil {
			writeJSON(w, http.StatusBadRequest, problem{"field: " + err.Error()})
			return
		}
	}
	writeJSON(w, http.StatusOK, value)
}

type problem struct {
	Error string `json:"error"`
}

// writeJSON encodes first, so that what cannot be encoded is an error and not
// half an answer.
func writeJSON(w http.ResponseWriter, status int, value any) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := reconcile.Guard(func() error { return enc.Encode(value) }); err != nil {
		status = http.StatusInternalServerError
		buf.Reset()
		_ = enc.Encode(problem{err.Error()})
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, printable.Text(buf.String()))
}
