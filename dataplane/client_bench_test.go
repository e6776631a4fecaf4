package dataplane_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/dataplane/dataplanetest"
)

// benchText is a configuration of backends with three servers each. In the first
// changed of them the first server has an address that depends on round.
func benchText(dir string, backends, changed, round int) string {
	var b strings.Builder
	b.Grow(backends * 360)
	fmt.Fprintf(&b, `global
  maxconn 2000

defaults
  mode http
  timeout connect 1s
  timeout client 10s
  timeout server 10s

frontend web
  bind unix@%s/web.sock
  default_backend backend-of-a-service-00000

`, dir)
	for i := range backends {
		fmt.Fprintf(&b, "backend backend-of-a-service-%05d\n  balance roundrobin\n  option forwardfor\n  timeout server 30s\n", i)
		b.WriteString("  http-request set-header X-Forwarded-Proto https\n  http-request set-header X-Backend of-a-service\n")
		for s := range 3 {
			host := 1 + s
			if s == 0 && i < changed {
				host = 10 + round%200
			}
			fmt.Fprintf(&b, "  server server-%d 127.0.%d.%d:8080 weight 100 maxconn 500\n", s, i%250, host)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// BenchmarkClientNothing is a Sync that has nothing to do.
func BenchmarkClientNothing(b *testing.B) {
	for _, backends := range []int{10, brief(5000)} {
		b.Run(fmt.Sprintf("%d backends", backends), func(b *testing.B) {
			api := dataplanetest.New(b, nil)
			client, err := dataplane.NewClient(api.Endpoint(), nil)
			require.NoError(b, err)
			defer client.Close()
			config, err := dataplane.NewConfig(benchText("/run", backends, 0, 0))
			require.NoError(b, err)
			_, err = client.Sync(b.Context(), config)
			require.NoError(b, err)
			before := len(api.Requests())
			b.ReportAllocs()
			for b.Loop() {
				if _, err := client.Sync(b.Context(), config); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(api.Requests())-before)/float64(b.N), "requests/op")
		})
	}
}

// BenchmarkClientAddresses changes the addresses of 100 servers by way of a real
// Dataplane API, beside a raw push with skip_reload of the same text: pushes and
// Syncs take turns, and the metric "ratio" is that of their times.
func BenchmarkClientAddresses(b *testing.B) {
	binary := os.Getenv("DATAPLANEAPI_BIN")
	if binary == "" {
		b.Skip("DATAPLANEAPI_BIN does not name a Dataplane API")
	}
	if v := haproxyVersion(b); v.Compare(dataplane.Version{Major: 2, Minor: 7}) < 0 {
		b.Skipf("the Dataplane API cannot read what HAProxy %s has, so that addresses take a reload", v)
	}
	backends, changed := brief(5000), 100
	s := &site{Server: dataplanetest.New(b, &dataplanetest.Options{HAProxy: siteHAProxy(b)}), real: true, foreign: true}
	s.endpoint, _ = startDataplaneAPI(b, binary, s.Server)
	client := s.client(b, nil)
	dir := s.Layout().Dir(dataplane.General)
	config := func(round int) *dataplane.Config {
		c, err := dataplane.NewConfig(benchText(dir, backends, changed, round))
		require.NoError(b, err)
		return c
	}
	_, err := client.Sync(b.Context(), config(0))
	require.NoError(b, err)
	pid := s.WorkerPID()
	var pushed, synced time.Duration
	rounds := 0
	for round := 1; b.Loop(); round++ {
		b.StopTimer()
		next := config(round)
		start := time.Now()
		s.pushRaw(b, next.Main())
		pushed += time.Since(start)
		// Back to what the client knows, and what it has seen last.
		s.pushRaw(b, config(round-1).Main())
		_, err := client.DryRun(b.Context(), config(round-1))
		require.NoError(b, err)
		b.StartTimer()
		start = time.Now()
		r, err := client.Sync(b.Context(), next)
		synced += time.Since(start)
		if err != nil {
			b.Fatal(err)
		}
		rounds++
		if r.Reloads != 0 || r.Commands != changed {
			b.Fatalf("%v\n%.400s", r, r.Plan)
		}
	}
	b.ReportMetric(float64(pushed.Milliseconds())/float64(rounds), "push-ms/op")
	b.ReportMetric(float64(synced)/float64(pushed), "ratio")
	if s.WorkerPID() != pid {
		b.Error("it has reloaded")
	}
}

// pushRaw is what one would do without a Client.
func (s *site) pushRaw(tb testing.TB, text string) {
	tb.Helper()
	do := func(method, path, body string) *http.Response {
		req, err := http.NewRequestWithContext(tb.Context(), method, s.endpoint.URL+"/v3/"+path, strings.NewReader(body))
		require.NoError(tb, err)
		req.SetBasicAuth(s.endpoint.Username, s.endpoint.Password)
		req.Header.Set("Content-Type", "text/plain")
		res, err := http.DefaultClient.Do(req)
		require.NoError(tb, err)
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
		return res
	}
	version := do("GET", "info", "").Header.Get("Configuration-Version")
	res := do("POST", "services/haproxy/configuration/raw?skip_reload=true&version="+version, text)
	require.Equal(tb, http.StatusCreated, res.StatusCode)
}

// BenchmarkClientSync is one change at runtime of a configuration of that many
// backends with three servers each: another address of a server, or another entry of
// a map with as many lines. It goes through the Dataplane API that DATAPLANEAPI_BIN
// names, or a fake.
func BenchmarkClientSync(b *testing.B) {
	for _, backends := range []int{100, 1000, 5000} {
		b.Run(fmt.Sprintf("server/%d", backends), func(b *testing.B) { benchSync(b, backends, true) })
	}
	for _, backends := range []int{100, 1000, 5000} {
		b.Run(fmt.Sprintf("map_entry/%d", backends), func(b *testing.B) { benchSync(b, backends, false) })
	}
}

func benchSync(b *testing.B, backends int, server bool) {
	if testing.Short() {
		backends = min(backends, 100)
	}
	s := benchSite(b)
	client := s.client(b, nil)
	dir := s.Layout().Dir(dataplane.General)
	config := func(round int) *dataplane.Config {
		address, entry := round, 0
		if !server {
			address, entry = 0, round
		}
		var m strings.Builder
		for i := range backends {
			fmt.Fprintf(&m, "host-%05d.example.com backend-of-a-service-%05d\n", i, benchTarget(i, entry, backends))
		}
		text := strings.Replace(benchText(dir, backends, 1, address), "  default_backend",
			"  use_backend %[req.hdr(host),map("+s.Layout().Path(dataplane.Map, "hosts.map")+")]\n  default_backend", 1)
		c, err := dataplane.NewConfig(text, dataplane.File{Kind: dataplane.Map, Name: "hosts.map", Content: []byte(m.String())})
		require.NoError(b, err)
		return c
	}
	_, err := client.Sync(b.Context(), config(0))
	require.NoError(b, err)
	b.ReportAllocs()
	for round := 1; b.Loop(); round++ {
		b.StopTimer()
		next := config(round)
		b.StartTimer()
		r, err := client.Sync(b.Context(), next)
		if err != nil {
			b.Fatal(err)
		}
		if r.Reloads != 0 || r.Commands == 0 {
			b.Fatalf("%v\n%.400s", r, r.Plan)
		}
	}
}

// benchSite is the Dataplane API that DATAPLANEAPI_BIN names on a haproxy, or a fake.
func benchSite(b *testing.B) *site {
	binary := os.Getenv("DATAPLANEAPI_BIN")
	if binary == "" {
		s := dataplanetest.New(b, nil)
		return &site{Server: s, endpoint: s.Endpoint()}
	}
	if v := haproxyVersion(b); v.Compare(dataplane.Version{Major: 2, Minor: 7}) < 0 {
		b.Skipf("the Dataplane API cannot read what HAProxy %s has, so that addresses take a reload", v)
	}
	s := &site{Server: dataplanetest.New(b, &dataplanetest.Options{HAProxy: siteHAProxy(b)}), real: true, foreign: true}
	s.endpoint, _ = startDataplaneAPI(b, binary, s.Server)
	return s
}

// benchTarget is where the i-th host leads: the first one leads elsewhere each round.
func benchTarget(i, round, backends int) int {
	if i == 0 {
		return round % backends
	}
	return i
}
