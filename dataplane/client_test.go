package dataplane_test

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/dataplane/dataplanetest"
)

func syncSite(t *testing.T, c *dataplane.Client, config *dataplane.Config) *dataplane.Result {
	t.Helper()
	r, err := c.Sync(t.Context(), config)
	require.NoError(t, err)
	if r.Hash != config.Hash() || r.Plan == nil || r.Duration <= 0 {
		t.Errorf("result %+v", r)
	}
	return r
}

// TestClientChanges deploys a configuration, then one change, and says what
// the change must cost. Afterwards nothing may differ, also for a client that
// knows nothing.
func TestClientChanges(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change  func(t *testing.T, d *desired)
		reloads int
		impact  dataplane.Impact
		servers bool // change, which takes a reload before HAProxy 2.7
		check   func(t *testing.T, s *site, d desired)
	}{
		"nothing": {
			change: func(*testing.T, *desired) {},
		},
		"address and weight": {
			servers: true,
			change:  func(_ *testing.T, d *desired) { d.s1 = "127.0.0.2:1003 weight 20" },
			impact:  dataplane.ImpactRuntime,
			check: func(t *testing.T, s *site, _ desired) {
				if address, _ := s.LoadedServer("b", "s1"); address != "127.0.0.2:1003" {
					t.Errorf("s1 has %s", address)
				}
			},
		},
		"a slot comes to life": {
			servers: true,
			change:  func(_ *testing.T, d *desired) { d.s2 = "127.0.0.3:1004" },
			impact:  dataplane.ImpactRuntime,
			check: func(t *testing.T, s *site, _ desired) {
				if address, state := s.LoadedServer("b", "s2"); address != "127.0.0.3:1004" || state != "ready" {
					t.Errorf("s2 has %s %s", address, state)
				}
			},
		},
		"map entries": {
			change: func(_ *testing.T, d *desired) { d.mapText = "/a changed\n/c c\n" },
			impact: dataplane.ImpactRuntime,
			check: func(t *testing.T, s *site, d desired) {
				loaded := s.LoadedMap("m.map")
				if len(loaded) != 2 || loaded["/a"] != "changed" || loaded["/c"] != "c" {
					t.Errorf("loaded %v", loaded)
				}
				if got := s.file(dataplane.Map, "m.map"); got != d.mapText {
					t.Errorf("stored %q", got)
				}
			},
		},
		"map entry with a blank": {
			change:  func(_ *testing.T, d *desired) { d.mapText = "/a a\n/b two words\n" },
			impact:  dataplane.ImpactReload,
			reloads: 1,
		},
		"certificate": {
			change: func(t *testing.T, d *desired) { d.certificate = siteCertificate(t, "a.test") },
			impact: dataplane.ImpactRuntime,
			check: func(t *testing.T, s *site, d desired) {
				if got := s.LoadedCertificate("a.pem"); got != fingerprintOf(d.certificate) {
					t.Errorf("loaded %s", got)
				}
			},
		},
		"directive": {
			change:  func(_ *testing.T, d *desired) { d.global = "  nbthread 2\n" },
			impact:  dataplane.ImpactReload,
			reloads: 1,
		},
		"content of a general file": {
			change:  func(_ *testing.T, d *desired) { d.page = "HTTP/1.0 503 No\r\n\r\n" },
			impact:  dataplane.ImpactReload,
			reloads: 1,
		},
		"a file goes": {
			change:  func(_ *testing.T, d *desired) { d.noFiles = true },
			impact:  dataplane.ImpactReload,
			reloads: 1,
			check: func(t *testing.T, s *site, _ desired) {
				if got := s.file(dataplane.General, "sorry.http"); got != "" {
					t.Errorf("still there: %q", got)
				}
			},
		},
		"comment": {
			change: func(_ *testing.T, d *desired) { d.global = "  # nothing\n" },
		},
		"all at once": {
			change: func(t *testing.T, d *desired) {
				d.global, d.s1, d.mapText = "  nbthread 2\n", "127.0.0.9:9", "/z z\n"
				d.certificate = siteCertificate(t, "a.test")
			},
			impact:  dataplane.ImpactReload,
			reloads: 1,
			check: func(t *testing.T, s *site, d desired) {
				address, _ := s.LoadedServer("b", "s1")
				if loaded := s.LoadedMap("m.map"); loaded["/z"] != "z" || address != "127.0.0.9:9" || s.LoadedCertificate("a.pem") != fingerprintOf(d.certificate) {
					t.Errorf("loaded %v %s", loaded, address)
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sites(t, func(t *testing.T, s *site) {
				c, d := c, newDesired(t, s)
				if c.servers && s.real && haproxyMinor(t) < 207 {
					c.impact, c.reloads = dataplane.ImpactReload, 1
				}
				client := s.client(t, nil)
				if r := syncSite(t, client, d.config(t)); r.Reloads != 1 || r.Files < 4 {
					t.Errorf("first: %v", r)
				}
				before := s.WorkerPID()
				c.change(t, &d)
				config := d.config(t)
				plan, err := client.DryRun(t.Context(), config)
				require.NoError(t, err)
				r := syncSite(t, client, config)
				if plan.Impact() != c.impact || r.Plan.Impact() != c.impact || r.Reloads != c.reloads || r.Fallback != "" {
					t.Errorf("want %v and %d reloads\nplan %v\ndone %v\n%v", c.impact, c.reloads, plan, r, r.Plan)
				}
				if reloaded := s.WorkerPID() != before; reloaded != (c.reloads > 0) {
					t.Errorf("reloaded: %v", reloaded)
				}
				if c.check != nil {
					c.check(t, s, d)
				}
				pid := s.WorkerPID()
				for _, again := range []*dataplane.Client{client, s.client(t, nil)} {
					if plan, err := again.DryRun(t.Context(), config); err != nil || !plan.Empty() {
						t.Errorf("still differs: %v %v", plan, err)
					}
					if r := syncSite(t, again, config); !r.Plan.Empty() || r.Reloads != 0 {
						t.Errorf("again: %v", r)
					}
				}
				if s.WorkerPID() != pid {
					t.Error("a sync with nothing to do reloaded")
				}
			})
		})
	}
}

func TestClientSomebodyElseWrites(t *testing.T) {
	t.Parallel()
	sites(t, func(t *testing.T, s *site) {
		d := newDesired(t, s)
		client := s.client(t, nil)
		syncSite(t, client, d.config(t))
		want := s.stored(t)
		s.interfere(t, strings.Replace(want, "maxconn 100", "maxconn 99", 1))
		if s.stored(t) == want {
			t.Fatal("nothing has changed")
		}
		r := syncSite(t, client, d.config(t))
		if got := s.stored(t); got != want || r.Plan.Empty() || r.Reloads != 1 {
			t.Errorf("%v\n%s", r, got)
		}
	})
}

func TestClientRefusedConfiguration(t *testing.T) {
	t.Parallel()
	sites(t, func(t *testing.T, s *site) {
		if !s.real {
			s = &site{Server: dataplanetest.New(t, &dataplanetest.Options{Validate: func(text string) string {
				for i, line := range strings.Split(text, "\n") {
					if strings.Contains(line, "bogus") {
						return fmt.Sprintf("msg=\"parsing [/tmp/x:%d] : unknown keyword 'bogus'\"", i+1)
					}
				}
				return ""
			}})}
			s.endpoint = s.Endpoint()
		}
		d := newDesired(t, s)
		client := s.client(t, nil)
		syncSite(t, client, d.config(t))
		text, pid, version := s.stored(t), s.WorkerPID(), s.Version()
		bad := d
		bad.global, bad.mapText = "  bogus keyword\n", "/n new\n"
		_, err := client.Sync(t.Context(), bad.config(t))
		var e *dataplane.Error
		if !errors.As(err, &e) || !errors.Is(err, dataplane.ErrInvalid) || dataplane.Retryable(err) {
			t.Fatalf("got %v", err)
		}
		if e.Line != 3 || e.File != "haproxy.cfg" || !strings.Contains(e.Output, "bogus") || e.Endpoint != s.endpoint.Name || e.Status != 400 {
			t.Errorf("got %+v", e)
		}
		if s.stored(t) != text || s.WorkerPID() != pid || s.Version() != version || s.file(dataplane.Map, "m.map") != d.mapText {
			t.Error("something was left behind")
		}
		if r := syncSite(t, client, d.config(t)); r.Reloads != 0 || !r.Plan.Empty() {
			t.Errorf("after it: %v", r)
		}
	})
}

func TestClientFailedReload(t *testing.T) {
	t.Parallel()
	sites(t, func(t *testing.T, s *site) {
		d := newDesired(t, s)
		client := s.client(t, &dataplane.ClientOptions{ReloadTimeout: s.reloadTimeout()})
		syncSite(t, client, d.config(t))
		text, pid := s.stored(t), s.WorkerPID()
		bad := d
		bad.mapText = "/a another\n"
		taken, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", localPort(t))) // valid, but not to be had
		require.NoError(t, err)
		defer func() { _ = taken.Close() }()
		bad.bind = "  bind " + taken.Addr().String() + "\n"
		if !s.real {
			s.FailReload("cannot bind socket")
		}
		_, err = client.Sync(t.Context(), bad.config(t))
		var e *dataplane.Error
		if !errors.As(err, &e) || !errors.Is(err, dataplane.ErrReload) || dataplane.Retryable(err) {
			t.Fatalf("got %v", err)
		}
		if !s.foreign && !strings.Contains(e.Output, "cannot bind") {
			t.Errorf("output %q", e.Output)
		}
		if got := s.stored(t); got != text {
			t.Errorf("stored before:\n%s\nnow:\n%s", text, got)
		}
		if now := s.WorkerPID(); now != pid {
			t.Errorf("worker %d -> %d", pid, now)
		}
		if got := s.file(dataplane.Map, "m.map"); got != d.mapText {
			t.Errorf("map %q", got)
		}
		if !s.foreign && s.Memory() != text {
			t.Error("the API still has the failed text in memory")
		}
		// With an HAProxy before 2.7 the real API calls the failed reload a success:
		// nobody can tell it from one that is late, so that the next Sync makes sure.
		want := 0
		if s.foreign && haproxyMinor(t) < 207 {
			want = 1
		}
		if r := syncSite(t, client, d.config(t)); r.Reloads != want {
			t.Errorf("after it: %v", r)
		}
		_ = taken.Close()
		if r := syncSite(t, client, bad.config(t)); r.Reloads != 1 {
			t.Errorf("with the port free: %v", r)
		}
	})
}
