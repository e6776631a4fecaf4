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

	"github.com/hapticsdk/haptic/internal/panics"
	"github.com/hapticsdk/haptic/internal/printable"
)

// DefaultAddr and DefaultMetricsAddr are the default addresses of a [Server]; the second is
// for MetricsOnly.
const (
	DefaultAddr        = "127.0.0.1:6060"
	DefaultMetricsAddr = ":9090"
)

// maxScrapes is the number of simultaneous requests for metrics; more get 503.
const maxScrapes = 10

// readTime is how long a client of a MetricsOnly server may take to read the answer.
const readTime = 30 * time.Second

// stopTime is how long a stop waits for requests under way. It waits twice: first for them to
// end, then after it has cut their connections.
const stopTime = 400 * time.Millisecond

// Server is a debug server for people or, with MetricsOnly, a server for Prometheus and the
// kubelet:
//
//	/                    a page for people, on a server of [Observer.Server]
//	/metrics             the metrics of Metrics
//	/debug/vars/         the registered names, as JSON
//	/debug/vars/{name}   the value of one, as JSON; a part of it with ?field=, JSONPath as in package k8swatch
//	/debug/pprof/        profiles of the process (see net/http/pprof)
//	/healthz, /readyz    200 or 503, all components with ?verbose; ready is not "all is well"
//
// It only ever reads. Its answers show the configuration, so it demands the token of every
// request: a header "Authorization: Bearer TOKEN", or in a browser TOKEN as the password of
// any user. There are two exceptions. A unix socket needs no token, because only root and the
// account of this process can connect to it. /healthz and /readyz, which a kubelet asks, never
// need one; without it they do not say why they fail.
//
// The zero value listens on [DefaultAddr] without a token, so every user of the host can
// connect. It answers only /metrics, /healthz and /readyz. It answers /metrics only if the
// request asks for a loopback address and came through no proxy. It closes new connections of
// an address that already has 100.
//
// With MetricsOnly it answers these three to everybody, at any address, and nothing else. Its
// probes say yes or no, and never why.
type Server struct {
	Addr  string // host:port, or unix:/path of a socket to make; zero: the default, port 0: a free one
	Token Token  // required if Addr is not a loopback address, except with MetricsOnly

	MetricsOnly bool // only /metrics, /healthz and /readyz, without a token

	Metrics prometheus.Gatherer // zero: no /metrics
	Health  *Health             // zero: always alive and ready

	OnListen func(net.Addr) // called when it listens, with the actual address
	Logger   *slog.Logger   // zero is slog.Default()

	mu   sync.Mutex
	vars map[string]func() any
	page http.HandlerFunc // nil: none
}

// Register shows the value of f, as JSON, at /debug/vars/name. Each request calls f, possibly
// several at once. The value must be free of secrets and must not change afterwards. A second
// function of the same name replaces the first.
func (s *Server) Register(name string, f func() any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.vars == nil {
		s.vars = map[string]func() any{}
	}
	s.vars[name] = f
}

// Run serves until ctx ends, and then returns nil within a second, even if requests are under
// way. If it cannot listen, it returns an error. The error is [ErrNoToken] if the address is
// not loopback and there is no token. Run makes a socket with mode 0600, replaces one without
// a listener, and removes it at the end.
func (s *Server) Run(ctx context.Context) error {
	ln, err := s.Listen(ctx)
	if err != nil {
		return err
	}
	return s.Serve(ctx, ln)
}

// Listen opens the address, for [Server.Serve]. Use both in place of [Server.Run] if an
// address in use must be an error before anything else starts.
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

// Serve is [Server.Run] on an open listener. It closes the listener.
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
	if s.MetricsOnly { // a client that never reads would hold one of maxScrapes
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
	if srv.Shutdown(stopping) != nil { // a profile runs, or a client does not read
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

// listen resolves the address before it checks and opens it. So it opens exactly the address
// that it checked.
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
	if !tcp.IP.IsLoopback() && s.Token == "" && !s.MetricsOnly { // an empty host means all addresses
		return nil, fmt.Errorf("%s: %w", addr, ErrNoToken)
	}
	var lc net.ListenConfig
	return lc.Listen(ctx, "tcp", tcp.String())
}

// Handler returns the handler of Run, for a server of the program's own. Without a token it
// answers only /metrics and the probes, on any listener.
func (s *Server) Handler() http.Handler { return s.handler(false) }

// handler returns all pages. If open, they need no token.
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

// pages returns the pages that show everything.
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

// probe answers 200 or 503. With the token or if open, it also says why.
func (s *Server) probe(open bool, p Probe) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var all []finding
		if s.Health != nil {
			all = s.Health.findings()
		}
		text, status := "ok", http.StatusOK
		err := failing(all, p)
		if err != nil {
			text, status = "not ok", http.StatusServiceUnavailable
		}
		if open || s.hasToken(r) && !s.MetricsOnly {
			if err != nil {
				text = err.Error()
			}
			if r.URL.Query().Has("verbose") {
				text = verbose(all) + text
			}
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, printable.Text(text)+"\n")
	}
}

// names returns the names of the variables.
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
	if err := panics.Guard(func() error { value = f(); return nil }); err != nil {
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
		if err := panics.Guard(func() (err error) { value, err = field(value, expr); return err }); err != nil {
			writeJSON(w, http.StatusBadRequest, problem{"field: " + err.Error()})
			return
		}
	}
	writeJSON(w, http.StatusOK, value)
}

type problem struct {
	Error string `json:"error"`
}

// writeJSON encodes before it writes: a value that cannot be encoded is an error, not half an
// answer.
func writeJSON(w http.ResponseWriter, status int, value any) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := panics.Guard(func() error { return enc.Encode(value) }); err != nil {
		status = http.StatusInternalServerError
		buf.Reset()
		_ = enc.Encode(problem{err.Error()})
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, printable.Text(buf.String()))
}
