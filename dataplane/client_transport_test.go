package dataplane_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/dataplane/dataplanetest"
)

func TestClientTLS(t *testing.T) {
	t.Parallel()
	api := dataplanetest.New(t, nil)
	secure := httptest.NewTLSServer(api)
	defer secure.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}), 0o600))
	e := api.Endpoint()
	e.URL = secure.URL
	config, err := dataplane.NewConfig("global\n  maxconn 5\n")
	require.NoError(t, err)
	if _, err := dataplane.Sync(t.Context(), e, config, &dataplane.ClientOptions{Attempts: 1}); err == nil {
		t.Error("trusted a certificate of nobody")
	}
	e.CAFile = ca
	if _, err := dataplane.Sync(t.Context(), e, config, nil); err != nil {
		t.Error(err)
	}
	for _, file := range []string{filepath.Join(t.TempDir(), "absent"), os.DevNull} {
		e.CAFile = file
		var de *dataplane.Error
		if _, err := dataplane.NewClient(e, nil); !errors.As(err, &de) || de.Stage != "endpoint" {
			t.Errorf("%s: got %v", file, err)
		}
	}
}

// Endpoints may have one TLS configuration in common, to which nobody writes.
func TestClientSharedTLS(t *testing.T) {
	t.Parallel()
	api := dataplanetest.New(t, nil)
	secure := httptest.NewTLSServer(api)
	defer secure.Close()
	shared := &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12}
	shared.RootCAs.AddCert(secure.Certificate())
	e := api.Endpoint()
	e.URL, e.TLS = secure.URL, shared
	var all sync.WaitGroup
	for range 4 {
		client, err := dataplane.NewClient(e, nil)
		require.NoError(t, err)
		defer client.Close()
		all.Go(func() {
			_, err := client.Probe(t.Context())
			assert.NoError(t, err)
		})
	}
	all.Wait()
	require.Empty(t, shared.NextProtos)
}

func TestClientFindsWhatFolderIsMeant(t *testing.T) {
	t.Parallel()
	for line, keeps := range map[string]bool{
		"bind :443 ssl crt /etc/haproxy/ssl/":                   true,
		"bind :443 ssl crt /etc/haproxy/ssl":                    true,
		"bind :443 ssl crt /etc/haproxy/ssl/site.pem":           false,
		"crt-base /etc/haproxy/ssl":                             false,
		"bind :443 ssl crt /etc/haproxy/ssl-other/":             false,
		"bind :443 ssl crt /etc/haproxy/ssl/stale.pem":          true, // named itself
		"bind :443 ssl crt /etc/haproxy/ssl/%[env(S)].pem":      true,
		"http-request set-header X %[path,f(/etc/haproxy/ssl)]": true,
	} {
		s := fakeSite(t, nil)
		s.SetFile(dataplane.Certificate, "stale.pem", siteCertificate(t, "stale.test"))
		config, err := dataplane.NewConfig("frontend f\n  "+line+"\n",
			dataplane.File{Kind: dataplane.Certificate, Name: "site.pem", Content: siteCertificate(t, "a.test")})
		require.NoError(t, err)
		syncSite(t, s.client(t, nil), config)
		if got := s.file(dataplane.Certificate, "stale.pem") != ""; got != keeps {
			t.Errorf("%s: kept %v", line, got)
		}
	}
}
