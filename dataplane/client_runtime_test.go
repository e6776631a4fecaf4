package dataplane_test

import (
	"encoding/pem"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
)

// haproxyMinor returns the version of the haproxy that tests run, 206 for 2.6.
func haproxyMinor(t *testing.T) int {
	v := haproxyVersion(t)
	return 100*v.Major + v.Minor
}

// TestClientRuntimeEndpoints makes changes for which there are endpoints of the
// running process, over a real haproxy: without a reload where its version and
// the API can, with one, planned as such, elsewhere.
func TestClientRuntimeEndpoints(t *testing.T) {
	t.Parallel()
	since := func(minor int) func(*testing.T) bool {
		return func(t *testing.T) bool { return haproxyMinor(t) >= minor }
	}
	always := since(0)
	never := since(1 << 20)
	bigMap := func(last string) string {
		var b strings.Builder
		for i := range 3000 {
			fmt.Fprintf(&b, "/path/%05d value-%d\n", i, i%7)
		}
		return b.String() + last
	}
	for name, c := range map[string]struct {
		before, change func(t *testing.T, d *desired)
		runtime        func(t *testing.T) bool
		check          func(t *testing.T, s *site, d desired)
	}{
		"server comes": {
			change: func(_ *testing.T, d *desired) { d.more = "  server s3 127.0.0.1:1003 weight 7 maxconn 50\n" }, runtime: since(300),
			check: func(t *testing.T, s *site, _ desired) {
				if address, state := s.LoadedServer("b", "s3"); address != "127.0.0.1:1003" || state != "ready" {
					t.Errorf("s3 has %s %s", address, state)
				}
			},
		},
		"server comes disabled": {
			change: func(_ *testing.T, d *desired) { d.more = "  server s3 127.0.0.1:1003 disabled\n" }, runtime: since(300),
			check: func(t *testing.T, s *site, _ desired) {
				if _, state := s.LoadedServer("b", "s3"); state != "maint" {
					t.Errorf("s3 is %s", state)
				}
			},
		},
		"server with checks comes": {
			change: func(_ *testing.T, d *desired) { d.more = "  server s3 127.0.0.1:1003 check\n" }, runtime: never,
		},
		"server goes": {
			before: func(_ *testing.T, d *desired) { d.more = "  server s3 127.0.0.1:1003\n" },
			change: func(_ *testing.T, d *desired) { d.more = "" }, runtime: since(300),
			check: func(t *testing.T, s *site, _ desired) {
				if address, _ := s.LoadedServer("b", "s3"); address != "" {
					t.Errorf("s3 still has %s", address)
				}
			},
		},
		"certificate and its entry come": {
			change: func(t *testing.T, d *desired) { d.second = siteCertificate(t, "b.test") }, runtime: always,
			check: func(t *testing.T, s *site, d desired) {
				require.Equal(t, fingerprintOf(d.second), s.LoadedCertificate("b.pem"))
			},
		},
		"certificate and its entry go": {
			before:  func(t *testing.T, d *desired) { d.second = siteCertificate(t, "b.test") },
			change:  func(_ *testing.T, d *desired) { d.second = nil },
			runtime: always,
			check: func(t *testing.T, s *site, _ desired) {
				require.Empty(t, s.file(dataplane.Certificate, "b.pem"))
			},
		},
		"limit of a frontend": {
			before: func(_ *testing.T, d *desired) { d.bind = "  maxconn 40\n" },
			change: func(_ *testing.T, d *desired) { d.bind = "  maxconn 50\n" }, runtime: never,
		},
		"port of a check, which the API does not tell": {
			before: func(_ *testing.T, d *desired) { d.s1 = "127.0.0.1:1001 check port 7 inter 1h" },
			change: func(_ *testing.T, d *desired) { d.s1 = "127.0.0.1:1001 check port 8 inter 1h" }, runtime: never,
		},
		"large map changes all over": {
			before: func(_ *testing.T, d *desired) { d.mapText = strings.ReplaceAll(bigMap(""), "value", "old") },
			change: func(_ *testing.T, d *desired) { d.mapText = bigMap("/last one\n") }, runtime: never,
			check: func(t *testing.T, s *site, _ desired) {
				loaded := s.LoadedMap("m.map")
				require.Len(t, loaded, 3001)
				require.Equal(t, "value-1", loaded["/path/00001"])
				require.Equal(t, "one", loaded["/last"])
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sites(t, func(t *testing.T, s *site) {
				if !s.real {
					t.Skip("without a haproxy there is nothing to see")
				}
				d := newDesired(t, s)
				if c.before != nil {
					c.before(t, &d)
				}
				client := s.client(t, nil)
				syncSite(t, client, d.config(t))
				c.change(t, &d)
				config, pid := d.config(t), s.WorkerPID()
				want, reloads := dataplane.ImpactRuntime, 0
				if !c.runtime(t) {
					want, reloads = dataplane.ImpactReload, 1
				}
				plan, err := client.DryRun(t.Context(), config)
				require.NoError(t, err)
				require.Equal(t, want, plan.Impact(), "%s", plan)
				r := syncSite(t, client, config)
				require.Equal(t, reloads, r.Reloads, "%v\n%s", r, r.Plan)
				require.Empty(t, r.Fallback)
				require.Equal(t, reloads > 0, s.WorkerPID() != pid)
				if c.check != nil {
					c.check(t, s, d)
				}
				plan, err = s.client(t, nil).DryRun(t.Context(), config)
				require.NoError(t, err)
				require.True(t, plan.Empty(), "%s", plan)
			})
		})
	}
}

// onlyCertificates leaves the keys away.
func onlyCertificates(bundles ...[]byte) []byte {
	var out []byte
	for _, b := range bundles {
		block, _ := pem.Decode(b)
		out = append(out, pem.EncodeToMemory(block)...)
	}
	return out
}
