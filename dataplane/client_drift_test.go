package dataplane_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/dataplane/dataplanetest"
)

// renewed is the certificate with the same serial number, subject and names, but
// another key and a later end.
func renewed(t testing.TB, bundle []byte) []byte {
	t.Helper()
	block, _ := pem.Decode(bundle)
	template, err := x509.ParseCertificate(block.Bytes)
	require.NoError(t, err)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template.NotAfter = template.NotAfter.Add(time.Hour)
	template.PublicKey = nil
	for { // of the same size
		der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
		require.NoError(t, err)
		private, err := x509.MarshalPKCS8PrivateKey(key)
		require.NoError(t, err)
		out := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})...)
		if len(out) == len(bundle) {
			return out
		}
	}
}

// A certificate that was renewed is served, also where a new Client deploys it.
func TestClientServesARenewedCertificate(t *testing.T) {
	t.Parallel()
	sites(t, func(t *testing.T, s *site) {
		d := newDesired(t, s)
		syncSite(t, s.client(t, nil), d.config(t))
		d.certificate = renewed(t, d.certificate)
		plan, err := s.client(t, nil).DryRun(t.Context(), d.config(t))
		require.NoError(t, err)
		require.Contains(t, plan.String(), "certificate a.pem")
		r := syncSite(t, s.client(t, nil), d.config(t))
		require.Zero(t, r.Reloads, "%s", r.Plan)
		require.Equal(t, fingerprintOf(d.certificate), s.LoadedCertificate("a.pem"))
		require.True(t, syncSite(t, s.client(t, nil), d.config(t)).Plan.Empty())
	})
}

// A certificate that another writer has stored, without a word to the process, is
// not taken for the one that is served.
func TestClientTellsAboutAStoredCertificate(t *testing.T) {
	t.Parallel()
	s := fakeSite(t, nil)
	d := newDesired(t, s)
	syncSite(t, s.client(t, nil), d.config(t))
	d.certificate = renewed(t, d.certificate)
	s.SetFile(dataplane.Certificate, "a.pem", d.certificate)
	require.Zero(t, syncSite(t, s.client(t, nil), d.config(t)).Reloads)
	require.Equal(t, fingerprintOf(d.certificate), s.LoadedCertificate("a.pem"))
}

// A refusal that is certain leaves no doubt: after a conflict on a push without a
// reload, the retry takes none either.
func TestClientConflictTakesNoReload(t *testing.T) {
	t.Parallel()
	for _, status := range []int{409, 429} {
		s, d, client := servedSite(t)
		d.s1, d.mapText = "127.0.0.7:7 weight 10", "/a a\n/n new\n"
		s.Fail(dataplanetest.Fault{Method: "POST", Path: "configuration/raw", Status: status})
		r := syncSite(t, client, d.config(t))
		require.Zero(t, r.Reloads, "%d: %s", status, r)
		require.Empty(t, r.Fallback)
		address, _ := s.LoadedServer("b", "s1")
		require.Equal(t, "127.0.0.7:7", address)
		require.Equal(t, "new", s.LoadedMap("m.map")["/n"])
		require.True(t, syncSite(t, s.client(t, nil), d.config(t)).Plan.Empty())
	}
}

// A check for drift finds what the process was told by others, and repairs it without
// a reload.
func TestClientRepairsTheProcess(t *testing.T) {
	t.Parallel()
	sites(t, func(t *testing.T, s *site) {
		d := newDesired(t, s)
		client := s.client(t, &dataplane.ClientOptions{CheckInterval: time.Nanosecond})
		config := d.config(t)
		syncSite(t, client, config)
		path := s.Layout().Path(dataplane.Map, "m.map")
		for command, op := range map[string]string{
			"set server b/s1 state maint":                "server s1",
			"set server b/s1 addr 127.0.0.9 port 99":     "server s1",
			"set server b/s1 weight 77":                  "server s1",
			"set server b/s2 state ready":                "server s2",
			"set map " + path + " /a other":              "map entry /a",
			"del map " + path + " /b":                    "map entry /b",
			"add map " + path + " /theirs something-new": "map entry /theirs",
		} {
			if s.real && haproxyMinor(t) < 207 {
				return // the API understands nothing of what the process says
			}
			s.Runtime(command)
			var plan *dataplane.Plan
			eventually(t, command, func() bool { // from HAProxy 2.9 on a task changes addresses
				var err error
				plan, err = client.DryRun(t.Context(), config)
				return err == nil && strings.Contains(plan.String(), op)
			})
			require.Equal(t, dataplane.ImpactRuntime, plan.Impact(), "%s: %s", command, plan)
			r := syncSite(t, client, config)
			require.Zero(t, r.Reloads, command)
			address, state := s.LoadedServer("b", "s1")
			require.Equal(t, "127.0.0.1:1001 ready", address+" "+state, command)
			_, state = s.LoadedServer("b", "s2")
			require.Equal(t, "maint", state, command)
			require.Equal(t, map[string]string{"/a": "a", "/b": "b"}, s.LoadedMap("m.map"), command)
			require.True(t, syncSite(t, client, config).Plan.Empty(), command)
		}
	})
}

// An address, a map entry and a certificate never wait for a reload that something
// else needs.
func TestClientWithoutReload(t *testing.T) {
	t.Parallel()
	sites(t, func(t *testing.T, s *site) {
		d := newDesired(t, s)
		client := s.client(t, nil)
		syncSite(t, client, d.config(t))
		pid, reloads := s.WorkerPID(), len(s.Reloads())
		d.s1, d.certificate, d.global = "127.0.0.7:7 weight 10", siteCertificate(t, "a.test"), "  nbthread 2\n"
		d.mapText = "/a a\n/b b\n/n new\n/c coming\n"
		d.more = "\nbackend coming\n  server s1 127.0.0.1:9\n"
		r, err := client.Sync(t.Context(), d.config(t), dataplane.WithoutReload())
		require.NoError(t, err)
		require.Zero(t, r.Reloads)
		require.Equal(t, pid, s.WorkerPID())
		require.Len(t, s.Reloads(), reloads)
		require.Contains(t, r.Left.String(), "+ backend coming")
		require.Contains(t, r.Left.String(), "map entry /c", "it leads to a backend that is to come")
		require.NotContains(t, r.Left.String(), "map entry /n")
		require.Equal(t, "new", s.LoadedMap("m.map")["/n"])
		require.NotContains(t, s.LoadedMap("m.map"), "/c")
		require.Equal(t, fingerprintOf(d.certificate), s.LoadedCertificate("a.pem"))
		if !s.real || haproxyMinor(t) >= 207 { // or else the API has no way for an address
			require.NotContains(t, r.Left.String(), "server s1 in backend b ")
			address, _ := s.LoadedServer("b", "s1")
			require.Equal(t, "127.0.0.7:7", address)
		}

		r, err = client.Sync(t.Context(), d.config(t), dataplane.WithoutReload())
		require.NoError(t, err)
		require.Zero(t, r.Commands, "%s", r)
		require.NotEmpty(t, r.Left)
		require.Equal(t, 1, syncSite(t, client, d.config(t)).Reloads)
		require.Equal(t, "coming", s.LoadedMap("m.map")["/c"])
		require.True(t, syncSite(t, s.client(t, nil), d.config(t)).Plan.Empty())
	})
}

// Current tells what is deployed, so that a controller that starts anew remembers it.
func TestClientCurrent(t *testing.T) {
	t.Parallel()
	sites(t, func(t *testing.T, s *site) {
		d := newDesired(t, s)
		config := d.config(t)
		syncSite(t, s.client(t, nil), config)
		current, err := s.client(t, nil).Current(t.Context())
		require.NoError(t, err)
		plan, err := dataplane.Diff(current, config)
		require.NoError(t, err)
		for _, op := range plan.Ops {
			require.True(t, op.Kind == "certificate" || op.Kind == "crt-list entry" || op.Kind == "crt-list", "%s", plan)
		}
		m, _ := current.File(dataplane.Map, "m.map")
		require.Equal(t, d.mapText, string(m.Content))
		_, ledger := current.File(dataplane.General, "haptic-ledger.txt")
		require.False(t, ledger)
	})
}

// A position stands once in a line, and a wrong URL says what is wanted.
func TestErrorsSayItOnce(t *testing.T) {
	t.Parallel()
	s := fakeSite(t, nil)
	config, err := dataplane.NewConfig("global\n.if feature(LUA)\n  maxconn 10\n.endif\n")
	require.NoError(t, err)
	_, err = s.client(t, nil).Sync(t.Context(), config)
	require.Equal(t, 1, strings.Count(err.Error(), ":2:"), "%v", err)
	for _, url := range []string{"10.0.0.7:5555", "10.0.0.7", "haproxy:5555", "ftp://haproxy"} {
		_, err := dataplane.NewClient(dataplane.Endpoint{URL: url}, nil)
		require.ErrorContains(t, err, "want http://host:port", url)
	}
	e := &dataplane.Error{Endpoint: "a", Stage: "reload", File: "haproxy.cfg", Line: 7, Err: dataplane.ErrReload, Output: "parsing [haproxy.cfg:7] : unknown keyword"}
	require.Equal(t, 1, strings.Count(fmt.Sprint(e), "haproxy.cfg:7"))
}
