package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
)

// TestPodCanBeReached: both controllers answer Prometheus and the kubelet, which ask by
// an address of the network, without a flag and without a token; and nothing else there.
// Every line of their logs is a record where that is asked for.
func TestPodCanBeReached(t *testing.T) {
	k := newKube(t)
	settings := startSettings(t) // listens nowhere
	settings.put(settings.text)
	for name, args := range map[string][]string{
		env.controller: {"-namespace", k.ns, "-local", shortDir(t), "-http-addr", subnet + "3:8080", "-https-addr", subnet + "3:8443", "-access-log", "off"},
		env.settings:   {"-settings", "configmap:" + settings.ns + "/settings", "-local", shortDir(t), "-http-addr", subnet + "3:8080"},
	} {
		p, err := startProcess("controller", nil, name, append(args, "-kubeconfig", env.cluster.kubeconfig, "-log-format", "json")...)
		k.must(err)
		t.Cleanup(p.kill)
		client := http.Client{Timeout: pageTime, Transport: &http.Transport{DisableKeepAlives: true}}
		ask := func(path string) (int, string, error) {
			resp, err := client.Get("http://" + subnet + "3:9090" + path)
			if err != nil {
				return 0, "", errors.Join(err, p.ended())
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			return resp.StatusCode, string(body), err
		}
		eventually(t, "it is ready", func() error {
			status, body, err := ask("/readyz?verbose")
			if body != "ok\n" && body != "not ok\n" && err == nil {
				t.Fatalf("the probe says %q", body)
			}
			if status != http.StatusOK {
				return fmt.Errorf("%d %w %s", status, err, p.out.tail())
			}
			return nil
		})
		if status, body, err := ask("/metrics"); status != http.StatusOK || !strings.Contains(body, "haptic_build_info{") {
			t.Errorf("%d %v %s", status, err, cut(body, 300))
		}
		for _, path := range []string{"/", "/debug/vars/", "/debug/vars/rendered", "/debug/pprof/heap"} {
			if status, _, _ := ask(path); status != http.StatusNotFound {
				t.Errorf("%s: %d", path, status)
			}
		}
		if _, err := p.terminate(syscall.SIGTERM, patience); err != nil {
			t.Error(err)
		}
		for line := range strings.Lines(p.out.String()) {
			if !json.Valid([]byte(line)) {
				t.Errorf("no record: %s", line)
			}
		}
		for _, says := range []string{"controller starts", `"metrics":"[::]:9090","debug":"127.0.0.1:6060"`, "stopping: HAProxy is stopped", "controller has ended"} {
			if !strings.Contains(p.out.String(), says) {
				t.Errorf("%q is not said: %s", says, p.out.String())
			}
		}
	}
}
