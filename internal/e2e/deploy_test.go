package e2e

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	netv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/hapticsdk/haptic/dataplane/dataplanetest"
)

// deployed are the manifests of one layout with the rights of one kind, applied.
type deployed struct {
	*kustomized
	k      *kube // where the Ingresses are
	gate   *apiGate
	layout string // "local" or "fleet"
	one    bool   // the controller serves one namespace
}

// ownNamespace is that of the manifests.
const ownNamespace = "haptic"

// TestDeploy applies the manifests of examples/controller/deploy as they are, and runs the
// controller as they say: with their arguments, the token of their ServiceAccount, as their
// user, without capabilities, and with a file system that is read-only but for their
// volumes. It routes, writes the status and holds the Lease, and is refused nothing. No
// right is granted that nobody asked for.
func TestDeploy(t *testing.T) {
	asked, runs := newRights(), 0
	for _, layout := range []string{"local", "fleet"} {
		for _, rights := range []string{"cluster", "namespace"} {
			t.Run(layout+" "+rights, func(t *testing.T) {
				d := deploy(t, layout, rights)
				start := d.startLocal
				if layout == "fleet" {
					start = d.startFleet
				}
				testRouting(t, d.k, func() *controller {
					c := start()
					d.probes(c)
					return c
				})
				d.status()
				d.certificates()
				d.events()
				d.tcpServices()
				if layout == "fleet" {
					d.lease()
				}
				for _, denied := range d.gate.refusals() {
					t.Errorf("the API server refused what the manifests do not grant: %s", denied)
				}
				asked.add(d.kustomized, d.gate.requests())
				runs++
			})
		}
	}
	if t.Failed() || runs < 4 { // -run chose some
		return
	}
	for _, unused := range asked.unused() {
		t.Errorf("nobody asked for what the manifests grant: %s", unused)
	}
	if len(asked.granted) < 20 {
		t.Errorf("%d rights were compared: the manifests were not read", len(asked.granted))
	}
}

// deploy applies a layout. The namespace of the Ingresses takes the place of "shop".
func deploy(t *testing.T, layout, rights string) *deployed {
	startBackends(t, backendPort)
	d := &deployed{k: newKube(t), layout: layout, one: rights == "namespace"}
	d.kustomized = readKustomized(t, filepath.Join("../../examples/controller/deploy", layout), func(folder string) string {
		return strings.Replace(folder, "rights/cluster", "rights/"+rights, 1)
	})
	tcp := readKustomized(t, "../../examples/controller/deploy/rights/tcp-services", func(folder string) string { return folder })
	d.objects = append(d.objects, tcp.objects...)
	d.kustomized.rename("shop", d.k.ns)
	d.kustomized.apply(t)
	d.admitted()
	// A fleet meets an API server that is too old to stream lists.
	d.gate = newAPIGate(t, layout == "fleet")
	return d
}

// admitted checks that pods of the Deployments may run in a namespace that is restricted.
func (d *deployed) admitted() {
	for _, o := range d.objects {
		if o.GetKind() != "Deployment" {
			continue
		}
		var of appsv1.Deployment
		d.k.must(runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &of))
		pod := &corev1.Pod{ObjectMeta: *of.Spec.Template.ObjectMeta.DeepCopy(), Spec: of.Spec.Template.Spec}
		pod.Name = of.Name
		_, err := env.cluster.client.CoreV1().Pods(ownNamespace).Create(d.k.t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		d.k.must(err)
	}
}

// kubeconfig is for the ServiceAccount, through the gate.
func (d *deployed) kubeconfig() string {
	d.k.t.Helper()
	token, err := env.cluster.client.CoreV1().ServiceAccounts(ownNamespace).CreateToken(d.k.t.Context(), "haptic",
		&authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	d.k.must(err)
	file := filepath.Join(shortDir(d.k.t), "kubeconfig")
	d.k.must(clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"c": {
			Server: d.gate.URL, CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: d.gate.Certificate().Raw})}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"u": {Token: token.Status.Token}},
		Contexts:       map[string]*clientcmdapi.Context{"c": {Cluster: "c", AuthInfo: "u"}},
		CurrentContext: "c",
	}, file))
	d.k.must(os.Chmod(file, 0o644))
	return file
}

// deployment is the one with a container named controller.
func (d *deployed) deployment() (*appsv1.Deployment, *corev1.Container) {
	for _, o := range d.objects {
		if o.GetKind() != "Deployment" {
			continue
		}
		var found appsv1.Deployment
		d.k.must(runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &found))
		for i := range found.Spec.Template.Spec.Containers {
			if c := &found.Spec.Template.Spec.Containers[i]; c.Name == "controller" {
				return &found, c
			}
		}
	}
	d.k.t.Fatal("no Deployment has a container named controller")
	return nil, nil
}

// options start the controller as its Deployment says, with these flags and values in the
// place of its own; without a value the test gives one, or none.
func (d *deployed) options(instead ...string) options {
	deployment, container := d.deployment()
	var args []string
	for _, arg := range container.Args {
		name, value, has := strings.Cut(arg, "=")
		if i := slices.Index(instead, name); i >= 0 {
			continue
		}
		if args = append(args, name); has {
			args = append(args, value)
		}
	}
	if d.one {
		args = append(args, "-namespace", d.k.ns)
	}
	args = append(args, "-tcp-services", ownNamespace+"/tcp-services")
	o := options{state: shortDir(d.k.t), binary: confined(d.k.t, deployment, container)}
	for _, e := range container.Env {
		if e.ValueFrom != nil {
			if e.Name != "POD_NAMESPACE" || e.ValueFrom.FieldRef.FieldPath != "metadata.namespace" {
				d.k.t.Errorf("variable %s is not known here", e.Name)
			}
			e.Value = deployment.Namespace
		}
		o.env = append(o.env, e.Name+"="+e.Value)
	}
	for pair := range slices.Chunk(instead, 2) {
		if pair[1] != "" {
			args = append(args, pair...)
		}
	}
	o.args = append(args, "-kubeconfig", d.kubeconfig())
	return o
}

// confined is the controller, confined as its pod is. Folders of this run may be written;
// they have the owner and the rights that an emptyDir has with fsGroup.
func confined(t testing.TB, of *appsv1.Deployment, container *corev1.Container) string {
	t.Helper()
	pod, own := of.Spec.Template.Spec.SecurityContext, container.SecurityContext
	if !*own.ReadOnlyRootFilesystem || *own.AllowPrivilegeEscalation || !*pod.RunAsNonRoot {
		t.Error("the container is not confined")
	}
	dir := shortDir(t)
	script := fmt.Sprintf(`#!/bin/sh
set -e
state=$(echo "$*" | sed -n 's/.*-local \([^ ]*\).*/\1/p')
mount --make-rprivate /
for volume in $state %[1]s; do
	chown 0:%[5]d "$volume"
	chmod 2777 "$volume"
	mount --bind "$volume" "$volume"
done
mount -o remount,bind,ro /
export TMPDIR=%[1]s
exec setpriv --reuid %[2]d --regid %[3]d --groups %[5]d --no-new-privs --inh-caps=-all --bounding-set=-all %[4]s "$@"
`, shortDir(t), *pod.RunAsUser, *pod.RunAsGroup, env.controller, *pod.FSGroup)
	inner, outer := filepath.Join(dir, "inner"), filepath.Join(dir, "controller")
	for file, text := range map[string]string{inner: script, outer: "#!/bin/sh\nexec unshare --mount " + inner + " \"$@\"\n"} {
		must(t, os.WriteFile(file, []byte(text), 0o755))
	}
	return outer
}

// startLocal runs a controller with its HAProxy.
func (d *deployed) startLocal() *controller {
	o := d.options("-local", "", "-drain-delay", "0s", "-debug-addr", "", "-http-addr", "", "-https-addr", "", "-metrics-addr", subnet+"2:9090")
	return startController(d.k.t, o)
}

// startFleet runs both replicas, with one HAProxy behind a Dataplane API, which has a pod
// as its Deployment makes it.
func (d *deployed) startFleet() *controller {
	t := d.k.t.(*testing.T)
	d.k.must(writeCredentials(t.Context()))
	api := dataplanetest.New(t, &dataplanetest.Options{Password: "canary-right", HAProxy: &dataplanetest.HAProxy{}})
	at, err := url.Parse(api.URL())
	d.k.must(err)
	d.haproxyPod(at.Hostname())
	with := func(metrics string) options {
		o := d.options("-endpoint-ca", "", "-debug-addr", "", "-endpoint-server-name", "", "-http-addr", "", "-https-addr", "", "-metrics-addr", metrics)
		o.args = append(o.args, "-pod-scheme", "http", "-pod-port", at.Port(), "-maxconn", "1000",
			"-endpoint-base", api.Layout().Base, "-endpoint-socket", filepath.Join(api.Layout().Base, "admin.sock"))
		return o
	}
	leader := startController(t, with(subnet+"2:9090"))
	second := with(subnet + "3:9090")
	second.debugPort = 9091
	startController(t, second)
	// They are ready before one of them leads.
	eventually(t, "the leader deployed", d.routed("shop.test", true))
	return leader
}

func writeCredentials(ctx context.Context) error {
	secrets := env.cluster.client.CoreV1().Secrets(ownNamespace)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "haptic-credentials"}, StringData: map[string]string{
		"dataplane_username": "admin", "dataplane_password": "canary-right",
	}}
	if _, err := secrets.Update(ctx, secret, metav1.UpdateOptions{}); err == nil {
		return nil
	}
	_, err := secrets.Create(ctx, secret, metav1.CreateOptions{})
	return err
}

// haproxyPod makes the pod of the Deployment haproxy, which the API server admits to a
// namespace that is restricted, and says that it runs.
func (d *deployed) haproxyPod(ip string) {
	t := d.k.t
	o := d.find("Deployment", "haproxy")
	var of appsv1.Deployment
	d.k.must(runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &of))
	pod := &corev1.Pod{ObjectMeta: *of.Spec.Template.ObjectMeta.DeepCopy(), Spec: of.Spec.Template.Spec}
	pod.Name = "haproxy-0"
	pods := env.cluster.client.CoreV1().Pods(ownNamespace)
	pod, err := pods.Create(t.Context(), pod, metav1.CreateOptions{})
	d.k.must(err)
	t.Cleanup(func() {
		if err := pods.Delete(context.Background(), pod.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
			t.Error(err)
		}
	})
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: ip, PodIPs: []corev1.PodIP{{IP: ip}}, ContainerStatuses: []corev1.ContainerStatus{
		{Name: "haproxy", State: running}, {Name: "dataplane", Ready: true, State: running}}}
	_, err = pods.UpdateStatus(t.Context(), pod, metav1.UpdateOptions{})
	d.k.must(err)
}

// probes asks what the kubelet asks.
func (d *deployed) probes(*controller) {
	_, container := d.deployment()
	for _, p := range []*corev1.Probe{container.ReadinessProbe, container.LivenessProbe} {
		at := "http://" + subnet + "2:9090" + p.HTTPGet.Path
		eventually(d.k.t, "the probe passes", func() error {
			resp, err := http.Get(at)
			if err != nil {
				return err
			}
			defer resp.Body.Close()
			if p.HTTPGet.Port.StrVal != "metrics" || resp.StatusCode != http.StatusOK {
				err = fmt.Errorf("%s: %s", at, resp.Status)
			}
			return err
		})
	}
}

// status of the Ingresses is the address of the Service; one that becomes another's loses
// it, and a change of the address reaches all.
func (d *deployed) status() {
	t, client := d.k.t, env.cluster.client
	expect := func(name, want string) func() error {
		return func() error {
			ing, err := client.NetworkingV1().Ingresses(d.k.ns).Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			var has []string
			for _, at := range ing.Status.LoadBalancer.Ingress {
				has = append(has, at.IP+at.Hostname)
			}
			if got := strings.Join(has, " "); got != want {
				err = fmt.Errorf("Ingress %s has %q, want %q", name, got, want)
			}
			return err
		}
	}
	balance := func(ip string) {
		patch := fmt.Sprintf(`{"status":{"loadBalancer":{"ingress":[{"ip":%q}]}}}`, ip)
		_, err := client.CoreV1().Services(ownNamespace).Patch(t.Context(), "haptic", types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
		d.k.must(err)
	}
	balance("203.0.113.10")
	for _, name := range []string{"shop", "wild", "partial", "default"} {
		eventually(t, "the status is written", expect(name, "203.0.113.10"))
	}
	for _, name := range []string{"foreign", "classless"} {
		d.k.must(expect(name, "")())
	}
	balance("203.0.113.11")
	eventually(t, "the new address arrives", expect("wild", "203.0.113.11"))
	_, err := client.NetworkingV1().Ingresses(d.k.ns).Patch(t.Context(), "wild", types.MergePatchType,
		[]byte(`{"spec":{"ingressClassName":"e2e-other"}}`), metav1.PatchOptions{})
	d.k.must(err)
	eventually(t, "another controller's Ingress has no status", expect("wild", ""))
	d.k.must(expect("shop", "203.0.113.11")())
}

// certificates has an Ingress name a Secret that comes later.
func (d *deployed) certificates() {
	t, certs := d.k.t, newCertificates(d.k.t)
	d.k.ingress("tls", site("tls.test", "root"), withTLS("tls", "tls.test"))
	d.k.secret("tls", certs.issue("tls.test"))
	v := newVisitor("https", subnet+"2:8443", &http.Transport{TLSClientConfig: certs.client("tls.test"), DisableKeepAlives: true})
	eventually(t, "the certificate is served", v.expect("tls.test", "/", endpoint(host("10"), backendPort)))
}

// events has the same thing go wrong twice.
func (d *deployed) events() {
	t := d.k.t
	ingresses := env.cluster.client.NetworkingV1().Ingresses(d.k.ns)
	d.k.ingress("odd", route("odd.test", netv1.PathTypePrefix, "/", "root"))
	eventually(t, "it is routed", d.routed("odd.test", true))
	for i, path := range []string{"/a b", "/", "/a b"} {
		patch := fmt.Sprintf(`[{"op":"replace","path":"/spec/rules/0/http/paths/0/path","value":%q}]`, path)
		_, err := ingresses.Patch(t.Context(), "odd", types.JSONPatchType, []byte(patch), metav1.PatchOptions{})
		d.k.must(err)
		if i == 1 {
			eventually(t, "it is routed again", d.routed("odd.test", true))
			continue
		}
		eventually(t, "it is refused", d.routed("odd.test", false))
		eventually(t, "an Event tells it", d.told(d.k.ns, "odd", path, 1+i/2))
	}
}

// told checks that an Event says so often that an object is refused, with this text.
func (d *deployed) told(namespace, name, text string, times int) func() error {
	return func() error {
		all, err := env.cluster.client.CoreV1().Events(namespace).List(d.k.t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.name=" + name})
		if err == nil && !slices.ContainsFunc(all.Items, func(e corev1.Event) bool {
			return e.Reason == "Refused" && int(e.Count) == times && strings.Contains(e.Message, text)
		}) {
			err = fmt.Errorf("there are %d Events of %s, none of them %d times", len(all.Items), name, times)
		}
		return err
	}
}

// tcpServices serves a port by the ConfigMap, of which a wrong entry is told each time.
func (d *deployed) tcpServices() {
	t := d.k.t
	maps := env.cluster.client.CoreV1().ConfigMaps(ownNamespace)
	is := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "tcp-services"}, Data: map[string]string{"9000": d.k.ns + "/root:80"}}
	t.Cleanup(func() {
		if err := maps.Delete(context.Background(), is.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
		if err := env.cluster.client.CoreV1().Events(ownNamespace).DeleteCollection(context.Background(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
			t.Error(err)
		}
	})
	_, err := maps.Create(t.Context(), is, metav1.CreateOptions{})
	d.k.must(err)
	serves := func(port string) func() error {
		noneIsKept := &http.Transport{DisableKeepAlives: true} // HAProxy would wait for it at the end
		return newVisitor("http", subnet+"2:"+port, noneIsKept).expect("any.test", "/", endpoint(host("10"), backendPort))
	}
	eventually(t, "the port is served", serves("9000"))
	for i, value := range []string{"nonsense", is.Data["9000"], "nonsense"} {
		is.Data["9001"] = value
		_, err := maps.Update(t.Context(), is, metav1.UpdateOptions{})
		d.k.must(err)
		if i == 1 {
			eventually(t, "it is served", serves("9001"))
		} else {
			eventually(t, "an Event tells it", d.told(ownNamespace, is.Name, value, 1+i/2))
		}
	}
	d.k.must(serves("9000")())
}

// routed checks whether a host leads to the Service root.
func (d *deployed) routed(name string, is bool) func() error {
	v := newVisitor("http", subnet+"2:8080", noTLS())
	check := v.expect(name, "/", endpoint(host("10"), backendPort))
	return func() error {
		if err := check(); (err == nil) != is {
			return errors.Join(err, fmt.Errorf("routed: %v", !is))
		}
		return nil
	}
}

// lease is held by one of the replicas, in the namespace of the manifests.
func (d *deployed) lease() {
	lease, err := env.cluster.client.CoordinationV1().Leases(ownNamespace).Get(d.k.t.Context(), "haptic", metav1.GetOptions{})
	d.k.must(err)
	if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
		d.k.t.Error("nobody holds the Lease")
	}
}
