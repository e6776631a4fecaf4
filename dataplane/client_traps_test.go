package dataplane_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/dataplane/dataplanetest"
)

func fakeSite(t *testing.T, o *dataplanetest.Options) *site {
	s := &site{Server: dataplanetest.New(t, o)}
	s.endpoint = s.Endpoint()
	return s
}

// servedSite is a site that has what is desired, by a client.
func servedSite(t *testing.T) (*site, desired, *dataplane.Client) {
	t.Helper()
	s := fakeSite(t, nil)
	d, client := newDesired(t, s), s.client(t, nil)
	syncSite(t, client, d.config(t))
	return s, d, client
}

// TestClientTraps has one test for each thing that the Dataplane API does to who
// does not know it.
func TestClientTraps(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]func(t *testing.T, s *site, d desired, c *dataplane.Client){
		"skip_version resets the version": func(t *testing.T, s *site, d desired, c *dataplane.Client) {
			d.s1 = "127.0.0.2:1003 weight 20"
			syncSite(t, c, d.config(t))
			d.global = "  nbthread 2\n"
			syncSite(t, c, d.config(t))
			writes := 0
			for _, r := range s.Requests() {
				require.NotContains(t, r.Query, "skip_version")
				if r.Method == "POST" && strings.HasSuffix(r.Path, "configuration/raw") {
					require.Contains(t, r.Query, "version=")
					writes++
				}
			}
			require.Equal(t, 3, writes)
		},
		"an unchanged text schedules a reload": func(t *testing.T, s *site, d desired, c *dataplane.Client) {
			before := len(s.Requests())
			syncSite(t, c, d.config(t))
			require.Len(t, s.Requests(), before+1)
		},
		"a stale version answers 409": func(t *testing.T, s *site, d desired, c *dataplane.Client) {
			s.WriteBehind(strings.Replace(s.Raw(), "maxconn 100", "maxconn 7", 1))
			d.s1 = "127.0.0.8:8 weight 10"
			syncSite(t, c, d.config(t))
			require.NotContains(t, s.Raw(), "maxconn 7")
		},
		"a stem of a file is renamed": func(t *testing.T, _ *site, d desired, _ *dataplane.Client) {
			_, err := dataplane.NewConfig(d.text(), dataplane.File{Kind: dataplane.Certificate, Name: "site.example.com.pem"})
			require.ErrorIs(t, err, dataplane.ErrInvalidConfig)
		},
		"an empty body is refused": func(t *testing.T, s *site, d desired, c *dataplane.Client) {
			d.mapText = ""
			syncSite(t, c, d.config(t))
			require.Empty(t, s.LoadedMap("m.map"))
			require.True(t, syncSite(t, s.client(t, nil), d.config(t)).Plan.Empty())
		},
		"a listing of certificates tells metadata only": func(t *testing.T, s *site, d desired, c *dataplane.Client) {
			// The chain and the key in another order: size and serial are the same.
			block := bytes.Index(d.certificate, []byte("-----BEGIN PRIVATE KEY"))
			d.certificate = bytes.Join([][]byte{d.certificate[block:], d.certificate[:block]}, nil)
			r := syncSite(t, c, d.config(t))
			require.False(t, r.Plan.Empty())
			require.Equal(t, string(d.certificate), s.file(dataplane.Certificate, "a.pem"))
		},
		"a small map is added to instead of replaced": func(t *testing.T, s *site, d desired, c *dataplane.Client) {
			d.mapText = "/a a\n/a second\n/b b\n"
			r := syncSite(t, c, d.config(t))
			require.Equal(t, 1, r.Reloads)
			for _, q := range s.Requests() {
				require.False(t, q.Method == "PUT" && strings.HasSuffix(q.Path, "runtime/maps/m.map"), "%v", q)
			}
		},
		"a value ends at a blank": func(t *testing.T, s *site, d desired, c *dataplane.Client) {
			d.mapText = "/a a\n/b two words\n"
			require.Equal(t, 1, syncSite(t, c, d.config(t)).Reloads)
			require.Equal(t, "two words", s.LoadedMap("m.map")["/b"])
		},
		"a semicolon ends a command": func(t *testing.T, s *site, d desired, c *dataplane.Client) {
			d.mapText = "/a a\n/b b;clear\n"
			require.Equal(t, 1, syncSite(t, c, d.config(t)).Reloads)
			require.Equal(t, "b;clear", s.LoadedMap("m.map")["/b"])
		},
		"a certificate that a crt-list names can be deleted": func(t *testing.T, s *site, d desired, c *dataplane.Client) {
			s.SetFile(dataplane.Certificate, "b.pem", siteCertificate(t, "b.test"))
			d.list = d.layout.Path(dataplane.Certificate, "b.pem") + "\n"
			syncSite(t, c, d.config(t))
			syncSite(t, s.client(t, nil), d.config(t))
			require.NotEmpty(t, s.file(dataplane.Certificate, "b.pem"))
		},
		"the last file of a kind goes": func(t *testing.T, s *site, d desired, c *dataplane.Client) {
			text, files := d.text(), d.config(t).Files()
			text = strings.ReplaceAll(text, "%[path,map("+d.layout.Path(dataplane.Map, "m.map")+")]", "x")
			var rest []dataplane.File
			for _, f := range files {
				if f.Kind != dataplane.Map {
					rest = append(rest, f)
				}
			}
			config, err := dataplane.NewConfig(text, rest...)
			require.NoError(t, err)
			syncSite(t, c, config)
			require.Empty(t, s.Files(dataplane.Map))
		},
		"only a file changes": func(t *testing.T, s *site, d desired, c *dataplane.Client) {
			d.page = "HTTP/1.0 503 No\r\n\r\n"
			require.Equal(t, 1, syncSite(t, c, d.config(t)).Reloads)
			require.Equal(t, d.page, s.file(dataplane.General, "sorry.http"))
		},
		"an entry is acknowledged but lost": func(t *testing.T, s *site, d desired, c *dataplane.Client) {
			d.mapText = "/a a\n/b b\n/n new\n"
			s.Fail(dataplanetest.Fault{Method: "POST", Path: "/entries", Status: 201, Body: "{}"})
			syncSite(t, c, d.config(t))
			require.NotContains(t, s.LoadedMap("m.map"), "/n")
			plan, err := c.DryRun(t.Context(), d.config(t)) // as the next check for drift
			require.NoError(t, err)
			require.Contains(t, plan.String(), "map entry /n")
			require.Zero(t, syncSite(t, c, d.config(t)).Reloads)
			require.Equal(t, "new", s.LoadedMap("m.map")["/n"])
		},
		"the remembered version is the actual one": func(t *testing.T, s *site, d desired, c *dataplane.Client) {
			s.Write(strings.Replace(s.Raw(), "maxconn 100", "maxconn 99", 1))
			require.False(t, syncSite(t, c, d.config(t)).Plan.Empty())
			require.Contains(t, s.Raw(), "maxconn 100")
		},
		"a failed deployment is not remembered as done": func(t *testing.T, s *site, d desired, c *dataplane.Client) {
			d.s1 = "127.0.0.7:7 weight 10"
			s.Fail(dataplanetest.Fault{Method: "POST", Path: "configuration/raw", Status: 503, Times: 3})
			_, err := c.Sync(t.Context(), d.config(t))
			require.Error(t, err)
			require.False(t, syncSite(t, c, d.config(t)).Plan.Empty())
		},
		"nobody remembers credentials by the name of an endpoint": func(t *testing.T, s *site, d desired, _ *dataplane.Client) {
			wrong := s.endpoint
			wrong.Password = "another"
			_, err := dataplane.Sync(t.Context(), wrong, d.config(t), &dataplane.ClientOptions{Layout: s.Layout()})
			require.ErrorIs(t, err, dataplane.ErrUnauthorized)
			_, err = dataplane.Sync(t.Context(), s.endpoint, d.config(t), &dataplane.ClientOptions{Layout: s.Layout()})
			require.NoError(t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			// A reload that the API has scheduled is for the Client to take over.
			s := fakeSite(t, &dataplanetest.Options{ReloadDelay: time.Hour})
			d := newDesired(t, s)
			c := s.client(t, nil)
			syncSite(t, c, d.config(t))
			test(t, s, d, c)
		})
	}
}

func TestClientAPIVersions(t *testing.T) {
	t.Parallel()
	for version, reloads := range map[string]int{"v3.0.0": 1, "v3.1.9 abc": 1, "v3.2.4 1eed677a": 0, "v3.4.1": 0, "v7.0.0": 0, " dev.dirty": 0} {
		t.Run(version, func(t *testing.T) {
			s := fakeSite(t, &dataplanetest.Options{APIVersion: version})
			d := newDesired(t, s)
			c := s.client(t, nil)
			syncSite(t, c, d.config(t))
			d.certificate = siteCertificate(t, "a.test")
			r := syncSite(t, c, d.config(t))
			require.Equal(t, reloads, r.Reloads, "%s", r.Plan)
		})
	}
	s := fakeSite(t, &dataplanetest.Options{APIVersion: "v2.9.3 abc"})
	_, err := s.client(t, nil).Sync(t.Context(), newDesired(t, s).config(t))
	require.ErrorIs(t, err, dataplane.ErrUnsupported)
	require.ErrorContains(t, err, "2.9.3")
	require.False(t, dataplane.Retryable(err))
}

func TestRetryableTLS(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{
		"unknown authority": x509.UnknownAuthorityError{},
		"wrong host":        x509.HostnameError{Certificate: &x509.Certificate{}, Host: "a"},
		"expired":           x509.CertificateInvalidError{Cert: &x509.Certificate{}, Reason: x509.Expired},
		"not verified":      &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}},
		"no TLS":            tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"},
		"ours is refused":   &net.OpError{Op: "remote error", Err: errors.New("tls: bad certificate")},
		"ours is missing":   &net.OpError{Op: "remote error", Err: errors.New("tls: certificate required")},
	} {
		t.Run(name, func(t *testing.T) {
			wrapped := &dataplane.Error{Stage: "probe", Err: &url.Error{Op: "Get", URL: "https://a", Err: err}}
			require.False(t, dataplane.Retryable(wrapped))
			require.True(t, dataplane.Retryable(fmt.Errorf("%w", &url.Error{Op: "Get", URL: "https://a", Err: &net.OpError{Op: "dial", Err: errors.New("refused")}})))
		})
	}
}

// A client tries once where it does not trust the endpoint, over a real handshake.
func TestClientTrustsNobody(t *testing.T) {
	t.Parallel()
	api := dataplanetest.New(t, nil)
	secure := httptest.NewUnstartedServer(api)
	secure.Config.ErrorLog = discardLog()
	secure.StartTLS()
	defer secure.Close()
	e := api.Endpoint()
	config, err := dataplane.NewConfig("global\n  maxconn 5\n")
	require.NoError(t, err)
	for name, set := range map[string]func(){
		"unknown authority": func() { e.URL = secure.URL },
		"plain http":        func() { e.URL = strings.Replace(api.URL(), "http:", "https:", 1) },
		"wrong host": func() {
			pool := x509.NewCertPool()
			pool.AddCert(secure.Certificate())
			e.URL, e.TLS = secure.URL, &tls.Config{RootCAs: pool, ServerName: "another.test", MinVersion: tls.VersionTLS12}
		},
	} {
		t.Run(name, func(t *testing.T) {
			set()
			_, err := dataplane.Sync(t.Context(), e, config, nil)
			require.Error(t, err)
			require.False(t, dataplane.Retryable(err), "%v", err)
		})
	}
	require.Empty(t, api.Requests())
}

// Somebody changes a stored file: no version tells, so that a Sync that has
// nothing to do looks once in a while.
func TestClientLooksAtFiles(t *testing.T) {
	// In the bubble, time passes when all wait, which who waits for a socket
	// never does: the API stays outside and is asked without one.
	api := newMemoryAPI(t)
	synctest.Test(t, func(t *testing.T) {
		c, err := dataplane.NewClient(api.endpoint, &dataplane.ClientOptions{HTTPClient: api.client, CheckInterval: time.Minute})
		require.NoError(t, err)
		config, err := dataplane.NewConfig("global\n  maxconn 5\n", dataplane.File{Kind: dataplane.General, Name: "a.txt", Content: []byte("a\n")})
		require.NoError(t, err)
		sync := func() (*dataplane.Result, int) {
			before := len(api.Requests())
			r, err := c.Sync(context.Background(), config)
			require.NoError(t, err)
			return r, len(api.Requests()) - before
		}
		sync()
		api.SetFile(dataplane.General, "a.txt", []byte("b\n"))
		_, n := sync()
		require.Equal(t, 1, n, "one cheap call")
		time.Sleep(59 * time.Second)
		_, n = sync()
		require.Equal(t, 1, n)
		time.Sleep(2 * time.Second)
		r, _ := sync()
		require.False(t, r.Plan.Empty())
		content, _ := api.File(dataplane.General, "a.txt")
		require.Equal(t, "a\n", string(content))
		_, n = sync()
		require.Equal(t, 1, n)
	})
}
