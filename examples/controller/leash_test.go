package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestEndpointsBesideWhatHangs: a template loops for one Ingress, or haproxy -c hangs with
// its line. Endpoints of another change meanwhile. With -hostile there are more of these
// changes, and each takes about a second.
func TestEndpointsBesideWhatHangs(t *testing.T) {
	changes := 2
	if *hostile {
		changes = 12
	} else {
		t.Parallel()
	}
	for name, notes := range map[string][2]string{
		"a template loops": {`loop: "yes"`, `loop: "still"`},
		"haproxy -c hangs": {`snippet: "http-request set-header X-A endless"`, `snippet: "http-request set-header X-A endless,still"`},
	} {
		t.Run(name, func(t *testing.T) {
			if !*hostile {
				t.Parallel()
			}
			dir := ownTemplates(t)
			file := filepath.Join(dir, "haproxy.cfg")
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(file, []byte(strings.Replace(string(text), `{% if notes["fail"]`, `{% for notes["loop"] != "" %}{% end %}{% if notes["fail"]`, 1)), 0o644))
			d := startDemo(t, "-templates", dir)
			save := func(annotations string) {
				d.edit("evil.yaml", func(string) string { return ingressManifest("evil", annotations) })
			}
			save("")
			d.edit("calm.yaml", func(string) string { return ingressManifest("calm", "") })
			d.until(func() bool {
				return d.answers("evil.demo.test", "/") == "127.0.0.14:18080" && d.answers("calm.demo.test", "/") == "127.0.0.14:18080"
			})
			save(notes[0])
			var took []time.Duration
			for n := range changes {
				if n == changes/2 {
					save(notes[1])
				}
				if *hostile {
					<-time.After(400 * time.Millisecond)
				}
				begun := time.Now()
				now := fmt.Sprintf("127.0.0.%d", 15+n)
				d.edit("blog.yaml", func(s string) string {
					head, _, _ := strings.Cut(s, "  - addresses: [127.0.0.")
					return head + "  - addresses: [" + now + "]\n"
				})
				d.until(func() bool { return d.answers("calm.demo.test", "/") == now+":18080" })
				took = append(took, time.Since(begun))
			}
			slices.Sort(took)
			t.Logf("a change of endpoints took: median %s, longest %s", took[changes/2], took[changes-1])
			if *hostile {
				require.Less(t, took[changes/2], 2*time.Second)
				require.Less(t, took[changes-1], 6*time.Second, "on a machine with more to do")
			}
			require.Equal(t, fmt.Sprintf("127.0.0.%d:18080", 14+changes), d.answers("evil.demo.test", "/"), "it is served as it was")
			d.until(func() bool { return strings.Contains(d.stderr.String(), `resource="Ingress demo/evil"`) })
		})
	}
}

// hangingHAProxy puts a haproxy into the PATH of all tests that hangs when it checks a
// configuration with the word "endless", and returns how to remove it. A test by itself could
// do that only while no other one runs.
func hangingHAProxy() (remove func(), err error) {
	binary, err := exec.LookPath("haproxy")
	if err != nil {
		return func() {}, nil // each test says what that means
	}
	dir, err := os.MkdirTemp("", "hanging-")
	if err != nil {
		return nil, err
	}
	script := fmt.Sprintf("#!/bin/sh\ncase \" $* \" in *\" -c \"*)\n  for file in \"$@\"; do\n    if [ -f \"$file\" ] && grep -q endless \"$file\"; then exec sleep 60; fi\n  done\nesac\nexec '%s' \"$@\"\n", binary)
	err = errors.Join(
		os.Chmod(dir, 0o755), // HAProxy runs as an account of its own
		os.WriteFile(filepath.Join(dir, "haproxy"), []byte(script), 0o755),
		os.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH")),
	)
	return func() { os.RemoveAll(dir) }, err
}
