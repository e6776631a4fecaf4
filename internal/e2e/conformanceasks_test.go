package e2e

import (
	"crypto/tls"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ask is a request of a step, and what is to answer it.
type ask struct {
	line, url string
	host      string // the Host header, where that is not the host of the URL
	tls, h2   bool
	refused   bool     // the handshake is
	status    int      // of the answer
	endpoints []string // that answer, each of them
	secret    string   // whose certificate is shown
}

// asks reads lines "scheme://host/path [Host name] -> answer [by Secret]". The scheme is
// http, https, or h2 for HTTP/2 over TLS. The answer is a Service of the chapter,
// addresses with "and" between, a status, or "refused".
func (ch *chapter) asks(t *testing.T, lines string) (all []ask) {
	t.Helper()
	for line := range strings.Lines(lines) {
		line = strings.TrimSpace(line)
		request, answer, ok := strings.Cut(line, " -> ")
		f := strings.Fields(request)
		if !ok || len(f) != 1 && (len(f) != 3 || f[1] != "Host") {
			t.Fatalf("%q: want URL [Host name] -> answer [by Secret]", line)
		}
		a := ask{line: line, url: f[0], status: http.StatusOK}
		if len(f) == 3 {
			a.host = f[2]
		}
		if rest, h2 := strings.CutPrefix(a.url, "h2:"); h2 {
			a.url, a.h2 = "https:"+rest, true
		}
		a.tls = strings.HasPrefix(a.url, "https:")
		answer, a.secret, _ = strings.Cut(strings.TrimSpace(answer), " by ")
		if status, err := strconv.Atoi(answer); err == nil {
			a.status = status
		} else if a.refused = answer == "refused"; !a.refused {
			for one := range strings.SplitSeq(answer, " and ") {
				if addr := ch.address[one]; addr != "" {
					one = addr
				} else if !strings.Contains(one, ":") {
					t.Fatalf("%q: %s is no Service of the chapter", line, one)
				}
				a.endpoints = append(a.endpoints, one)
			}
		}
		if a.secret != "" && !a.tls || a.secret == "" && a.tls && !a.refused {
			t.Fatalf("%q: want the Secret of the certificate where TLS is spoken, and only there", line)
		}
		all = append(all, a)
	}
	if len(all) == 0 {
		t.Fatal("the step expects nothing")
	}
	return all
}

// check asks, so often that each endpoint answers, and compares.
func (ch *chapter) check(c *controller, a *ask) error {
	seen := map[string]bool{}
	rounds := 1
	if len(a.endpoints) > 1 {
		rounds = 5 * len(a.endpoints)
	}
	for range rounds {
		got, err := ch.get(c, a)
		switch {
		case a.refused && err != nil && strings.Contains(err.Error(), "remote error: tls: "):
			return nil
		case err != nil:
			return fmt.Errorf("%s: %w", a.line, err)
		case a.refused, got.status != a.status, len(a.endpoints) > 0 && !slices.Contains(a.endpoints, got.body):
			return fmt.Errorf("%s: got %d %.100q, want %d %v", a.line, got.status, got.body, a.status, a.endpoints)
		case a.h2 && got.proto != "HTTP/2.0":
			return fmt.Errorf("%s: got %s", a.line, got.proto)
		}
		seen[got.body] = true
	}
	if len(seen) < len(a.endpoints) {
		return fmt.Errorf("%s: only %v answered", a.line, slices.Sorted(maps.Keys(seen)))
	}
	return nil
}

// checkStatus compares the address in the status of an Ingress.
func (ch *chapter) checkStatus(name, want string) error {
	space, base := ch.place(name)
	ing, err := env.cluster.client.NetworkingV1().Ingresses(space.ns).Get(space.t.Context(), base, metav1.GetOptions{})
	if err != nil {
		return err
	}
	got := ""
	for _, at := range ing.Status.LoadBalancer.Ingress {
		got += at.IP
	}
	if got != want {
		return fmt.Errorf("Ingress %s has the status %q, want %q", name, got, want)
	}
	return nil
}

// get asks once, and checks the certificate that is shown.
func (ch *chapter) get(c *controller, a *ask) (answer, error) {
	req, err := http.NewRequest(http.MethodGet, a.url, nil)
	if err != nil {
		return answer{}, err
	}
	req.Host = a.host
	v := c.visit()
	if a.tls {
		config := &tls.Config{InsecureSkipVerify: true, VerifyConnection: func(s tls.ConnectionState) error {
			if !a.refused && s.PeerCertificates[0].SerialNumber.Cmp(ch.issued[a.secret].serial) != 0 {
				return fmt.Errorf("the certificate is that for %v", s.PeerCertificates[0].DNSNames)
			}
			return nil
		}}
		v = newVisitor("https", c.https, &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: a.h2})
	}
	return v.do(req)
}
