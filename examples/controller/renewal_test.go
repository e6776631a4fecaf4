package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// issue makes a certificate of shop.demo.test that is valid for a time from now on, and
// its key.
func issue(tb testing.TB, serial int64, validFor time.Duration) (crt, key []byte) {
	tb.Helper()
	priv, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(tb, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "shop.demo.test"}, DNSNames: []string{"shop.demo.test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(validFor)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &priv.PublicKey, priv)
	require.NoError(tb, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(priv)
	require.NoError(tb, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
}

// renew saves a certificate and a key as the Secret of shop.demo.test.
func (d *demo) renew(crt, key []byte) {
	d.edit("tls.yaml", func(string) string {
		return fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: shop-tls, namespace: demo}\ntype: kubernetes.io/tls\ndata: {tls.crt: %q, tls.key: %q}\n",
			base64.StdEncoding.EncodeToString(crt), base64.StdEncoding.EncodeToString(key))
	})
}

// shakes makes handshakes, one after the other, until its end, which counts them.
func (d *demo) shakes() (end func() (good, bad int64)) {
	var good, bad atomic.Int64
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			if d.handshake("shop.demo.test") == nil {
				good.Add(1)
			} else {
				bad.Add(1)
			}
			select {
			case <-stop:
				return
			default:
			}
		}
	}()
	return func() (int64, int64) {
		close(stop)
		<-stopped
		return good.Load(), bad.Load()
	}
}

// serial is that of the certificate that is served.
func (d *demo) serial() int64 {
	conn, err := tls.Dial("tcp", d.https, &tls.Config{InsecureSkipVerify: true, ServerName: "shop.demo.test"})
	if err != nil {
		return -1
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
}

// TestABadRenewal: a Secret that is spoilt, the only one with a certificate, fails no
// handshake, also after a restart; it is said once, and its end.
func TestABadRenewal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.Chmod(filepath.Dir(dir), 0o711)) // haproxy runs under an account of its own
	state := filepath.Join(dir, "s")
	d := startDemo(t, "-local", state)
	crt, key := issue(t, 101, 30*24*time.Hour)
	d.renew(crt, key)
	d.until(func() bool { return d.serial() == 101 })

	end := d.shakes()
	_, otherKey := issue(t, 102, time.Hour)
	for _, bad := range []struct {
		name     string
		crt, key []byte
		says     string
	}{
		{"another key", crt, otherKey, "private key does not match public key"},
		{"truncated", crt[:len(crt)/2], key, "failed to find any PEM data in certificate input"},
		{"without a key", crt, nil, "failed to find any PEM data in key input"},
		{"empty", nil, nil, "failed to find any PEM data in certificate input"},
	} {
		name := bad.name
		d.stderr.reset()
		d.renew(bad.crt, bad.key)
		d.until(func() bool { return strings.Contains(d.stderr.String(), "warning: Secret demo/shop-tls") })
		require.Contains(t, d.stderr.String(), bad.says, name)
		require.Contains(t, d.stderr.String(), "stays in use", name)
		require.NotContains(t, d.stderr.String(), "KEY-----", name)
		require.Equal(t, int64(101), d.serial(), name)
	}
	good, failed := end()
	t.Logf("%d handshakes during bad renewals, %d failed", good+failed, failed)
	require.Zero(t, failed)

	d.stop()
	d.start("-local", state)
	require.Equal(t, int64(101), d.serial(), "after a restart")
	d.until(func() bool { return strings.Contains(d.stderr.String(), "warning: Secret demo/shop-tls") })

	end = d.shakes()
	d.renew(issue(t, 103, 30*24*time.Hour))
	d.until(func() bool { return d.serial() == 103 })
	d.until(func() bool { return strings.Contains(d.stderr.String(), "in order again: Secret demo/shop-tls") })
	_, failed = end()
	require.Zero(t, failed)
}

// TestACertificateExpires: a warning begins by time alone, ends by time alone as another
// one begins, and ends when the certificate is renewed.
func TestACertificateExpires(t *testing.T) {
	debug := freeAddress(t)
	d := startDemo(t, "-expiry-warning", "2s", "-debug-addr", debug)
	crt, key := issue(t, 101, 4*time.Second)
	block, _ := pem.Decode(crt)
	leaf, err := x509.ParseCertificate(block.Bytes)
	require.NoError(t, err)
	d.renew(crt, key)
	d.until(func() bool { return d.serial() == 101 })
	require.NotContains(t, d.stderr.String(), "warning: ")
	page := regexp.MustCompile(`http://demo:\S+/\n`).FindString(d.stdout.String())
	_, text := d.get(strings.TrimSpace(page)+"metrics", "")
	value := regexp.MustCompile(`(?m)^haptic_certificate_expiry_timestamp_seconds (\S+)$`).FindStringSubmatch(text)
	require.NotNil(t, value)
	end, err := strconv.ParseFloat(value[1], 64)
	require.NoError(t, err)
	require.Equal(t, leaf.NotAfter.Unix(), int64(end))
	for _, says := range []string{"the certificate expires at ", "the certificate expired at "} {
		d.until(func() bool { return strings.Contains(d.stderr.String(), says) })
		late := time.Since(leaf.NotAfter)
		if says == "the certificate expires at " {
			late += 2 * time.Second
		}
		require.Less(t, late, 2*time.Second)
		require.Equal(t, 1, strings.Count(d.stderr.String(), says))
	}
	d.renew(issue(t, 102, time.Hour))
	d.until(func() bool { return strings.Contains(d.stderr.String(), "in order again: Secret demo/shop-tls") })
	d.until(func() bool { return d.serial() == 102 })
}
