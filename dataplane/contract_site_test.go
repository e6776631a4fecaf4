package dataplane_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/dataplane/dataplanetest"
	"github.com/hapticsdk/haptic/internal/haproxyctl"
)

// deployer is what the contract asks of Client and Local.
type deployer interface {
	Name() string
	Sync(ctx context.Context, desired *dataplane.Config, options ...dataplane.SyncOption) (*dataplane.Result, error)
	DryRun(ctx context.Context, desired *dataplane.Config) (*dataplane.Plan, error)
}

// place is a HAProxy under contract, and the way to it.
type place struct {
	deployer
	layout  dataplane.Layout
	sockets string // folder for what the configuration listens on
	stats   string // path of the stats socket
	master  haproxyctl.Master
	api     bool // by way of a Dataplane API, which normalises what it stores
	foreign bool // of the real one

	// anew makes another deployer, which remembers nothing.
	anew func() deployer

	// current reads what is stored: the text and the files of the desired
	// configuration that are there.
	current func(t *testing.T, desired *dataplane.Config) *dataplane.Config

	// names lists all files that are stored, the text not counted.
	names func(t *testing.T) []string
}

// places runs a test at each kind of place, all at the same time. In each of
// them it may ask for several.
func places(t *testing.T, test func(t *testing.T, settle func(t *testing.T) *place)) {
	needHAProxy(t)
	t.Run("local", func(t *testing.T) {
		t.Parallel()
		test(t, localPlace)
	})
	t.Run("client", func(t *testing.T) {
		t.Parallel()
		test(t, clientPlace)
	})
	t.Run("dataplaneapi", func(t *testing.T) {
		binary := os.Getenv("DATAPLANEAPI_BIN")
		if binary == "" {
			t.Skip("DATAPLANEAPI_BIN names no Dataplane API")
		}
		t.Parallel()
		test(t, func(t *testing.T) *place { return realPlace(t, binary) })
	})
}

func localPlace(t *testing.T) *place {
	h := newHost(t)
	return &place{
		deployer: h.local, layout: h.local.Layout(), sockets: filepath.Join(h.dir, "run"), stats: h.local.RuntimeSocket(),
		master: haproxyctl.Master{Path: filepath.Join(h.dir, "run", "master.sock")},
		anew: func() deployer {
			h.stop()
			h.start()
			return h.local
		},
		current: func(t *testing.T, _ *dataplane.Config) *dataplane.Config {
			c, err := h.local.Current(t.Context())
			require.NoError(t, err)
			return c
		},
		names: func(*testing.T) []string {
			return slices.DeleteFunc(h.leftovers(), func(name string) bool { return filepath.Dir(name) == "." })
		},
	}
}

func clientPlace(t *testing.T) *place {
	s := dataplanetest.New(t, &dataplanetest.Options{HAProxy: siteHAProxy(t)})
	return sitePlace(t, &site{Server: s, endpoint: s.Endpoint(), real: true})
}

func realPlace(t *testing.T, binary string) *place {
	s := dataplanetest.New(t, &dataplanetest.Options{HAProxy: siteHAProxy(t)})
	endpoint, _ := startDataplaneAPI(t, binary, s)
	return sitePlace(t, &site{Server: s, endpoint: endpoint, real: true, foreign: true})
}

func sitePlace(t *testing.T, s *site) *place {
	layout := s.Layout()
	client := func() deployer { return s.client(t, nil) }
	return &place{
		deployer: client(), layout: layout, sockets: layout.Base, stats: filepath.Join(layout.Base, "stats.sock"),
		master: haproxyctl.Master{Path: filepath.Join(layout.Base, "master.sock")},
		api:    true, foreign: s.foreign, anew: client,
		current: func(t *testing.T, desired *dataplane.Config) *dataplane.Config {
			var files []dataplane.File
			for _, f := range desired.Files() {
				if content, err := os.ReadFile(layout.Path(f.Kind, f.Name)); err == nil {
					files = append(files, dataplane.File{Kind: f.Kind, Name: f.Name, Content: content})
				}
			}
			c, err := dataplane.NewConfig(s.stored(t), files...)
			require.NoError(t, err)
			return c
		},
		names: func(t *testing.T) []string {
			var names []string
			for _, dir := range []string{"maps", "ssl", "general"} {
				entries, err := os.ReadDir(filepath.Join(layout.Base, dir))
				require.NoError(t, err)
				for _, e := range entries {
					if e.Name() != "haptic-ledger.txt" { // which the Client keeps for itself
						names = append(names, filepath.Join(dir, e.Name()))
					}
				}
			}
			return names
		},
	}
}

// world is what all places of a test share: servers to stand behind HAProxy,
// and certificates.
type world struct {
	servers      map[string]string // name -> address
	certificates map[string][]byte // "common name, edition" -> PEM with key
	authorities  map[string][]byte
}

func newWorld(t *testing.T) *world {
	w := &world{servers: map[string]string{}, certificates: map[string][]byte{}, authorities: map[string][]byte{}}
	answer := func(name string) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
			_, _ = rw.Write([]byte(name))
		})
	}
	for _, name := range []string{"one", "two", "three"} {
		srv := httptest.NewServer(answer(name))
		t.Cleanup(srv.Close)
		w.servers[name] = srv.Listener.Addr().String()
	}
	certificate := siteCertificate(t, "secure.test") // its own authority
	pair, err := tls.X509KeyPair(certificate, certificate)
	require.NoError(t, err)
	secure := httptest.NewUnstartedServer(answer("secure"))
	secure.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	secure.Config.ErrorLog = quiet()
	secure.StartTLS()
	t.Cleanup(secure.Close)
	w.servers["secure"] = secure.Listener.Addr().String()
	w.authorities["good"] = withoutKey(certificate)
	w.authorities["bad"] = withoutKey(siteCertificate(t, "bad.test"))
	return w
}

// withoutKey leaves only the certificate of a PEM file.
func withoutKey(raw []byte) []byte {
	block, _ := pem.Decode(raw)
	return pem.EncodeToMemory(block)
}

// certificate makes a certificate whose organisation says which edition it is,
// once.
func (w *world) certificate(t *testing.T, name, edition string) []byte {
	if made, ok := w.certificates[name+", "+edition]; ok {
		return made
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(int64(len(w.certificates)) + 1), Subject: pkix.Name{CommonName: name, Organization: []string{edition}},
		DNSNames: []string{name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: der}))
	require.NoError(t, pem.Encode(&out, &pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}))
	w.certificates[name+", "+edition] = out.Bytes()
	return out.Bytes()
}

// prepare makes all certificates that the archives name, so that places need
// not share the map while they run.
func (w *world) prepare(t *testing.T, archives map[string]*txtar.Archive) {
	for _, a := range archives {
		for _, f := range a.Files {
			if words := strings.Fields(string(f.Data)); len(words) == 3 && words[0] == "certificate" {
				w.certificate(t, words[1], words[2])
			}
		}
	}
}

// render makes the configuration of an archive for a place, and the checks that
// go with it.
func (w *world) render(t *testing.T, a *txtar.Archive, p *place) (config *dataplane.Config, checks []string) {
	t.Helper()
	pairs := []string{
		"@stats@", p.stats, "@sockets@", p.sockets, "@maps@", p.layout.Dir(dataplane.Map),
		"@ssl@", p.layout.Dir(dataplane.Certificate), "@general@", p.layout.Dir(dataplane.General),
	}
	for name, address := range w.servers {
		pairs = append(pairs, "@"+name+"@", address)
	}
	replacer := strings.NewReplacer(pairs...)
	var main string
	var files []dataplane.File
	for _, f := range a.Files {
		text := replacer.Replace(string(f.Data))
		dir, name := filepath.Split(f.Name)
		words := strings.Fields(text)
		file := dataplane.File{Kind: dataplane.General, Name: name, Content: []byte(text)}
		switch {
		case f.Name == "haproxy.cfg":
			main = text
			continue
		case f.Name == "checks":
			checks = strings.Split(strings.TrimSpace(text), "\n")
			continue
		case dir == "maps/":
			file.Kind = dataplane.Map
		case dir == "ssl/":
			file.Kind, file.Content = dataplane.Certificate, w.certificate(t, words[1], words[2])
		case name == "list.txt":
			file.Kind = dataplane.CRTList
		case words[0] == "authority":
			file.Kind, file.Content = dataplane.CA, w.authorities[words[1]]
		}
		files = append(files, file)
	}
	config, err := dataplane.NewConfig(main, files...)
	require.NoError(t, err)
	return config, checks
}

func readArchives(t *testing.T, pattern string) (names []string, archives map[string]*txtar.Archive) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", "contract", pattern))
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	archives = make(map[string]*txtar.Archive)
	for _, path := range paths {
		a, err := txtar.ParseFile(path)
		require.NoError(t, err)
		name := strings.TrimSuffix(filepath.Base(path), ".txtar")
		names = append(names, name)
		archives[name] = a
	}
	return names, archives
}
