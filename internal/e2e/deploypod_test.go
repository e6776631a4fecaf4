package e2e

import (
	"cmp"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/hapticsdk/haptic/dataplane"
)

// TestDeployPod runs the containers of a HAProxy pod of the fleet as the manifests say: each
// with its own volumes, a file system that is read-only, and no right. With DATAPLANEAPI_BIN
// and DATAPLANEAPI_HAPROXY_BIN, a HAProxy from 2.7 on, a configuration is deployed through
// the API; without, something stands in for the API that reads nothing.
func TestDeployPod(t *testing.T) {
	p := newDeployedPod(t)
	first := p.start("first-configuration")
	<-first.done
	if first.err != nil {
		t.Fatalf("the first container: %v\n%s", first.err, first.out.tail())
	}
	haproxy := p.start("haproxy")
	socket := filepath.Join(p.volume("sockets"), "admin.sock")
	eventually(t, "HAProxy serves nothing yet", func() error {
		_, err := command(socket, "show info")
		return err
	})
	wrong := p.start("dataplane", "DATAPLANE_USERNAME=haptic", `DATAPLANE_PASSWORD=a"b`)
	if <-wrong.done; wrong.err == nil || !strings.Contains(wrong.out.String(), "want letters, digits") {
		t.Errorf("a password with a quote: %v\n%s", wrong.err, wrong.out.tail())
	}
	api := p.start("dataplane", "DATAPLANE_USERNAME=haptic", "DATAPLANE_PASSWORD=canary-right")
	settings := filepath.Join(p.volume("tmp"), "dataplaneapi.yaml")
	eventually(t, "the API has its settings", func() error {
		_, err := os.Stat(settings)
		return err
	})
	for _, o := range mustDocuments(settings) {
		files, _, _ := unstructured.NestedStringMap(o, "dataplaneapi", "resources")
		for name, dir := range files {
			if sub, ok := strings.CutPrefix(dir, "/etc/haproxy/"); ok {
				if _, err := os.Stat(filepath.Join(p.volume("configuration"), sub)); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
	}
	if os.Getenv(dataplaneAPIEnv) == "" {
		return
	}
	desired, err := dataplane.NewConfig(`global
    stats socket /var/run/haproxy/admin.sock mode 600 level admin expose-fd listeners
defaults
    mode http
    timeout connect 5s
    timeout client 5s
    timeout server 5s
frontend http
    bind :8080
    http-request return status 200 content-type text/plain string "deployed"
`)
	must(t, err)
	endpoint := dataplane.Endpoint{URL: "https://127.0.0.1:5555", Username: "haptic", Password: "canary-right", TLS: p.certificates.client("haproxy-api")}
	eventually(t, "a configuration is deployed", func() error {
		_, err := dataplane.Sync(t.Context(), endpoint, desired, nil)
		return err
	})
	resp, err := http.Get("http://127.0.0.1:8080/")
	if err != nil {
		t.Fatalf("%v\nHAProxy:\n%s\nthe API:\n%s", err, haproxy.out.tail(), api.out.tail())
	}
	resp.Body.Close()
	if strings.Contains(haproxy.out.String()+api.out.String(), "canary-right") {
		t.Error("the password is printed")
	}
}

// deployedPod is one of the Deployment haproxy.
type deployedPod struct {
	t            *testing.T
	dir          string
	spec         corev1.PodSpec
	certificates *certificates
}

func newDeployedPod(t *testing.T) *deployedPod {
	m := readKustomized(t, "../../examples/controller/deploy/fleet", func(folder string) string { return folder })
	var of appsv1.Deployment
	var scripts corev1.ConfigMap
	for name, to := range map[*unstructured.Unstructured]any{m.find("Deployment", "haproxy"): &of, m.find("ConfigMap", "haproxy-scripts"): &scripts} {
		must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(name.Object, to))
	}
	p := &deployedPod{t: t, dir: shortDir(t), spec: of.Spec.Template.Spec, certificates: newCertificates(t)}
	pair := p.certificates.issue("haproxy-api")
	contents := map[string]map[string]string{"scripts": scripts.Data, "tls": {"tls.crt": string(pair.cert), "tls.key": string(pair.key)}}
	for _, v := range p.spec.Volumes {
		dir := p.volume(v.Name)
		must(t, os.MkdirAll(dir, 0o755))
		for name, text := range contents[v.Name] {
			must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
		}
		if v.EmptyDir != nil { // as it is with fsGroup
			must(t, os.Chown(dir, 0, int(*p.spec.SecurityContext.FSGroup)))
			if out, err := exec.Command("chmod", "2777", dir).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
		}
	}
	return p
}

func (p *deployedPod) volume(name string) string { return filepath.Join(p.dir, "volumes", name) }

// start runs a container; it is ended with the test.
func (p *deployedPod) start(name string, environ ...string) *process {
	t := p.t
	t.Helper()
	for _, c := range append(p.spec.InitContainers, p.spec.Containers...) {
		if c.Name != name {
			continue
		}
		script := filepath.Join(shortDir(t), "container")
		must(t, os.WriteFile(script, []byte(p.script(&c)), 0o755))
		run, err := startProcess(name, environ, "unshare", append([]string{"--mount", script}, c.Command...)...)
		must(t, err)
		t.Cleanup(func() {
			run.kill()
			if t.Failed() {
				t.Logf("%s printed:\n%s", name, run.out.tail())
			}
		})
		return run
	}
	t.Fatalf("the pod has no container %s", name)
	return nil
}

// script makes the file system of a container out of that of this host, and runs in it what
// its arguments say.
func (p *deployedPod) script(c *corev1.Container) string {
	var b strings.Builder
	root := shortDir(p.t)
	fmt.Fprintf(&b, `#!/bin/sh
set -e
mount --make-rprivate /
mount -t tmpfs -o mode=755 tmpfs %[1]s
cd %[1]s
mkdir -p usr bin lib lib64 proc dev etc tmp
for dir in usr bin lib lib64 proc dev; do mount --rbind /$dir $dir; done
haproxy=$(command -v %[2]s)
mount -t tmpfs tmpfs usr/local
mkdir usr/local/sbin usr/local/bin
cp $haproxy usr/local/sbin/haproxy
`, root, cmp.Or(os.Getenv(podHAProxyEnv), "haproxy"))
	if api := os.Getenv(dataplaneAPIEnv); api != "" {
		fmt.Fprintf(&b, "cp %s usr/local/bin/dataplaneapi\n", api)
	} else {
		b.WriteString("printf '#!/bin/sh\\nexec sleep 600\\n' > usr/local/bin/dataplaneapi\nchmod 755 usr/local/bin/dataplaneapi\n")
	}
	for _, m := range c.VolumeMounts {
		fmt.Fprintf(&b, "mkdir -p .%[1]s\nmount --bind %[2]s .%[1]s\n", m.MountPath, p.volume(m.Name))
		if m.ReadOnly {
			fmt.Fprintf(&b, "mount -o remount,bind,ro .%s\n", m.MountPath)
		}
	}
	own := p.spec.SecurityContext
	fmt.Fprintf(&b, `mount -o remount,ro usr/local
mount -o remount,ro .
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
exec chroot . setpriv --reuid %d --regid %d --groups %d --no-new-privs --inh-caps=-all --bounding-set=-all "$@"
`, *own.RunAsUser, *own.RunAsGroup, *own.FSGroup)
	return b.String()
}
