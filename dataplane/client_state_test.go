package dataplane_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/dataplane/dataplanetest"
)

// A controller that ends in the middle leaves files behind that are as desired,
// and a process that has not read them. The next one must not believe the files.
func TestClientSuccessor(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]dataplanetest.Fault{
		"map stored, push fails":       {Method: "POST", Path: "configuration/raw", Status: 503},
		"all stored, no entry changed": {Path: "/entries", Status: 403},
		"second upload fails":          {Method: "PUT", Path: "storage/", Skip: 1, Status: 503},
	} {
		t.Run(name, func(t *testing.T) {
			s := fakeSite(t, nil)
			d := newDesired(t, s)
			first := s.client(t, &dataplane.ClientOptions{Attempts: 1})
			syncSite(t, first, d.config(t))

			old := d
			d.mapText, d.certificate = "/a a\n/n new\n", siteCertificate(t, "a.test")
			if name != "second upload fails" {
				d.s1 = "127.0.0.7:7 weight 10"
			}
			s.Fail(fault)
			_, err := first.Sync(t.Context(), d.config(t))
			require.Error(t, err)
			if name != "all stored, no entry changed" {
				d.s1 = old.s1 // so that nothing but the files differs
			}
			second := s.client(t, nil)
			syncSite(t, second, d.config(t))
			require.Equal(t, "new", s.LoadedMap("m.map")["/n"])
			require.Equal(t, fingerprintOf(d.certificate), s.LoadedCertificate("a.pem"))

			third := s.client(t, nil)
			r := syncSite(t, third, d.config(t))
			require.True(t, r.Plan.Empty(), "%s", r.Plan)
			require.Zero(t, r.Reloads)
		})
	}
}

// What a process was told before the rest was refused is taken back as well.
func TestClientTakesBackWhatTheProcessHas(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		faults []dataplanetest.Fault
		reload string // what the reload fails with
		err    error
	}{
		"text refused after a certificate was swapped": {
			faults: []dataplanetest.Fault{{Method: "POST", Path: "configuration/raw", Status: 400}}, err: dataplane.ErrInvalid,
		},
		"reload fails after runtime changes": {
			faults: []dataplanetest.Fault{{Method: "POST", Path: "/entries", Status: 500}}, reload: "no memory", err: dataplane.ErrReload,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, d, client := servedSite(t)
			old := d
			address, _ := s.LoadedServer("b", "s1")

			d.s1, d.mapText, d.certificate = "127.0.0.7:7 weight 10", "/a a\n/n new\n", siteCertificate(t, "a.test")
			for _, f := range c.faults {
				s.Fail(f)
			}
			if c.reload != "" {
				s.FailReload(c.reload)
			}
			_, err := client.Sync(t.Context(), d.config(t))
			require.ErrorIs(t, err, c.err)

			syncSite(t, client, old.config(t))
			now, _ := s.LoadedServer("b", "s1")
			require.Equal(t, address, now)
			require.NotContains(t, s.LoadedMap("m.map"), "/n")
			require.Equal(t, fingerprintOf(old.certificate), s.LoadedCertificate("a.pem"))
		})
	}
}

// A refused configuration does not make a client forget that the process may
// lack what an earlier attempt has stored.
func TestClientStaysUnsettled(t *testing.T) {
	t.Parallel()
	s, d, client := servedSite(t)

	d.mapText = "/a a\n/n new\n"
	s.Fail(dataplanetest.Fault{Method: "POST", Path: "/entries", Drop: true, Times: 9})
	s.Fail(dataplanetest.Fault{Method: "POST", Path: "configuration/raw", Status: 503, Times: 2})
	_, err := client.Sync(t.Context(), d.config(t))
	require.Error(t, err)

	bad := d
	bad.s1 = "127.0.0.7:7 weight 10"
	s.Fail(dataplanetest.Fault{Method: "POST", Path: "configuration/raw", Status: 400, Times: 2})
	_, err = client.Sync(t.Context(), bad.config(t))
	require.ErrorIs(t, err, dataplane.ErrInvalid)

	syncSite(t, client, d.config(t))
	require.Equal(t, "new", s.LoadedMap("m.map")["/n"])
}

// Files that could not be put back are not taken for those that were there.
func TestClientFilesNotPutBack(t *testing.T) {
	t.Parallel()
	s, d, client := servedSite(t)
	old := d

	d.mapText, d.s1 = "/a a\n/n new\n", "127.0.0.7:7 weight 10"
	s.Fail(dataplanetest.Fault{Method: "POST", Path: "configuration/raw", Status: 400, Times: 2})
	s.Fail(dataplanetest.Fault{Method: "PUT", Path: "storage/maps", Skip: 1, Status: 500})
	_, err := client.Sync(t.Context(), d.config(t))
	require.ErrorIs(t, err, dataplane.ErrInvalid)

	syncSite(t, client, old.config(t))
	content, _ := s.File(dataplane.Map, "m.map")
	require.Equal(t, old.mapText, string(content))
	require.NotContains(t, s.LoadedMap("m.map"), "/n")
}

// Who gives up while a reload is followed does not make the client believe
// that the reload failed.
func TestClientGivesUpAfterTheReload(t *testing.T) {
	t.Parallel()
	s := fakeSite(t, nil)
	d := newDesired(t, s)
	client := s.client(t, &dataplane.ClientOptions{ReloadTimeout: patience})
	syncSite(t, client, d.config(t))
	old := d

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	d.s1 = "127.0.0.7:7 weight 10 check inter 7s"
	// The process is asked for at the beginning, before and after the reload; the
	// last answer never comes.
	s.Fail(dataplanetest.Fault{Path: "runtime/info", Skip: 2, Delay: 1 << 40})
	done := make(chan error, 1)
	reloads, asked := len(s.Reloads()), len(s.Requests())
	go func() {
		_, err := client.Sync(ctx, d.config(t))
		done <- err
	}()
	// Before that it would be the next Sync that gets no answer.
	waitForSite(t, func() bool {
		n := 0
		for _, r := range s.Requests()[asked:] {
			if strings.Contains(r.Path, "runtime/info") {
				n++
			}
		}
		return n == 3
	})
	require.Len(t, s.Reloads(), reloads+1)
	cancel()
	err := <-done
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, dataplane.ErrReload)

	syncSite(t, client, old.config(t))
	address, _ := s.LoadedServer("b", "s1")
	require.NotEqual(t, "127.0.0.7:7", address)
}

// A client, printed in whatever way, and its errors do not show secrets.
func TestClientPrintsNoSecrets(t *testing.T) {
	t.Parallel()
	s := dataplanetest.New(t, &dataplanetest.Options{Password: "hunter2"})
	client, err := dataplane.NewClient(s.Endpoint(), nil)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	config := func(text string, files ...dataplane.File) *dataplane.Config {
		c, err := dataplane.NewConfig(text, files...)
		require.NoError(t, err)
		return c
	}
	secret := config("userlist u\n user a insecure-password hunter2\n")
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%d", "%x", "%q"} {
		require.NotContains(t, fmt.Sprintf(verb, client), "hunter2", verb)
		require.NotContains(t, fmt.Sprintf(verb, client), fmt.Sprintf("%x", "hunter2"), verb)
		require.NotContains(t, fmt.Sprintf(verb, secret), "hunter2", verb)
	}
	require.NotContains(t, slog.AnyValue(client).Resolve().String(), "hunter2")

	// A line that the API would change.
	_, err = client.DryRun(t.Context(), config("userlist u\n user a insecure-password hunter2\xff\n"))
	require.ErrorIs(t, err, dataplane.ErrUnsupported)
	require.NotContains(t, err.Error(), "hunter2")

	// Keys of a map of secrets, in the path of a request.
	const text = "defaults\n mode http\n timeout client 1s\n timeout server 1s\n timeout connect 1s\nfrontend f\n bind 127.0.0.1:0\n http-request set-var(txn.a) req.hdr(a),map(/etc/haproxy/maps/tokens.map)\n"
	tokens := func(content string) *dataplane.Config {
		return config(text, dataplane.File{Kind: dataplane.Map, Name: "tokens.map", Content: []byte(content)})
	}
	_, err = client.Sync(t.Context(), tokens("a b\n"))
	require.NoError(t, err)
	_, err = client.Sync(t.Context(), tokens("a b\nhunter2 c\n"))
	require.NoError(t, err)
	_, err = client.Sync(t.Context(), tokens("a b\nhunter2 d\n"))
	require.NoError(t, err)
	for _, r := range s.Requests() {
		require.False(t, strings.Contains(r.Path, "hunter2"), r.Path)
	}

	// Words of a line that HAProxy quotes.
	refusing := dataplanetest.New(t, &dataplanetest.Options{Validate: func(string) string {
		return `msg="parsing [/etc/haproxy/haproxy.cfg:2] : user 'a': unknown argument 'hunter2'"`
	}})
	client, err = dataplane.NewClient(refusing.Endpoint(), nil)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	_, err = client.Sync(t.Context(), secret)
	require.ErrorIs(t, err, dataplane.ErrInvalid)
	require.NotContains(t, err.Error(), "hunter2")
	var e *dataplane.Error
	require.True(t, errors.As(err, &e))
	require.Equal(t, 2, e.Line)
}

// A DryRun reads everything anew. The certificates, which the API never gives
// back, the client still knows, so that a Sync that is refused puts them back.
func TestClientKeepsCertificatesAfterDryRun(t *testing.T) {
	t.Parallel()
	s := &site{Server: dataplanetest.New(t, &dataplanetest.Options{Validate: func(text string) string {
		if strings.Contains(text, "nbthread") {
			return "no"
		}
		return ""
	}})}
	s.endpoint = s.Endpoint()
	d := newDesired(t, s)
	client := s.client(t, nil)
	syncSite(t, client, d.config(t))
	before := s.file(dataplane.Certificate, "a.pem")
	d.certificate, d.global = siteCertificate(t, "a.test"), "  nbthread 2\n"
	plan, err := client.DryRun(t.Context(), d.config(t))
	require.NoError(t, err)
	require.Contains(t, plan.String(), "certificate a.pem")
	_, err = client.Sync(t.Context(), d.config(t))
	require.ErrorIs(t, err, dataplane.ErrInvalid)
	require.True(t, before == s.file(dataplane.Certificate, "a.pem"), "another certificate is stored")
}
