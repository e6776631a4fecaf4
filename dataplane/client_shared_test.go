package dataplane_test

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/dataplane/dataplanetest"
)

// ask sends a request of our own to the API.
func (s *site) ask(t *testing.T, method, path, body string) (status int, answer string, header http.Header) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.endpoint.URL+"/v3/"+path, strings.NewReader(body))
	require.NoError(t, err)
	req.SetBasicAuth(s.endpoint.Username, s.endpoint.Password)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
		if strings.Contains(path, "configuration/raw") {
			req.Header.Set("Content-Type", "text/plain")
		}
	}
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res.StatusCode, string(b), res.Header
}

const others = `
frontend theirs
  mode http
  bind unix@DIR/theirs.sock
  timeout client 3s
  http-request set-header X-Theirs yes
  default_backend their_app

backend their_app
  mode http
  timeout connect 1s
  timeout server 3s
  server one 127.0.0.1:2001
`

// sharedSite is an endpoint on which somebody else has deployed something.
func sharedSite(t *testing.T, s *site) {
	t.Helper()
	stored := s.stored(t)
	s.interfere(t, stored+strings.ReplaceAll(others, "DIR", s.Layout().Dir(dataplane.General)))
}

const ourDefaults = `
defaults of-ours
  mode http
  timeout connect 1s
  timeout client 10s
  timeout server 10s
`

func ourConfig(t *testing.T, s *site, text string, files ...dataplane.File) *dataplane.Config {
	t.Helper()
	c, err := dataplane.NewConfig(strings.ReplaceAll(ourDefaults+text, "DIR", s.Layout().Dir(dataplane.General)), files...)
	require.NoError(t, err)
	return c
}

func requireTheirs(t *testing.T, s *site) {
	t.Helper()
	stored := s.stored(t)
	for line := range strings.Lines(others) {
		require.Contains(t, stored, strings.TrimSpace(strings.ReplaceAll(line, "DIR", s.Layout().Dir(dataplane.General))))
	}
}

// TestClientSharedChanges goes from one configuration to the next on an
// endpoint that somebody else uses as well.
func TestClientSharedChanges(t *testing.T) {
	t.Parallel()
	const web = `
frontend ours
  bind unix@DIR/ours.sock
  acl a path /a
  acl a path /aa
  http-request set-header X-A 1 if a
  http-request set-header X-B 2
  default_backend app

backend app
  balance roundrobin
  server s1 127.0.0.1:1001
  server s2 127.0.0.1:1002
`
	sites(t, func(t *testing.T, s *site) {
		sharedSite(t, s)
		options := &dataplane.ClientOptions{Shared: true}
		client := s.client(t, options)
		for _, step := range []struct {
			name, text string
			reloads    int
		}{
			{"all is new", web, 1},
			{"nothing", web, 0},
			{"a rule comes, one goes", strings.Replace(strings.Replace(web, "  http-request set-header X-A 1 if a\n", "", 1), "X-B 2\n", "X-B 2\n  http-request set-header X-C 3 if a\n", 1), 1},
			{"back", web, 1},
			{"an ACL of a repeated name", strings.Replace(web, "  acl a path /aa\n", "  acl a path /ab\n  acl a path /ac\n", 1), 1},
			{"address", strings.Replace(web, ":1001", ":1009", 1), 1},
			{"address alone", strings.Replace(web, ":1001", ":1008", 1), 0},
			{"a bind, a timeout and a server with checks", strings.Replace(strings.Replace(web, "  acl a path /a\n", "  bind unix@DIR/more.sock\n  timeout client 7s\n  acl a path /a\n", 1), "1002\n", "1002\n  server s3 127.0.0.1:1003 check\n", 1), 1},
			{"a backend goes, another comes", strings.NewReplacer("app", "app2", "s2", "x2").Replace(web), 1},
			{"a section with a list", web + "\nuserlist u\n  group g\n  user a insecure-password x groups g\n\nresolvers r\n  nameserver n 127.0.0.1:5353\n\nbackend old\n  server z 127.0.0.1:1\n", 1},
			{"all but one go", "\nbackend old\n  server z 127.0.0.1:1\n", 1},
		} {
			if step.name == "address alone" && s.real && haproxyMinor(t) < 207 {
				step.reloads = 1
			}
			config := ourConfig(t, s, step.text)
			pid := s.WorkerPID()
			r, err := client.Sync(t.Context(), config)
			require.NoError(t, err, step.name)
			require.Equal(t, step.reloads, r.Reloads, "%s: %v\n%v", step.name, r, r.Plan)
			require.Equal(t, step.reloads > 0, s.WorkerPID() != pid, step.name)
			require.Empty(t, r.Fallback, step.name)
			requireTheirs(t, s)
			for _, again := range []*dataplane.Client{client, s.client(t, options)} {
				plan, err := again.DryRun(t.Context(), config)
				require.NoError(t, err, step.name)
				require.True(t, plan.Empty(), "%s: %s", step.name, plan)
			}
		}
		require.NotContains(t, s.stored(t), "frontend ours", "what we had deployed and do not want goes")
	})
}

// Where a reload of somebody else has failed, the API has another text in memory
// than on disk, which a transaction would begin with.
func TestClientSharedAfterAFailedReload(t *testing.T) {
	t.Parallel()
	s, client := sharedFake(t, nil)
	s.FailReload("no memory")
	version := strconv.FormatInt(s.Version(), 10)
	status, answer, _ := s.ask(t, "POST", "services/haproxy/configuration/raw?force_reload=true&version="+version, s.Raw()+"\nbackend bad\n  server s1 192.0.2.1:80\n")
	require.Equal(t, 400, status, answer)
	require.Contains(t, s.Memory(), "backend bad")
	require.Equal(t, 1, syncSite(t, client, ourConfig(t, s, changedApp)).Reloads)
	require.Contains(t, s.Raw(), "path /x")
	require.NotContains(t, s.Memory(), "backend bad")
	requireTheirs(t, s)
}

// What was refused, or did not load, belongs to nobody: who makes a section of
// that name later keeps it.
func TestClientSharedOwnsWhatIsDeployed(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(s *site){
		"refused": func(s *site) {
			s.Fail(dataplanetest.Fault{Method: "POST", Path: "configuration/raw", Status: 400})
		},
		"failed reload": func(s *site) { s.FailReload("no memory") },
	} {
		t.Run(name, func(t *testing.T) {
			s, client := sharedFake(t, nil)
			const more = "\nbackend more\n  server s1 192.0.2.1:80\n"
			before := s.file(dataplane.General, "haptic-ledger.txt")
			fail(s)
			_, err := client.Sync(t.Context(), ourConfig(t, s, sharedApp+more))
			require.Error(t, err)
			require.Equal(t, before, s.file(dataplane.General, "haptic-ledger.txt"))
			s.Write(s.Raw() + more)
			syncSite(t, client, ourConfig(t, s, changedApp))
			require.Contains(t, s.Raw(), "backend more")
			requireTheirs(t, s)
		})
	}
}

// A look that finds nothing to do does not make a client forget that more is
// said to belong to it than it has deployed.
func TestClientSharedOwnsAfterALook(t *testing.T) {
	t.Parallel()
	s, client := sharedFake(t, nil)
	before := s.file(dataplane.General, "haptic-ledger.txt")
	s.Fail(dataplanetest.Fault{Method: "POST", Path: "storage/general", Status: 503, Times: 3})
	_, err := client.Sync(t.Context(), ourConfig(t, s, sharedApp, dataplane.File{Kind: dataplane.General, Name: "a.txt", Content: []byte("a\n")}))
	require.Error(t, err)
	require.NotEqual(t, before, s.file(dataplane.General, "haptic-ledger.txt"))
	plan, err := client.DryRun(t.Context(), ourConfig(t, s, sharedApp))
	require.NoError(t, err)
	require.True(t, plan.Empty(), "%s", plan)
	syncSite(t, client, ourConfig(t, s, sharedApp))
	require.Equal(t, before, s.file(dataplane.General, "haptic-ledger.txt"))
}
