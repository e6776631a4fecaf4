package ingress

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	encpem "encoding/pem"
	"math/big"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/certs"
)

// dated is a Secret whose certificate is valid between two times from now on.
func dated(t *testing.T, name string, from, to time.Duration, hosts ...string) *corev1.Secret {
	t.Helper()
	priv, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: hosts, NotBefore: time.Now().Add(from), NotAfter: time.Now().Add(to)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &priv.PublicKey, priv)
	require.NoError(t, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(priv)
	require.NoError(t, err)
	s := secret(name, encpem.EncodeToMemory(&encpem.Block{Type: "CERTIFICATE", Bytes: der}), encpem.EncodeToMemory(&encpem.Block{Type: "PRIVATE KEY", Bytes: keyDER}))
	s.Annotations = map[string]string{k8swatch.SourceAnnotation: "tls.yaml:7"}
	return s
}

const day, never = 24 * time.Hour, time.Duration(0)

// secrets is a world in which 200 Ingresses name one Secret.
func worldOfSecrets(first *corev1.Secret) *world {
	w := newWorld()
	for i := range 200 {
		w.ingresses = append(w.ingresses, withTLS(ingress("i"+strings.Repeat("x", i)), "x.test", first.Name))
	}
	w.secrets["ns/"+first.Name] = first
	return w
}

// content is the certificate that is served.
func content(t *testing.T, r *Routes) string {
	t.Helper()
	require.Len(t, r.Files, 1)
	require.Len(t, r.Certificates, 1)
	return string(r.Files[0].Content)
}

// reasons are those of the Secret, which is never refused.
func reasons(t *testing.T, r *Routes) (all []string) {
	t.Helper()
	for _, refused := range r.Refused {
		require.Equal(t, "Secret ns/own", refused.Resource)
		require.Equal(t, "tls.yaml:7", refused.Source)
		require.Equal(t, reconcile.Resource{APIVersion: "v1", Kind: "Secret", Namespace: "ns", Name: "own", Source: "tls.yaml:7"}, refused.Object)
		require.True(t, refused.Warning)
		require.NotContains(t, refused.String(), "PRIVATE KEY-----")
		all = append(all, refused.Reason)
	}
	return all
}

// spoilt are contents that cannot be used, of a Secret that was good.
func spoilt(t *testing.T, good *corev1.Secret) map[string]*corev1.Secret {
	other := dated(t, "own", 0, day, "x.test").Data[corev1.TLSPrivateKeyKey]
	weakCrt, weakKey := rsaPair(t, 1024)
	all := map[string]*corev1.Secret{}
	for says, data := range map[string][2][]byte{
		"private key does not match public key":   {good.Data[corev1.TLSCertKey], other},
		"failed to find any PEM data":             {good.Data[corev1.TLSCertKey][:200], good.Data[corev1.TLSPrivateKeyKey]},
		"an RSA key of 1,024 bits":                {weakCrt, weakKey},
		"find any PEM data in certificate input":  {nil, nil},
		"find any PEM data in key input":          {good.Data[corev1.TLSCertKey], nil},
		"a chain of 11 certificates":              {[]byte(strings.Repeat(string(good.Data[corev1.TLSCertKey]), 11)), good.Data[corev1.TLSPrivateKeyKey]},
		"certificate 2 of the chain: x509: malfo": {append(good.DeepCopy().Data[corev1.TLSCertKey], encpem.EncodeToMemory(&encpem.Block{Type: "CERTIFICATE", Bytes: []byte("x")})...), good.Data[corev1.TLSPrivateKeyKey]},
	} {
		bad := good.DeepCopy()
		bad.Data[corev1.TLSCertKey], bad.Data[corev1.TLSPrivateKeyKey] = data[0], data[1]
		all[says] = bad
	}
	return all
}

// TestADeletedSecretIsForgotten also where it was made anew before anybody looked, or
// while no Ingress named it: its owner may have deleted the key for a reason.
func TestADeletedSecretIsForgotten(t *testing.T) {
	good := dated(t, "own", -day, 60*day, "x.test")
	good.UID = "first"
	w, slots := worldOfSecrets(good), &Slots{}
	content(t, Build(w.cluster(), slots))
	again := good.DeepCopy()
	again.UID, again.Data[corev1.TLSPrivateKeyKey] = "second", nil
	w.secrets["ns/own"] = again
	require.Empty(t, Build(w.cluster(), slots).Certificates)
}

// TestTheLastGoodCertificateStays: whatever replaces a certificate that works and does
// not work itself is told once, for all 200 Ingresses, and not used. That holds after a
// restart and while a trial leaves Ingresses out, until the Secret is mended or deleted.
func TestTheLastGoodCertificateStays(t *testing.T) {
	good := dated(t, "own", -day, 60*day, "x.test")
	for says, bad := range spoilt(t, good) {
		t.Run(says, func(t *testing.T) {
			w, slots := worldOfSecrets(good), &Slots{}
			deployed := Build(w.cluster(), slots)
			want := content(t, deployed)
			require.Empty(t, reasons(t, deployed))
			w.secrets["ns/own"] = bad
			for range 2 {
				r := Build(w.cluster(), slots)
				require.Equal(t, want, content(t, r))
				require.Equal(t, deployed.Certificates[0].Hosts, r.Certificates[0].Hosts)
				said := reasons(t, r)
				require.Len(t, said, 1)
				require.Contains(t, said[0], says)
				require.Contains(t, said[0], ": the certificate from before, which expires at "+date(time.Now().Add(60 * day))[:10])
				require.Contains(t, said[0], ", stays in use")

				slots = &Slots{} // of a process that starts anew
				slots.Remember(renderRoutes(t, dataplane.Layout{Base: "/etc/haproxy"}, r))
			}
			renewed := dated(t, "own", -day, 90*day, "x.test")
			w.secrets["ns/own"] = renewed
			r := Build(w.cluster(), slots)
			require.NotEqual(t, want, content(t, r))
			require.Empty(t, reasons(t, r))

			delete(w.secrets, "ns/own")
			require.Empty(t, Build(w.cluster(), slots).Files, "its owner deleted it")
			w.secrets["ns/own"] = bad
			r = Build(w.cluster(), slots)
			require.Empty(t, r.Files)
			require.Len(t, r.Refused, 1, "once, not for each Ingress")
			require.False(t, r.Refused[0].Warning)
			require.Contains(t, r.Refused[0].String(), "Secret ns/own (tls.yaml:7): ")
			require.Contains(t, r.Refused[0].Reason, ": no host is served with it")
		})
	}
}

// TestTheLastGoodCertificateIsOfTheSameSecret: another namespace, and another name, get
// nothing of it, also after a restart.
func TestTheLastGoodCertificateIsOfTheSameSecret(t *testing.T) {
	good := dated(t, "own", -day, 60*day, "x.test")
	bad := good.DeepCopy()
	bad.Data[corev1.TLSPrivateKeyKey] = nil
	w, slots := newTenants(by("shop", 1, withTLS(ingress("web"), "x.test", "own"))), &Slots{}
	w.secrets["shop/own"] = good
	deployed := Build(w.cluster(), slots)
	require.Len(t, deployed.Files, 1)
	for _, ns := range []string{"evil", "shop"} {
		for _, name := range []string{"own", "other"} {
			if ns+name == "shopown" {
				continue
			}
			after := newTenants(by(ns, 1, withTLS(ingress("web"), "x.test", name)))
			after.secrets[ns+"/"+name] = bad.DeepCopy()
			after.secrets[ns+"/"+name].Namespace, after.secrets[ns+"/"+name].Name = ns, name
			anew := &Slots{}
			anew.Remember(renderRoutes(t, dataplane.Layout{Base: t.TempDir()}, deployed))
			for _, s := range []*Slots{slots, anew} {
				require.Empty(t, Build(after.cluster(), s).Files, "%s/%s", ns, name)
			}
		}
	}
}

// TestCertificatesByTheirDates: what is wrong by the calendar is told when it begins and
// no longer when it is mended; Next says when to look.
func TestCertificatesByTheirDates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slots := &Slots{}
		w := worldOfSecrets(dated(t, "own", day, 91*day, "x.test"))
		build := func(after time.Duration, next time.Duration) []string {
			time.Sleep(after)
			synctest.Wait()
			r := Build(w.cluster(), slots)
			if next == never {
				require.Zero(t, r.Next)
			} else {
				require.Equal(t, next, time.Until(r.Next))
			}
			require.Len(t, r.Files, 1)
			return reasons(t, r)
		}
		end := date(time.Now().Add(91 * day))
		require.Equal(t, []string{"the certificate is valid from " + date(time.Now().Add(day)) + " on: clients refuse it until then"}, build(0, day))
		require.Empty(t, build(day, 83*day))
		require.Equal(t, []string{"the certificate expires at " + end + ": renew it"}, build(83*day, 7*day))
		require.Equal(t, []string{"the certificate expires at " + end + ": renew it"}, build(day, 6*day), "nothing new")
		require.Equal(t, []string{"the certificate expired at " + end + ": clients refuse it"}, build(6*day, never))

		w.secrets["ns/own"] = dated(t, "own", 0, 24*time.Hour, "x.test")
		require.Empty(t, build(0, 20*time.Hour))
		require.Len(t, build(20*time.Hour, 4*time.Hour), 1, "a sixth of a short life")

		// One that is not valid yet, or any more, does not replace one that is.
		w.secrets["ns/own"] = dated(t, "own", -day, 60*day, "x.test")
		require.Empty(t, build(0, 53*day))
		used := w.secrets["ns/own"]
		for _, c := range []struct{ from, to time.Duration }{{-9 * day, -day}, {2 * day, 92 * day}} {
			w.secrets["ns/own"] = dated(t, "own", c.from, c.to, "x.test")
			r := Build(w.cluster(), slots)
			require.Contains(t, reasons(t, r)[0], "stays in use meanwhile")
			same, err := certs.Read("ns_own.pem", used.Data[corev1.TLSCertKey], used.Data[corev1.TLSPrivateKeyKey], 1)
			require.NoError(t, err)
			require.Equal(t, string(same.Content), content(t, r))
			require.Equal(t, same.NotAfter, r.Expiry)
		}
		require.Empty(t, build(2*day, 83*day), "it is valid now, and in use")

		c := w.cluster()
		w.secrets["ns/own"] = dated(t, "own", -9*day, -day, "x.test")
		c.AnyTime = true
		require.Empty(t, Build(c, &Slots{}).Refused)
	})
}

// TestExpiryWarning is how long before its end a certificate is warned of.
func TestExpiryWarning(t *testing.T) {
	w := worldOfSecrets(dated(t, "own", -day, 20*day, "x.test"))
	c := w.cluster()
	require.Empty(t, Build(c, &Slots{}).Refused)
	c.ExpiryWarning = 21 * day
	require.Len(t, Build(c, &Slots{}).Refused, 1)
}

// TestCertificatesOfOtherHosts: hosts that a certificate does not have are named, in one
// line.
func TestCertificatesOfOtherHosts(t *testing.T) {
	w := newWorld(withTLS(ingress("one"), "x.test", "own"), withTLS(ingress("two"), "a.y.test", "own"), withTLS(ingress("three"), "*.z.test", "own"))
	w.secrets["ns/own"] = dated(t, "own", -day, 60*day, "X.test", "*.y.test", "*.z.test")
	require.Empty(t, w.build().Refused)
	for _, host := range []string{"b.a.y.test", "y.test", "q.test", "*.x.test"} {
		w.ingresses = append(w.ingresses, withTLS(ingress("i"+strings.Trim(host, "*.")), host, "own"))
	}
	any := ingress("any", rule("x.test"), rule("r.test"), rule(""))
	any.Spec.TLS = []networkingv1.IngressTLS{{SecretName: "own"}}
	w.ingresses = append(w.ingresses, any)
	r := w.build()
	require.Equal(t, []string{"the certificate is for *.y.test, *.z.test, x.test, and not for *.x.test, b.a.y.test, q.test and 2 more names, for which Ingresses name it: clients refuse it there"}, reasons(t, r))
	require.Len(t, r.Certificates[0].Hosts, 8, "it is served all the same")
}

// date prints an instant as messages do.
func date(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }
