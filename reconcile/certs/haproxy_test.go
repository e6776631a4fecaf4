package certs

import (
	"bufio"
	"context"
	encpem "encoding/pem"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// stricter are the certificates that HAProxy takes and we do not, and why.
var stricter = map[string]string{
	"rsa-2047": "2,047 bits", "rsa-4104": "4,104 bits", "chain-dsa-2048": "a key of the kind DSA",
	"ec-secp256k1": "unsupported", "ec-brainpoolP256r1": "unsupported", "ec-explicit": "invalid ECDSA",
	"ed448": "private key", "rsa-pss-key": "private key",
	"signed-sha224": "weak or not known", "self-sha224": "weak or not known", "signed-sha3-256": "weak or not known",
	"signed-pss-sha224": "weak or not known", "signed-pss-mgf1-sha1": "weak or not known",
	"signed-pss-long-salt": "weak or not known", "self-pss-sha1": "weak or not known",
	"serial-5": "negative serial", "broken-subjectAltName": "invalid", "broken-basicConstraints": "invalid",
	"broken-keyUsage": "invalid", "broken-nameConstraints": "invalid",
}

// TestCertificatesAsHAProxySeesThem: HAProxy takes each certificate that we take,
// when it reads a configuration and when one is changed at runtime, and refuses
// each that we refuse, but for those that are listed.
func TestCertificatesAsHAProxySeesThem(t *testing.T) {
	h := startHAProxy(t)
	all, err := os.ReadFile("testdata/certificates.txt")
	require.NoError(t, err)
	kinds := strings.Split(string(all), "== ")[1:]
	require.Len(t, kinds, 71)
	for _, kind := range kinds {
		name, both, _ := strings.Cut(kind, "\n")
		t.Run(name, func(t *testing.T) {
			content, _, err := File([]byte(both), []byte(both), 10)
			if err == nil {
				require.NoError(t, h.check(t, content))
				require.NoError(t, h.change(t, content))
			}
			if name == "key-odd" {
				require.Error(t, h.check(t, []byte(both)))
				require.NoError(t, err, "it is written anew")
				return
			}
			if why := stricter[name]; why != "" {
				require.ErrorContains(t, err, why)
				require.NoError(t, h.check(t, []byte(both)), "HAProxy does not take it either: it belongs to no list")
				return
			}
			require.Equal(t, err == nil, h.check(t, []byte(both)) == nil, "%v", err)
		})
	}
}

// TestDamagedCertificatesAsHAProxySeesThem changes bytes of good ones: HAProxy takes
// what is taken all the same.
func TestDamagedCertificatesAsHAProxySeesThem(t *testing.T) {
	h := startHAProxy(t)
	all, err := os.ReadFile("testdata/certificates.txt")
	require.NoError(t, err)
	r := rand.New(rand.NewPCG(1, 2))
	taken, kinds := 0, strings.Split(string(all), "== ")[1:]
	for range 5000 {
		_, both, _ := strings.Cut(kinds[r.IntN(len(kinds))], "\n")
		block, rest := encpem.Decode([]byte(both))
		for range 1 + r.IntN(2) {
			block.Bytes[r.IntN(len(block.Bytes))] = byte(r.IntN(256))
		}
		damaged := append(encpem.EncodeToMemory(block), rest...)
		content, _, err := File(damaged, damaged, 10)
		if err != nil {
			continue
		}
		taken++
		require.NoError(t, h.change(t, content), "%s", damaged)
	}
	require.Greater(t, taken, 500)
}

func TestALongChain(t *testing.T) {
	crt, key := certificate(t)
	_, _, err := File([]byte(strings.Repeat(string(crt), 1000)), key, 10)
	require.ErrorContains(t, err, "a chain of 1,000 certificates, more than the 10 of one Secret (certificates-per-secret)")
}

// haproxy is one that runs with a certificate that may be changed.
type haproxy struct{ binary, dir string }

func startHAProxy(t *testing.T) *haproxy {
	needHAProxy(t)
	binary, err := exec.LookPath("haproxy")
	require.NoError(t, err)
	h := &haproxy{binary, t.TempDir()}
	crt, key := certificate(t)
	good, _, err := File(crt, key, 1)
	require.NoError(t, err)
	h.write(t, "run", good)
	cmd := exec.CommandContext(t.Context(), binary, "-db", "-f", filepath.Join(h.dir, "run.cfg"))
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	require.Eventually(t, func() bool { return h.ask(t, "show info\n") != "" }, 10*time.Second, 10*time.Millisecond)
	return h
}

// write writes a configuration with one certificate.
func (h *haproxy) write(t *testing.T, name string, content []byte) (config string) {
	t.Helper()
	base := filepath.Join(h.dir, name)
	for end, text := range map[string]string{
		".pem": string(content),
		".txt": base + ".pem x.test\n",
		".cfg": fmt.Sprintf("global\n    stats socket %s.sock level admin\n    ssl-default-bind-options ssl-min-ver TLSv1.2\ndefaults\n    mode http\n    timeout client 1s\n    timeout connect 1s\n    timeout server 1s\nfrontend f\n    bind unix@%[1]s.listen ssl crt-list %[1]s.txt strict-sni\n", base),
	} {
		require.NoError(t, os.WriteFile(base+end, []byte(text), 0o600))
	}
	return base + ".cfg"
}

// check asks haproxy -c for a verdict.
func (h *haproxy) check(t *testing.T, content []byte) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, h.binary, "-c", "-f", h.write(t, "check", content)).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// change changes the certificate at runtime.
func (h *haproxy) change(t *testing.T, content []byte) error {
	t.Helper()
	file := filepath.Join(h.dir, "run.pem")
	answer := h.ask(t, "set ssl cert "+file+" <<\n"+string(content)+"\n")
	answer += h.ask(t, "commit ssl cert "+file+"\n")
	if !strings.Contains(answer, "Success!") {
		h.ask(t, "abort ssl cert "+file+"\n")
		return fmt.Errorf("%s", answer)
	}
	return nil
}

// ask returns the answer to a command, "" for none.
func (h *haproxy) ask(t *testing.T, command string) string {
	conn, err := new(net.Dialer).DialContext(t.Context(), "unix", filepath.Join(h.dir, "run.sock"))
	if err != nil {
		return ""
	}
	defer conn.Close()
	if _, err = conn.Write([]byte(command)); err != nil {
		return ""
	}
	var text strings.Builder
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		text.WriteString(lines.Text() + "\n")
	}
	return text.String()
}
