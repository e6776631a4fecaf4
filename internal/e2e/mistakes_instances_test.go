package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/hapticsdk/haptic/dataplane/dataplanetest"
)

const instancePassword = "canary-instance-password"

// badAPI is the way to a Dataplane API, which something answers in place of that.
type badAPI struct {
	*httptest.Server
	instead atomic.Pointer[http.HandlerFunc] // nil: the API itself
}

func newBadAPI(t *testing.T, target string) *badAPI {
	t.Helper()
	to, err := url.Parse(target)
	must(t, err)
	proxy := &httputil.ReverseProxy{Transport: &http.Transport{DisableKeepAlives: true}, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}
	b := &badAPI{}
	b.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if instead := b.instead.Load(); instead != nil {
			(*instead)(w, r)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		b.CloseClientConnections()
		b.Close()
	})
	return b
}

// runInstances has a controller with a HAProxy behind a Dataplane API.
func runInstances(t *testing.T, b *board, g *group) {
	f := newManifests(t, g.mistakes)
	api := dataplanetest.New(t, &dataplanetest.Options{Password: instancePassword, HAProxy: &dataplanetest.HAProxy{}})
	bad := newBadAPI(t, api.URL())
	c := startController(t, options{binary: *mistakesController, addr: subnet + "225", debugPort: 9125, endpoints: []string{bad.URL},
		env: []string{"HAPTIC_DATAPLANE_USERNAME=admin", "HAPTIC_DATAPLANE_PASSWORD=" + instancePassword,
			"HAPTIC_VALIDATION_USERNAME=admin", "HAPTIC_VALIDATION_PASSWORD=" + instancePassword},
		args: append(folderFlags(f), "-maxconn", "1000", "-endpoint-base", api.Layout().Base, "-drift-interval", "1s",
			"-endpoint-socket", filepath.Join(api.Layout().Base, "admin.sock"))})
	s := &stage{t: t, b: b, group: g.name, c: c, manifest: f, plain: c.visit(), api: bad}
	eventually(t, "the other site is served", s.plain.expectStatus("others.test", "/", 200))
	s.startOthers("others.test")
	s.runAll(g)
}

// answering has the instance answer with a status and a text, and gives it something
// to do.
func answering(status int, text string) func(sc *scene) {
	return answeringBy(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprint(w, text)
	})
}

func answeringBy(f http.HandlerFunc) func(sc *scene) {
	return func(sc *scene) {
		sc.api.instead.Store(&f)
		sc.undo = append(sc.undo, func() { sc.api.instead.Store(nil) })
		sc.edit("198.51.100.20", "198.51.100.30", "198.51.100.21", "198.51.100.31")
	}
}

// noPassword: what the instance answers may hold what it was asked with.
func noPassword(sc *scene) error {
	page, err := sc.c.page("/")
	if err == nil && (strings.Contains(page, instancePassword) || strings.Contains(sc.c.out.String(), instancePassword)) {
		err = fmt.Errorf("the password of the instance is in the log or on the page")
	}
	return err
}

// instanceMistakes are instances that cannot be deployed to. What they serve stays.
var instanceMistakes = []mistake{
	{name: "the API refuses the password", plant: answering(401, `{"code":401,"message":"no"}`),
		says: []string{"INSTANCE", "401", "authori"}},
	{name: "the API fails", plant: answering(500, `{"code":500,"message":"the database is locked"}`),
		says: []string{"INSTANCE", "500", "the database is locked"}},
	{name: "the API repeats the password", plant: answering(500, `{"code":500,"message":"no such user admin:`+instancePassword+`"}`), also: noPassword,
		says: []string{"INSTANCE", "500"}},
	{name: "another program answers", plant: answering(404, "<html><body>Not found</body></html>"),
		says: []string{"INSTANCE", "404"}},
	{name: "the API is of version 2", plant: answeringBy(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/v2/") {
			fmt.Fprint(w, `{"api":{"version":"v2.9.1"}}`)
			return
		}
		http.Error(w, `{"code":404,"message":"path `+r.URL.Path+` was not found"}`, http.StatusNotFound)
	}), says: []string{"INSTANCE", "v3"}},
	{name: "the API cuts the connection", plant: answeringBy(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }),
		says: []string{"INSTANCE", "EOF"}},
	{name: "the API does not answer", long: true, plant: answeringBy(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }),
		says: []string{"INSTANCE", "did not answer"}},
}
