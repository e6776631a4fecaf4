package observe

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// DefaultAddr is where a [Server] listens unless told otherwise.
const DefaultAddr = "127.0.0.1:9090"

// stopTime is how long a stop waits for requests under way, twice: once for
// them to end well, once after their connections were cut.
const stopTime = 400 * time.Millisecond

// ErrNoToken says that a debug server would be open to other machines.
var ErrNoToken = errors.New("an address that is not loopback needs a Token")

// Server is a debug server for people and for Prometheus:
//
//	/                    a page for people, of a server that [Observer.Server] made
//	/metrics             of Metrics
//	/debug/vars/         the names that were registered, as JSON
//	/debug/vars/{name}   the value of one, as JSON; a part of it with ?field={.jsonpath}
//	/debug/pprof/        profiles of the process (see net/http/pprof)
//	/healthz, /readyz    200 or 503, all components with ?verbose
//
// It only ever reads. The zero value listens on [DefaultAddr]. On an address that
// is not loopback it demands the token of every request: a header "Authorization:
// Bearer TOKEN", or in a browser TOKEN as the password of any user. Only /healthz
// and /readyz, which a kubelet asks, need none, and then do not say why.
type Server struct {
	Addr  string // host:port; zero is DefaultAddr, port 0 a free one
	Token Token  // required where Addr is not loopback; used on loopback too, if set

	Metrics prometheus.Gatherer // zero: no /metrics
	Health  *Health             // zero: alive, and ready once it listens

	OnListen func(net.Addr) // called when it listens, with the port that was found free
	Logger   *slog.Logger   // zero is slog.Default()

	mu   sync.Mutex
	vars map[string]func() any
	page http.HandlerFunc // nil: none
}

// Token is a bearer token. It never prints.
type Token string

// Format implements [fmt.Formatter]: for all verbs it hides the token.
func (t Token) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, t.hidden()) }

// LogValue implements [slog.LogValuer].
func (t Token) LogValue() slog.Value { return slog.StringValue(t.hidden()) }

// MarshalText implements [encoding.TextMarshaler], and so hides it in JSON.
func (t Token) MarshalText() ([]byte, error) { return []byte(t.hidden()), nil }

func (t Token) hidden() string {
	if t == "" {
		return ""
	}
	return "(secret)"
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
// is [ErrNoToken] when the address is not loopback and there is no token.
func (s *Server) Run(ctx context.Context) error {
	ln, err := s.listen(ctx)
	if err != nil {
		return fmt.Errorf("debug server: %w", err)
	}
	logger := s.Logger
	if logger == nil {
		logger = slog.Default()
	}
	var conns sync.WaitGroup
	srv := &http.Server{
		Handler: s.Handler(),
		ConnState: func(_ net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew: // before the goroutine of the connection begins
				conns.Add(1)
			case http.StateClosed: // when it ends
				conns.Done()
			}
		},
		ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
	}
	if s.OnListen != nil {
		s.OnListen(ln.Addr())
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(ln) }()
	select {
	case err := <-served:
		return fmt.Errorf("debug server: %w", err)
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
		logger.Warn("debug server: a request is still under way")
	}
	return nil
}

// listen resolves the address first, so that what is checked is what is
// listened on, and nothing listens before the check.
func (s *Server) listen(ctx context.Context) (net.Listener, error) {
	addr := cmp.Or(s.Addr, DefaultAddr)
	tcp, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		return nil, err
	}
	if !tcp.IP.IsLoopback() && s.Token == "" { // no host at all means all addresses
		return nil, fmt.Errorf("%s: %w", addr, ErrNoToken)
	}
	var lc net.ListenConfig
	return lc.Listen(ctx, "tcp", tcp.String())
}

// Handler returns what Run serves, for a server of the program's own. It
// checks the token; without one it answers only requests to a loopback name or
// address, so that no web page can reach it through a name of its own (DNS
// rebinding).
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/vars/{$}", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, s.names()) })
	mux.HandleFunc("GET /debug/vars/{name}", s.variable)
	// Without pprof.Cmdline: an argument may hold a password.
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	if s.page != nil {
		mux.HandleFunc("GET /{$}", s.page)
	}
	if s.Metrics != nil {
		mux.Handle("GET /metrics", promhttp.HandlerFor(s.Metrics, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError}))
	}
	outer := http.NewServeMux()
	outer.Handle("/", s.guarded(mux))
	outer.HandleFunc("GET /healthz", s.probe(Live))
	outer.HandleFunc("GET /readyz", s.probe(ReadyToServe))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		outer.ServeHTTP(w, r)
	})
}

func (s *Server) guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case s.allowed(r):
			next.ServeHTTP(w, r)
		case s.Token == "":
			http.Error(w, "ask for a loopback address, such as 127.0.0.1", http.StatusForbidden)
		default:
			w.Header()["Www-Authenticate"] = []string{"Bearer", `Basic realm="haptic debug server"`}
			http.Error(w, "a bearer token is needed", http.StatusUnauthorized)
		}
	})
}

// allowed compares hashes, in constant time, so that nothing can be learned
// about the token from how long it takes.
func (s *Server) allowed(r *http.Request) bool {
	if s.Token == "" {
		return loopbackName(r.Host)
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if _, password, ok := r.BasicAuth(); ok { // of a person with a browser
		scheme, token = "Bearer", password
	}
	got, want := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(s.Token))
	return strings.EqualFold(scheme, "Bearer") && subtle.ConstantTimeCompare(got[:], want[:]) == 1
}

// loopbackName reports whether a Host header is localhost or a loopback
// address, with or without a port.
func loopbackName(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return strings.EqualFold(host, "localhost") || err == nil && ip.IsLoopback()
}

// probe answers 200 or 503, and why to those who may know.
func (s *Server) probe(p Probe) http.HandlerFunc {
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
		if s.allowed(r) {
			if err != nil {
				says = err.Error()
			}
			if r.URL.Query().Has("verbose") {
				says = verbose(all) + says
			}
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, says+"\n")
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
	if err := safely(func() error { value = f(); return nil }); err != nil {
		writeJSON(w, http.StatusInternalServerError, problem{err.Error()})
		return
	}
	expr := r.URL.Query().Get("field")
	if text, ok := value.(plain); ok && expr == "" {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, string(text))
		return
	}
	if expr != "" {
		if err := safely(func() (err error) { value, err = field(value, expr); return err }); err != nil {
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
	if err := safely(func() error { return enc.Encode(value) }); err != nil {
		status = http.StatusInternalServerError
		buf.Reset()
		_ = enc.Encode(problem{err.Error()})
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(buf.Bytes())
}
