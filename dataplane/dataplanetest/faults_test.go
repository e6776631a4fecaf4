package dataplanetest_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/dataplane/dataplanetest"
)

// get asks for the configuration, with a time limit where it has one.
func get(ctx context.Context, s *dataplanetest.Server) (status int, body string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL()+"/v3/services/haproxy/configuration/raw", http.NoBody)
	if err != nil {
		return 0, "", err
	}
	req.SetBasicAuth("admin", "secret")
	res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = res.Body.Close() }()
	out, err := io.ReadAll(res.Body)
	return res.StatusCode, string(out), err
}

func TestFaults(t *testing.T) {
	t.Parallel()
	const failed = -1
	for name, c := range map[string]struct {
		fault dataplanetest.Fault
		want  []int // of three requests
	}{
		"first":          {dataplanetest.Fault{Status: 503}, []int{503, 200, 200}},
		"second":         {dataplanetest.Fault{Status: 503, Skip: 1}, []int{200, 503, 200}},
		"second and on":  {dataplanetest.Fault{Status: 503, Skip: 1, Times: 5}, []int{200, 503, 503}},
		"with a body":    {dataplanetest.Fault{Status: 418, Body: "short and stout"}, []int{418, 200, 200}},
		"other method":   {dataplanetest.Fault{Method: "POST", Status: 503}, []int{200, 200, 200}},
		"other path":     {dataplanetest.Fault{Path: "/reloads", Status: 503}, []int{200, 200, 200}},
		"other query":    {dataplanetest.Fault{Query: "version=", Status: 503}, []int{200, 200, 200}},
		"dropped":        {dataplanetest.Fault{Drop: true}, []int{failed, 200, 200}},
		"cut":            {dataplanetest.Fault{Cut: true, Skip: 2}, []int{200, 200, failed}},
		"late":           {dataplanetest.Fault{Delay: time.Millisecond}, []int{200, 200, 200}},
		"late and wrong": {dataplanetest.Fault{Delay: time.Millisecond, Status: 500}, []int{500, 200, 200}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := dataplanetest.New(t, nil)
			s.Fail(c.fault)
			for i, want := range c.want {
				status, _, err := get(t.Context(), s)
				if err != nil {
					status = failed
				}
				if status != want {
					t.Errorf("request %d: got %d %v, want %d", i+1, status, err, want)
				}
				if seen := s.Requests()[i].Status; want > 0 && seen != want {
					t.Errorf("request %d: recorded %d, want %d", i+1, seen, want)
				}
			}
		})
	}
}

func TestCutHappensInTheMiddle(t *testing.T) {
	t.Parallel()
	s := dataplanetest.New(t, nil)
	_, whole, err := get(t.Context(), s)
	require.NoError(t, err)
	s.Fail(dataplanetest.Fault{Cut: true})
	_, part, err := get(t.Context(), s)
	if !errors.Is(err, io.ErrUnexpectedEOF) || part == "" || len(part) >= len(whole) || !strings.HasPrefix(whole, part) {
		t.Errorf("got %d of %d bytes, %v", len(part), len(whole), err)
	}
}

func TestDelayEndsWithTheClient(t *testing.T) {
	t.Parallel()
	s := dataplanetest.New(t, nil)
	s.Fail(dataplanetest.Fault{Delay: time.Hour})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer cancel()
		waitUntil(t, func() bool { return len(s.Requests()) > 0 })
	}()
	if _, _, err := get(ctx, s); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	if status := s.Requests()[0].Status; status != 0 {
		t.Errorf("recorded an answer of %d", status)
	}
}

func TestOthersInterfere(t *testing.T) {
	t.Parallel()
	const text = "defaults\n  mode http\nbackend b\n  server s 192.0.2.1:80\n"
	const push = "services/haproxy/configuration/raw?skip_reload=true&version="
	s := dataplanetest.New(t, &dataplanetest.Options{Config: text})
	s.WriteBehind(text + "  server t 192.0.2.2:80\n")
	if status, _, body := ask(t, s, "POST", push+"1", "text/plain", text); status != 409 || s.Version() != 2 {
		t.Errorf("got %d %s, version %d", status, body, s.Version())
	}
	if !strings.Contains(s.Raw(), "server t") {
		t.Errorf("the other writer is lost: %s", s.Raw())
	}
	s.Write(text)
	if strings.Contains(s.Raw(), "server t") || s.Version() != 3 {
		t.Errorf("version %d, text %s", s.Version(), s.Raw())
	}
	s.SetFile(dataplane.Map, "m.map", []byte("a b\n"))
	s.SetFile(dataplane.Map, "m.map", nil)
	if names := s.Files(dataplane.Map); len(names) != 0 {
		t.Errorf("files %v", names)
	}
}

func TestValidateRefuses(t *testing.T) {
	t.Parallel()
	s := dataplanetest.New(t, &dataplanetest.Options{Validate: func(text string) string {
		if strings.Contains(text, "backend bad") {
			return "it is bad"
		}
		return ""
	}})
	for _, query := range []string{"version=1", "only_validate=true"} {
		status, _, body := ask(t, s, "POST", "services/haproxy/configuration/raw?"+query, "text/plain", "backend bad\n")
		if status != 400 || !strings.Contains(body, "it is bad") {
			t.Errorf("%s: got %d %s", query, status, body)
		}
	}
	if s.Version() != 1 || strings.Contains(s.Raw(), "bad") {
		t.Errorf("version %d, stored %s", s.Version(), s.Raw())
	}
}

// TestConcurrentPushes has several clients push with one version: one wins.
func TestConcurrentPushes(t *testing.T) {
	t.Parallel()
	s := dataplanetest.New(t, nil)
	other := dataplanetest.New(t, nil)
	var wg sync.WaitGroup
	statuses := make(chan int, 6)
	for range cap(statuses) {
		wg.Go(func() {
			_, _, _ = get(t.Context(), other)
			status, _, _ := ask(t, s, "POST", "services/haproxy/configuration/raw?version=1&skip_reload=true", "text/plain", "global\n")
			statuses <- status
		})
	}
	wg.Wait()
	close(statuses)
	count := map[int]int{}
	for status := range statuses {
		count[status]++
	}
	if count[201] != 1 || count[409] != 5 {
		t.Errorf("got %v", count)
	}
}
