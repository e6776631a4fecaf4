package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	encpem "encoding/pem"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func needHAProxy(tb testing.TB) {
	if _, err := exec.LookPath("haproxy"); err != nil {
		if os.Getenv("CI") != "" {
			tb.Fatal(err)
		}
		tb.Skip(err)
	}
}

func certificate(t *testing.T) (crt, key []byte) {
	t.Helper()
	priv, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "x.test"}, DNSNames: []string{"x.test", "*.test", "*.x.test", "*.y.test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(30 * 24 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &priv.PublicKey, priv)
	require.NoError(t, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(priv)
	require.NoError(t, err)
	return encpem.EncodeToMemory(&encpem.Block{Type: "CERTIFICATE", Bytes: der}),
		encpem.EncodeToMemory(&encpem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
}

// between makes a Secret whose certificate is valid between two instants.
func between(t *testing.T, uid types.UID, from, to time.Time, hosts ...string) *corev1.Secret {
	t.Helper()
	priv, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: hosts, NotBefore: from, NotAfter: to}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &priv.PublicKey, priv)
	require.NoError(t, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(priv)
	require.NoError(t, err)
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{UID: uid}, Data: map[string][]byte{
		corev1.TLSCertKey:       encpem.EncodeToMemory(&encpem.Block{Type: "CERTIFICATE", Bytes: der}),
		corev1.TLSPrivateKeyKey: encpem.EncodeToMemory(&encpem.Block{Type: "PRIVATE KEY", Bytes: keyDER})}}
}

const day = 24 * time.Hour

// TestTheLastGoodStays: a Secret that turns bad, or whose new certificate is not valid yet,
// leaves the one before in use; another Secret of that name does not.
func TestTheLastGoodStays(t *testing.T) {
	now := time.Date(2030, 5, 1, 0, 0, 0, 0, time.UTC)
	good := between(t, "a", now.Add(-day), now.Add(60*day), "x.test")
	was := Checked{}.Check("x.pem", good, nil, 10, now)
	require.NoError(t, was.Err)
	require.Same(t, was.Newest, was.InUse)

	bad := good.DeepCopy()
	bad.Data[corev1.TLSPrivateKeyKey] = nil
	for what, c := range map[string]struct {
		secret *corev1.Secret
		warns  string
		stays  bool
	}{
		"no key":           {bad, "the certificate from before, which expires at 2030-06-30 00:00:00 UTC, stays in use", true},
		"not valid yet":    {between(t, "a", now.Add(day), now.Add(90*day), "x.test"), "the certificate is valid from 2030-05-02 00:00:00 UTC", true},
		"expired":          {between(t, "a", now.Add(-9*day), now.Add(-day), "x.test"), "stays in use meanwhile", true},
		"renewed":          {between(t, "a", now, now.Add(90*day), "x.test"), "", false},
		"made anew, wrong": {func() *corev1.Secret { b := bad.DeepCopy(); b.UID = "b"; return b }(), "no host is served with it", false},
	} {
		t.Run(what, func(t *testing.T) {
			next := was.Check("x.pem", c.secret, nil, 10, now)
			require.Equal(t, c.stays, next.InUse == was.InUse)
			warnings, _ := next.Warnings(now, 0)
			if c.warns == "" {
				require.Empty(t, warnings)
				return
			}
			require.Len(t, warnings, 1)
			require.Contains(t, warnings[0].Reason, c.warns)
		})
	}
	again := Checked{}.Check("x.pem", bad, was.InUse.Content, 10, now)
	require.Equal(t, was.InUse.Content, again.InUse.Content, "a process that starts anew reads it from the file")
}

// TestWarnings: they change at the instants that the result names.
func TestWarnings(t *testing.T) {
	now := time.Date(2030, 5, 1, 0, 0, 0, 0, time.UTC)
	secret := between(t, "a", now.Add(day), now.Add(91*day), "x.test")
	for _, want := range []struct {
		after time.Duration
		says  string
	}{
		{0, "clients refuse it until then"}, {day, ""}, {84 * day, "the certificate expires at 2030-07-31 00:00:00 UTC: renew it"}, {91 * day, "the certificate expired at 2030-07-31 00:00:00 UTC: clients refuse it"},
	} {
		at := now.Add(want.after)
		warnings, next := Checked{}.Check("x.pem", secret, nil, 10, at).Warnings(at, 0)
		require.Equal(t, want.says == "", len(warnings) == 0, want.after)
		if want.says != "" {
			require.Contains(t, warnings[0].Reason, want.says)
		}
		require.Equal(t, want.after == 91*day, next.IsZero(), want.after)
	}
	any, next := Checked{}.Check("x.pem", secret, nil, 10, time.Time{}).Warnings(time.Time{}, 0)
	require.Empty(t, any)
	require.Zero(t, next)
}

// TestCovers: as clients match names.
func TestCovers(t *testing.T) {
	c := &Certificate{Names: []string{"*.x.test", "y.test"}}
	for host, want := range map[string]bool{"a.x.test": true, "x.test": false, "a.b.x.test": false, "y.test": true, "*.x.test": true} {
		require.Equal(t, want, c.Covers(host), host)
	}
}

// TestKeysDoNotPrint in any way that Go prints.
func TestKeysDoNotPrint(t *testing.T) {
	crt, key := certificate(t)
	c, err := Read("x.pem", crt, key, 10)
	require.NoError(t, err)
	text, err := json.Marshal(c)
	require.NoError(t, err)
	both, err := json.Marshal(map[string]any{"c": *c})
	require.NoError(t, err)
	for _, s := range []string{fmt.Sprint(c), fmt.Sprintf("%v %+v %#v %s %q %x %d", c, *c, *c, c, c, c, c), string(text), string(both), c.LogValue().String(), fmt.Sprintf("%+v", Checked{InUse: c, Newest: c})} {
		require.NotContains(t, s, "PRIVATE")
		require.NotContains(t, s, "LS0t", "base64 of it")
		require.False(t, strings.Contains(s, "[45 45 45"), s)
	}
}

// FuzzRead: no content makes it panic, and what it takes can be read again.
func FuzzRead(f *testing.F) {
	f.Add([]byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), []byte("x"))
	f.Fuzz(func(t *testing.T, crt, key []byte) {
		if c, err := Read("x.pem", crt, key, 3); err == nil {
			_, err := Read("x.pem", c.Content, c.Content, 3)
			require.NoError(t, err)
		}
	})
}
