package dataplane_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/dataplane/dataplanetest"
)

// TestClientFaults deploys a configuration, then another one with a fault on
// the way. Whatever happens, once the fault is over a Sync with the same
// client gets there, and the process has what was desired.
func TestClientFaults(t *testing.T) {
	t.Parallel()
	const push = "configuration/raw"
	for name, c := range map[string]struct {
		fault   dataplanetest.Fault
		err     error // nil: the Sync itself must get over it
		status  int
		stage   string
		reloads int // from the fault on, until all is well
	}{
		"probe answers 500 once":         {fault: dataplanetest.Fault{Path: "/info", Status: 500}},
		"probe answers 500 for long":     {fault: dataplanetest.Fault{Path: "/info", Status: 500, Times: 3}, status: 500, stage: "probe"},
		"probe is cut":                   {fault: dataplanetest.Fault{Path: "/info", Cut: true}},
		"credentials are refused":        {fault: dataplanetest.Fault{Status: 401}, err: dataplane.ErrUnauthorized, status: 401, stage: "probe"},
		"no such API":                    {fault: dataplanetest.Fault{Status: 404}, err: dataplane.ErrUnsupported, status: 404, stage: "probe"},
		"too many requests":              {fault: dataplanetest.Fault{Path: push, Status: 429}, reloads: 1},
		"upload is dropped":              {fault: dataplanetest.Fault{Path: "storage/maps", Drop: true}, reloads: 1},
		"upload is done, answer is cut":  {fault: dataplanetest.Fault{Method: "PUT", Path: "storage/maps", Cut: true}, reloads: 1},
		"upload answers 500 for long":    {fault: dataplanetest.Fault{Method: "PUT", Path: "storage/maps", Status: 500, Times: 3}, status: 500, stage: "files", reloads: 1},
		"push is dropped":                {fault: dataplanetest.Fault{Method: "POST", Path: push, Drop: true}, reloads: 1},
		"push is done, answer is cut":    {fault: dataplanetest.Fault{Method: "POST", Path: push, Cut: true}, reloads: 1},
		"push answers 503 for long":      {fault: dataplanetest.Fault{Method: "POST", Path: push, Status: 503, Times: 3}, status: 503, stage: "configuration", reloads: 1},
		"map entry answers 500":          {fault: dataplanetest.Fault{Path: "/entries", Status: 500}, reloads: 1},
		"map entry is done, answer cut":  {fault: dataplanetest.Fault{Method: "POST", Path: "/entries", Cut: true}, reloads: 1},
		"reading back fails":             {fault: dataplanetest.Fault{Method: "GET", Path: "/entries", Status: 500}, reloads: 1},
		"versions collide for long":      {fault: dataplanetest.Fault{Method: "POST", Path: push, Status: 409, Times: 3}, err: dataplane.ErrConflict, status: 409, stage: "configuration", reloads: 1},
		"certificate is swapped, is cut": {fault: dataplanetest.Fault{Method: "PUT", Path: "ssl_certificates", Cut: true}, reloads: 1},
	} {
		t.Run(name, func(t *testing.T) {
			s, d, client := servedSite(t)
			before := len(s.Reloads())

			d.s1, d.mapText, d.certificate = "127.0.0.7:7 weight 10", "/a a\n/n new\n", siteCertificate(t, "a.test")
			s.Fail(c.fault)
			_, err := client.Sync(t.Context(), d.config(t))
			wantErr := c.stage != ""
			if (err != nil) != wantErr {
				t.Fatalf("got %v", err)
			}
			if wantErr {
				var e *dataplane.Error
				if !errors.As(err, &e) || e.Stage != c.stage || e.Status != c.status || e.Endpoint != "test" {
					t.Errorf("got %#v", err)
				}
				if c.err != nil && !errors.Is(err, c.err) {
					t.Errorf("%v is not %v", err, c.err)
				}
				permanent := errors.Is(err, dataplane.ErrUnauthorized) || errors.Is(err, dataplane.ErrUnsupported)
				if dataplane.Retryable(err) == permanent {
					t.Errorf("retryable: %v", !permanent)
				}
			}
			syncSite(t, client, d.config(t))
			address, _ := s.LoadedServer("b", "s1")
			loaded := s.LoadedMap("m.map")
			if address != "127.0.0.7:7" || loaded["/n"] != "new" || len(loaded) != 2 || s.LoadedCertificate("a.pem") != fingerprintOf(d.certificate) {
				t.Errorf("loaded %s %v", address, loaded)
			}
			if got := len(s.Reloads()) - before; got > c.reloads {
				t.Errorf("%d reloads, want at most %d: %v", got, c.reloads, s.Actions())
			}
			if r := syncSite(t, client, d.config(t)); !r.Plan.Empty() || r.Reloads != 0 {
				t.Errorf("in the end: %v", r)
			}
		})
	}
}

func TestClientSecondWriter(t *testing.T) {
	t.Parallel()
	s, d, client := servedSite(t)
	other := strings.Replace(s.Raw(), "maxconn 100", "maxconn 7", 1)

	t.Run("once", func(t *testing.T) {
		s.WriteBehind(other)
		d.s1 = "127.0.0.8:8 weight 10"
		syncSite(t, client, d.config(t))
		address, _ := s.LoadedServer("b", "s1")
		if strings.Contains(s.Raw(), "maxconn 7") || address != "127.0.0.8:8" {
			t.Errorf("%s\n%s", address, s.Raw())
		}
	})
	t.Run("always", func(t *testing.T) {
		for range 3 {
			s.WriteBehind(other)
		}
		d.s1 = "127.0.0.9:9 weight 10"
		_, err := client.Sync(t.Context(), d.config(t))
		if !errors.Is(err, dataplane.ErrConflict) || !dataplane.Retryable(err) {
			t.Fatalf("got %v", err)
		}
		if !strings.Contains(s.Raw(), "maxconn 7") {
			t.Error("wrote over what somebody else has written")
		}
	})
}

// After a failed reload whose aftermath failed as well, the API has another
// text in memory than on disk. Who comes next repairs that without a reload.
func TestClientRepairsTheMemoryOfTheAPI(t *testing.T) {
	t.Parallel()
	s := fakeSite(t, nil)
	d := newDesired(t, s)
	syncSite(t, s.client(t, nil), d.config(t))
	good, reloads := s.Raw(), len(s.Reloads())

	s.FailReload("no luck")
	s.Fail(dataplanetest.Fault{Method: "POST", Query: "skip_reload", Status: 500})
	bad := d
	bad.global = "  nbthread 2\n"
	_, err := s.client(t, nil).Sync(t.Context(), bad.config(t))
	if !errors.Is(err, dataplane.ErrReload) || !strings.Contains(err.Error(), "no luck") || !strings.Contains(err.Error(), "back failed as well") {
		t.Fatalf("got %v", err)
	}
	if s.Raw() != good || s.Memory() == good {
		t.Fatal("disk and memory do not differ")
	}
	syncSite(t, s.client(t, nil), d.config(t))
	if s.Memory() != good || s.Raw() != good || len(s.Reloads()) != reloads+1 {
		t.Errorf("%d reloads, memory:\n%s", len(s.Reloads())-reloads, s.Memory())
	}
}

func TestClientFileGoesWhileItLooks(t *testing.T) {
	t.Parallel()
	s := fakeSite(t, nil)
	d := newDesired(t, s)
	syncSite(t, s.client(t, nil), d.config(t))
	for _, path := range []string{"storage/maps/m.map", "storage/ssl_certificates/a.pem"} {
		s.Fail(dataplanetest.Fault{Method: "GET", Path: path, Status: 404})
		if r := syncSite(t, s.client(t, nil), d.config(t)); r.Reloads != 0 {
			t.Errorf("%s: %v", path, r)
		}
	}
}

func TestClientAtRest(t *testing.T) {
	t.Parallel()
	s := fakeSite(t, nil)
	config := newDesired(t, s).config(t)
	client := s.client(t, nil)
	syncSite(t, client, config)
	before := len(s.Requests())
	syncSite(t, client, config)
	if got := s.Requests()[before:]; len(got) != 1 {
		t.Errorf("a sync with nothing to do asked %v", got)
	}
	if plan, err := client.DryRun(t.Context(), config); err != nil || !plan.Empty() {
		t.Errorf("%v %v", plan, err)
	}
	before = len(s.Requests())
	syncSite(t, client, config)
	if got := s.Requests()[before:]; len(got) != 1 || got[0].Path != "/info" {
		t.Errorf("a sync with nothing to do asked %v", got)
	}
}

func TestClientStoredFileDrifts(t *testing.T) {
	t.Parallel()
	s, d, client := servedSite(t)
	s.SetFile(dataplane.Map, "m.map", []byte("/a drifted\n"))
	s.SetFile(dataplane.General, "stale.txt", []byte("x"))
	s.SetFile(dataplane.General, "odd name.txt", []byte("x"))
	plan, err := client.DryRun(t.Context(), d.config(t))
	if err != nil || plan.Empty() {
		t.Fatalf("not seen: %v %v", plan, err)
	}
	syncSite(t, client, d.config(t))
	if got := s.file(dataplane.Map, "m.map"); got != d.mapText {
		t.Errorf("map %q", got)
	}
	if got := s.Files(dataplane.General); !slices.Equal(got, []string{"haptic-ledger.txt", "list.txt", "odd name.txt", "sorry.http"}) {
		t.Errorf("files %q", got)
	}
}

func TestClientKeepsFiles(t *testing.T) {
	t.Parallel()
	s := fakeSite(t, nil)
	d := newDesired(t, s)
	d.global = "  lua-prepend-path " + d.layout.Dir(dataplane.General) + "/?.lua\n"
	s.SetFile(dataplane.General, "library.lua", []byte("x"))
	s.SetFile(dataplane.Map, "stale.map", []byte("x y\n"))
	syncSite(t, s.client(t, &dataplane.ClientOptions{KeepFiles: true}), d.config(t))
	if got := s.file(dataplane.Map, "stale.map"); got == "" {
		t.Error("KeepFiles did not")
	}
	syncSite(t, s.client(t, nil), d.config(t))
	if s.file(dataplane.General, "library.lua") == "" || s.file(dataplane.Map, "stale.map") != "" {
		t.Error("files of a folder that is named stay, others go")
	}
}

func TestClientOldAPI(t *testing.T) {
	t.Parallel()
	s := fakeSite(t, &dataplanetest.Options{APIVersion: "v3.0.5"})
	d := newDesired(t, s)
	client := s.client(t, nil)
	syncSite(t, client, d.config(t))
	d.certificate = siteCertificate(t, "a.test")
	r := syncSite(t, client, d.config(t))
	if r.Reloads != 1 || r.Plan.Impact() != dataplane.ImpactReload || len(s.Reloads()) != 2 {
		t.Errorf("%v %v", r, s.Reloads())
	}
	if !strings.Contains(r.Plan.String(), "before 3.2") {
		t.Errorf("no reason in %v", r.Plan)
	}
}

func TestClientRefusesBeforeSending(t *testing.T) {
	t.Parallel()
	s := fakeSite(t, nil)
	for name, c := range map[string]struct {
		text  string
		files []dataplane.File
		err   error
		line  int
		file  string
	}{
		"conditional block":    {text: "global\n.if feature(LUA)\n  maxconn 1\n.endif\n", err: dataplane.ErrUnsupported, line: 2, file: "haproxy.cfg"},
		"default-server below": {text: "backend a\n  server s 127.0.0.1:1\n  default-server check\n", err: dataplane.ErrUnsupported, line: 3, file: "haproxy.cfg"},
		"unknown section":      {text: "global\n  maxconn 1\nnamespace_list\n  namespace a\n", err: dataplane.ErrUnsupported, line: 3, file: "haproxy.cfg"},
		"certificate without a key": {
			text: "global\n", files: []dataplane.File{{Kind: dataplane.Certificate, Name: "a.pem", Content: []byte("x")}},
			err: dataplane.ErrInvalid, file: "certificate a.pem",
		},
	} {
		t.Run(name, func(t *testing.T) {
			config, err := dataplane.NewConfig(c.text, c.files...)
			require.NoError(t, err)
			before := s.Version()
			_, err = s.client(t, nil).Sync(t.Context(), config)
			var e *dataplane.Error
			if !errors.As(err, &e) || !errors.Is(err, c.err) || e.Line != c.line || e.File != c.file || e.Stage != "check" {
				t.Errorf("got %#v", err)
			}
			if s.Version() != before || len(s.Files(dataplane.Certificate)) != 0 {
				t.Error("something was sent")
			}
		})
	}
}

func TestClientContext(t *testing.T) {
	t.Parallel()
	s := fakeSite(t, nil)
	config := newDesired(t, s).config(t)
	t.Run("cancelled before", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		client := s.client(t, nil)
		for range 100 {
			_, err := client.Sync(ctx, config)
			var e *dataplane.Error
			if !errors.As(err, &e) || e.Stage != "wait" || !errors.Is(err, context.Canceled) {
				t.Fatalf("got %v", err)
			}
		}
	})
	t.Run("cancelled while it waits", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s.Fail(dataplanetest.Fault{Path: "/info", Delay: time.Hour})
		done := make(chan error, 1)
		go func() {
			_, err := s.client(t, nil).Sync(ctx, config)
			done <- err
		}()
		waitForSite(t, func() bool { return len(s.Requests()) > 0 })
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) || dataplane.Retryable(err) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("answers too late", func(t *testing.T) {
		s.Fail(dataplanetest.Fault{Path: "/info", Delay: time.Hour, Times: 3})
		_, err := s.client(t, &dataplane.ClientOptions{RequestTimeout: 10 * time.Millisecond}).Sync(t.Context(), config)
		if !errors.Is(err, context.DeadlineExceeded) || !dataplane.Retryable(err) {
			t.Errorf("got %v", err)
		}
	})
}

func TestEndpointKeepsItsPassword(t *testing.T) {
	t.Parallel()
	const password = "hunter2"
	e := dataplane.Endpoint{URL: "http://192.0.2.1:5555", Username: "admin", Password: password}
	encoded, err := json.Marshal(e)
	require.NoError(t, err)
	var log strings.Builder
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "endpoint", e, "pointer", &e)
	_, unreachable := dataplane.NewClient(dataplane.Endpoint{URL: "http://admin:" + password + "@192.0.2.1"}, nil)
	_, garbage := dataplane.NewClient(dataplane.Endpoint{URL: "http://admin:" + password + "@192.0.2.1:x\x7f"}, nil)
	for _, out := range []string{
		fmt.Sprintf("%v %+v %#v %s %q %x %d", e, e, e, e, e, e, e), fmt.Sprintf("%v %+v %#v", &e, &e, &e),
		string(encoded), log.String(), fmt.Sprint(unreachable), fmt.Sprint(garbage),
	} {
		if strings.Contains(out, password) || strings.Contains(out, fmt.Sprintf("%x", password)) {
			t.Errorf("the password shows in %s", out)
		}
	}
	if unreachable == nil || garbage == nil {
		t.Error("a URL with credentials was taken")
	}
	if got := e.String(); got != "http://192.0.2.1:5555 as admin" {
		t.Errorf("got %q", got)
	}
}

func TestClientWrongPassword(t *testing.T) {
	t.Parallel()
	s := dataplanetest.New(t, nil)
	e := s.Endpoint()
	e.Password = "wrong"
	config, err := dataplane.NewConfig("global\n")
	require.NoError(t, err)
	_, err = dataplane.Sync(t.Context(), e, config, nil)
	if !errors.Is(err, dataplane.ErrUnauthorized) || strings.Contains(err.Error(), e.Password) {
		t.Errorf("got %v", err)
	}
	if got := s.Requests(); len(got) != 1 {
		t.Errorf("tried %d times", len(got))
	}
}
