package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	netv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// names is a condition: that a line of what the controller has printed since
// the mark names the object.
func (c *controller) names(mark int, kind, namespace, name string) func() error {
	return func() error {
		for line := range strings.Lines(c.out.After(mark)) {
			if strings.Contains(strings.ToLower(line), strings.ToLower(kind)) && strings.Contains(line, namespace+"/"+name) {
				return nil
			}
		}
		return fmt.Errorf("no line names %s %s/%s", kind, namespace, name)
	}
}

// One bad object costs nobody else anything: the rest keeps being served, new
// objects are taken, and the output says which object it is.
func TestBadInput(t *testing.T) {
	startBackends(t, backendPort)
	k, certs := newKube(t), newCertificates(t)
	const evil = "203.0.113.66"
	const prefix, exact, impl = netv1.PathTypePrefix, netv1.PathTypeExact, netv1.PathTypeImplementationSpecific
	k.service("good", backendPort, host("10"))
	k.service("evil", backendPort, host("66"))
	k.service("empty", backendPort)
	k.secret("good", certs.issue("good.test"))
	k.ingress("good", withTLS("good", "good.test"), site("good.test", "good"), site("plain.test", "good"))
	c := startController(t, options{})
	plain, secure := c.visit(), c.visitTLS(certs.client("good.test"))
	good := endpoint(host("10"), backendPort)
	serves := func(t *testing.T) {
		t.Helper()
		eventually(t, "the good site is served", plain.expect("plain.test", "/", good))
		eventually(t, "the good site is served with TLS", secure.expect("good.test", "/", good))
	}
	serves(t)
	tr := startTraffic(t, plain, "plain.test")

	mismatched := certs.issue("bad.test")
	mismatched.key = certs.issue("bad.test").key

	for i, tt := range []struct {
		name    string
		kind    string // of the object that must be named, by its name "bad-N"
		make    func(name string)
		refused bool // by the API server: some version may accept it one day
	}{
		{name: "path with a newline", kind: "Ingress", make: func(n string) {
			k.ingress(n, route("evil.test", prefix, "/x\nplain.test/ evil\n", "evil"))
		}},
		{name: "path with a newline and a directive", kind: "Ingress", make: func(n string) {
			k.ingress(n, route("evil.test", prefix, "/x\n  server evil "+evil+":80\n", "evil"))
		}},
		{name: "path with a space", kind: "Ingress", make: func(n string) {
			k.ingress(n, route("evil.test", prefix, "/a b", "evil"))
		}},
		{name: "exact path with a tab", kind: "Ingress", make: func(n string) {
			k.ingress(n, route("evil.test", exact, "/a\tb", "evil"))
		}},
		{name: "path with a carriage return", kind: "Ingress", make: func(n string) {
			k.ingress(n, route("evil.test", impl, "/a\rb", "evil"))
		}},
		{name: "path with NUL", kind: "Ingress", make: func(n string) {
			k.ingress(n, route("evil.test", impl, "/a\x00b", "evil"))
		}},
		{name: "host with a quote", kind: "Ingress", refused: true, make: func(n string) {
			k.must(refusedOr(k.createIngress(t.Context(), n, site(`a"b.test`, "evil"))))
		}},
		{name: "host with a hash", kind: "Ingress", refused: true, make: func(n string) {
			k.must(refusedOr(k.createIngress(t.Context(), n, site("a#b.test", "evil"))))
		}},
		{name: "host with a percent sign", kind: "Ingress", refused: true, make: func(n string) {
			k.must(refusedOr(k.createIngress(t.Context(), n, site("a%b.test", "evil"))))
		}},
		{name: "key that does not fit", kind: "Secret", make: func(n string) {
			k.secret(n, mismatched)
			k.ingress(n, withTLS(n, "bad.test"), site("bad.test", "good"))
		}},
		{name: "certificate that is none", kind: "Secret", make: func(n string) {
			k.secret(n, keyPair{cert: []byte("none"), key: []byte("none")})
			k.ingress(n, withTLS(n, "bad.test"), site("bad.test", "good"))
		}},
		{name: "Secret that does not exist", kind: "Secret", make: func(n string) {
			k.ingress(n, withTLS(n, "bad.test"), site("bad.test", "good"))
		}},
		{name: "Service that does not exist", kind: "Service", make: func(n string) {
			k.ingress(n, site("bad.test", n))
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			mark, name := c.out.Len(), fmt.Sprintf("bad-%d", i)
			tt.make(name)
			if !tt.refused {
				eventually(t, "the output names the object", c.names(mark, tt.kind, k.ns, name))
			}
			serves(t)
			// What comes after the bad object is served too.
			next := fmt.Sprintf("next-%d", i)
			k.ingress(next, site(next+".test", "good"))
			eventually(t, "a new site is served", plain.expect(next+".test", "/", good))
		})
	}

	t.Run("Service without endpoints", func(t *testing.T) {
		k.ingress("empty", site("empty.test", "empty"))
		eventually(t, "503 is answered", plain.expectStatus("empty.test", "/", http.StatusServiceUnavailable))
		k.endpoints("empty", backendPort, host("12"))
		eventually(t, "an endpoint answers", plain.expect("empty.test", "/", endpoint(host("12"), backendPort)))
	})
	tr.noFailures(t, 100)

	t.Run("all of it when a controller starts", func(t *testing.T) {
		c.stop()
		c = startController(t, options{})
		serves(t)
	})
}

// refusedOr passes over the API server's own refusal of an object.
func refusedOr(err error) error {
	if apierrors.IsInvalid(err) {
		return nil
	}
	return err
}
