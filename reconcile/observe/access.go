package observe

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// ErrNoToken says that other machines could use a debug server without a token.
var ErrNoToken = errors.New("an address that is not loopback needs a Token")

// Token is a bearer token. It never prints.
type Token string

// minToken is the least number of characters of a token in a file.
const minToken = 16

// ReadToken reads a token from a file, without the white space around it. It refuses a token
// of fewer than 16 characters, or with white space in it.
func ReadToken(file string) (Token, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	words := strings.Fields(string(text))
	if len(words) != 1 || len(words[0]) < minToken {
		return "", fmt.Errorf("%s: the token is not one word of at least %d characters: write one, such as openssl rand -hex 16 prints", file, minToken)
	}
	return Token(words[0]), nil
}

// Format implements [fmt.Formatter]: it hides the token for all verbs.
func (t Token) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, t.hidden()) }
func (t Token) LogValue() slog.Value       { return slog.StringValue(t.hidden()) }

// MarshalText implements [encoding.TextMarshaler]: it hides the token in JSON.
func (t Token) MarshalText() ([]byte, error) { return []byte(t.hidden()), nil }

func (t Token) hidden() string {
	if t == "" {
		return ""
	}
	return "(secret)"
}

// guard protects next. If open, it lets every request through. Otherwise a request needs the
// token. If the server has no token, guard lets only direct requests through, and only to
// pages that are scraped: these show no configuration.
func (s *Server) guard(open, scraped bool, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case open || s.hasToken(r):
			next.ServeHTTP(w, r)
		case s.Token != "":
			w.Header()["Www-Authenticate"] = []string{"Bearer", `Basic realm="haptic debug server"`}
			http.Error(w, "a bearer token is needed", http.StatusUnauthorized)
		case !direct(r):
			http.Error(w, "ask for a loopback address, such as 127.0.0.1, and not through a proxy", http.StatusForbidden)
		case !scraped:
			http.Error(w, "this shows the configuration: give the debug server a token, or let it listen on a unix socket; "+
				"without, there are /metrics, /healthz and /readyz", http.StatusForbidden)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// hasToken compares hashes in constant time, so that the duration says nothing about the
// token.
func (s *Server) hasToken(r *http.Request) bool {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if _, password, ok := r.BasicAuth(); ok { // from a person with a browser
		scheme, token = "Bearer", password
	}
	got, want := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(s.Token))
	return s.Token != "" && strings.EqualFold(scheme, "Bearer") && subtle.ConstantTimeCompare(got[:], want[:]) == 1
}

// direct reports whether a request asks for a loopback address and came through no proxy. A
// host name proves nothing: a web page can make its own name resolve to loopback, and a tenant
// can make our HAProxy route the host localhost here. HAProxy adds one of these headers.
func direct(r *http.Request) bool {
	for name := range r.Header {
		if name == "Via" || name == "Forwarded" || name == "X-Real-Ip" || strings.HasPrefix(name, "X-Forwarded-") {
			return false
		}
	}
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && ip.IsLoopback()
}

// maxPeerConns is the number of connections that one address may have. Every pod can connect
// where a kubelet does, and each connection takes memory.
const maxPeerConns = 100

// peers counts connections by address.
type peers struct {
	mu   sync.Mutex
	open map[string]int
}

// add adds n to the count of a connection's address. It reports whether that address now has
// too many connections.
func (p *peers) add(conn net.Conn, n int) (tooMany bool) {
	addr := conn.RemoteAddr().String()
	if host, _, err := net.SplitHostPort(addr); err == nil {
		addr = host
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open[addr] += n
	if p.open[addr] == 0 {
		delete(p.open, addr)
	}
	return p.open[addr] > maxPeerConns
}

// maxProfile is the longest duration of a profile, in seconds.
const maxProfile = 30

// oneProfile passes on one request for a profile at a time. A profile costs processor and
// memory, and some kinds exclude each other.
func oneProfile(next http.Handler) http.Handler {
	free := make(chan struct{}, 1)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if seconds := r.FormValue("seconds"); seconds != "" {
			if n, err := strconv.ParseFloat(seconds, 64); err != nil || !(n > 0 && n <= maxProfile) { // NaN is neither
				http.Error(w, fmt.Sprintf("seconds: give a number above 0, and at most %d", maxProfile), http.StatusBadRequest)
				return
			}
		}
		select {
		case free <- struct{}{}:
			defer func() { <-free }()
			next.ServeHTTP(w, r)
		default:
			http.Error(w, "another profile is being taken: try again when it has ended", http.StatusTooManyRequests)
		}
	})
}

// maxSocketPath is the greatest length of a unix socket's path, in bytes.
const maxSocketPath = 107

// listenUnix makes a socket that only root and the account of this process can connect to. It
// replaces a socket without a listener, and no other file. It follows no link. It makes a
// missing folder.
func listenUnix(ctx context.Context, path string) (net.Listener, error) {
	if !filepath.IsAbs(path) || len(path) > maxSocketPath {
		return nil, fmt.Errorf("unix:%s: want an absolute path of at most %d bytes, such as unix:/run/haptic/debug.sock", path, maxSocketPath)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case info.Mode().Type() != fs.ModeSocket:
		return nil, fmt.Errorf("%s is there already, and is no socket: remove it, or name another path", path)
	default:
		conn, err := new(net.Dialer).DialContext(ctx, "unix", path)
		if err == nil {
			_ = conn.Close()
			return nil, fmt.Errorf("%s: another process listens there", path)
		}
		if !errors.Is(err, syscall.ECONNREFUSED) {
			return nil, err
		}
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	var mode error // Linux gives the file the mode of the descriptor, so it is never open to others
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		return errors.Join(c.Control(func(fd uintptr) { mode = syscall.Fchmod(int(fd), 0o600) }), mode)
	}}
	return lc.Listen(ctx, "unix", path)
}
