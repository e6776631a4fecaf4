package dataplane_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/dataplane/dataplanetest"
)

// change is how a configuration is before and what happens to it.
type change struct {
	before, change func(t *testing.T, d *desired)
}

// tableChanges has a change for each row of the table for the API.
func tableChanges() map[string]change {
	nothing := func(*testing.T, *desired) {}
	two := func(t *testing.T, d *desired) { d.second = siteCertificate(t, "b.test") }
	address := func(at string) func(*testing.T, *desired) {
		return func(_ *testing.T, d *desired) { d.s1 = at }
	}
	more := func(lines string) func(*testing.T, *desired) {
		return func(_ *testing.T, d *desired) { d.more = lines }
	}
	entries := func(text string) func(*testing.T, *desired) {
		return func(_ *testing.T, d *desired) { d.mapText = text }
	}
	patterns := func(text string) func(*testing.T, *desired) {
		return func(_ *testing.T, d *desired) {
			d.bind = "  http-request deny if { src -f " + d.layout.Path(dataplane.General, "deny.txt") + " }\n"
			d.extra = []dataplane.File{{Kind: dataplane.General, Name: "deny.txt", Content: []byte(text)}}
		}
	}
	authority := func(t *testing.T, d *desired) {
		d.bind = "  bind unix@" + d.layout.Path(dataplane.General, "c.sock") + " ssl crt " + d.layout.Path(dataplane.Certificate, "a.pem") +
			" ca-file " + d.layout.Path(dataplane.CA, "ca.pem") + " verify optional\n"
		d.extra = []dataplane.File{{Kind: dataplane.CA, Name: "ca.pem", Content: onlyCertificates(siteCertificate(t, "ca.test"))}}
	}
	return map[string]change{
		"server update address":                     {address("127.0.0.1:1001"), address("127.0.0.1:1002")},
		"server update weight":                      {address("127.0.0.1:1001 weight 3"), address("127.0.0.1:1001 weight 7")},
		"server update state":                       {address("127.0.0.1:1001"), address("127.0.0.1:1001 disabled")},
		"server create":                             {nothing, more("  server s3 127.0.0.1:1003 weight 9\n")},
		"server create cookie":                      {more("  cookie A insert dynamic\n  dynamic-cookie-key k\n"), more("  cookie A insert dynamic\n  dynamic-cookie-key k\n  server s3 127.0.0.1:1003\n")},
		"server delete":                             {more("  server s3 127.0.0.1:1003\n"), more("")},
		"map entry create":                          {entries("/a a\n"), entries("/a a\n/b b\n")},
		"map entry update":                          {entries("/a a\n"), entries("/a b\n")},
		"map entry delete":                          {entries("/a a\n/b b\n"), entries("/b b\n")},
		"acl entry create":                          {patterns("192.0.2.1\n"), patterns("192.0.2.1\n192.0.2.2\n")},
		"acl entry delete":                          {patterns("192.0.2.1\n192.0.2.2\n"), patterns("192.0.2.2\n")},
		"certificate update":                        {nothing, func(t *testing.T, d *desired) { d.certificate = siteCertificate(t, "a.test") }},
		"certificate create, crt-list entry create": {nothing, two},
		"certificate delete, crt-list entry delete": {two, func(_ *testing.T, d *desired) { d.second = nil }},
		"crt-list entry update":                     {two, func(_ *testing.T, d *desired) { d.filter = " [alpn h2] b.test" }},
		"ca update":                                 {authority, authority},
	}
}

// Each row of the table for the API: a Client changes it at runtime from those
// versions on, says so before, and plans a reload with those before them.
func TestClientTableHolds(t *testing.T) {
	t.Parallel()
	running := haproxyVersion(t)
	changes := tableChanges()
	for _, row := range dataplane.RuntimeChanges() {
		if row.Transport != dataplane.API {
			continue
		}
		name := strings.TrimSpace(fmt.Sprintf("%s %s %s", row.Kind, row.Action, row.Field))
		var c change
		for what, found := range changes {
			for part := range strings.SplitSeq(what, ", ") {
				if part == name {
					c = found
				}
			}
		}
		require.NotNil(t, c.change, "no change for %q", name)
		apis := []dataplane.Version{{Major: 3, Minor: 0}}
		if oldest := apis[0]; *full || oldest.Compare(row.API) < 0 {
			apis = append(apis, dataplane.Version{Major: 3, Minor: 2})
		}
		for _, api := range apis {
			t.Run(name+" by "+api.String(), func(t *testing.T) {
				t.Parallel()
				s := &site{real: true, Server: dataplanetest.New(t, &dataplanetest.Options{HAProxy: siteHAProxy(t), APIVersion: "v" + api.String() + ".1"})}
				s.endpoint = s.Endpoint()
				d := newDesired(t, s)
				c.before(t, &d)
				client := s.client(t, nil)
				syncSite(t, client, d.config(t))
				c.change(t, &d)
				config, pid := d.config(t), s.WorkerPID()
				old := s.client(t, &dataplane.ClientOptions{HTTPClient: &http.Client{Transport: pretendOlder{running, before(row.Since)}}})
				if row.Since != (dataplane.Version{Major: 2, Minor: 6}) {
					plan, err := old.DryRun(t.Context(), config)
					require.NoError(t, err)
					require.Equal(t, dataplane.ImpactReload, plan.Impact(), "%s", plan)
					require.Contains(t, plan.String(), "HAProxy "+row.Since.String()+" and later only")
				}
				planned, err := client.DryRun(t.Context(), config)
				require.NoError(t, err)
				r := syncSite(t, client, config)
				require.Empty(t, r.Fallback)
				left, err := s.client(t, nil).DryRun(t.Context(), config)
				require.NoError(t, err)
				require.True(t, left.Empty(), "%s", left)
				if running.Compare(row.Since) < 0 || api.Compare(row.API) < 0 {
					require.Equal(t, dataplane.ImpactReload, planned.Impact(), "%s", planned)
					require.Equal(t, 1, r.Reloads)
					require.NotEqual(t, pid, s.WorkerPID())
					return
				}
				require.Equal(t, dataplane.ImpactRuntime, planned.Impact(), "%s", planned)
				require.Zero(t, r.Reloads)
				require.Equal(t, pid, s.WorkerPID())
			})
		}
	}
}

func before(v dataplane.Version) dataplane.Version {
	if v.Minor == 0 {
		return dataplane.Version{Major: v.Major - 1, Minor: 9}
	}
	return dataplane.Version{Major: v.Major, Minor: v.Minor - 1}
}

// pretendOlder has the API tell of another version of HAProxy.
type pretendOlder struct{ running, told dataplane.Version }

func (p pretendOlder) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil || !strings.HasSuffix(r.URL.Path, "/runtime/info") {
		return res, err
	}
	body, err := io.ReadAll(res.Body)
	_ = res.Body.Close()
	body = bytes.Replace(body, []byte(`"version":"`+p.running.String()), []byte(`"version":"`+p.told.String()), 1)
	res.Body, res.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return res, err
}
