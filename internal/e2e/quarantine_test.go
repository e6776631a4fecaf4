package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	netv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
)

// controllerRole is all that a controller with a HAProxy of its own needs.
func controllerRole() []rbacv1.PolicyRule {
	read := []string{"get", "list", "watch"}
	return []rbacv1.PolicyRule{
		{APIGroups: []string{"networking.k8s.io"}, Resources: []string{"ingresses", "ingressclasses"}, Verbs: read},
		{APIGroups: []string{""}, Resources: []string{"services", "secrets"}, Verbs: read},
		{APIGroups: []string{"discovery.k8s.io"}, Resources: []string{"endpointslices"}, Verbs: read},
		{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
	}
}

// kubeconfigOf returns a kubeconfig of the user "watcher" with these rights.
func (k *kube) kubeconfigOf(rules []rbacv1.PolicyRule) string {
	k.t.Helper()
	rbac, meta := env.cluster.client.RbacV1(), metav1.ObjectMeta{Name: "controller-" + k.ns}
	_, err := rbac.ClusterRoles().Create(k.t.Context(), &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{})
	k.must(err)
	_, err = rbac.ClusterRoleBindings().Create(k.t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "watcher"}},
	}, metav1.CreateOptions{})
	k.must(err)
	k.t.Cleanup(func() {
		if err := rbac.ClusterRoleBindings().Delete(context.Background(), meta.Name, metav1.DeleteOptions{}); err != nil {
			k.t.Error(err)
		}
		if err := rbac.ClusterRoles().Delete(context.Background(), meta.Name, metav1.DeleteOptions{}); err != nil {
			k.t.Error(err)
		}
	})
	config, err := clientcmd.LoadFromFile(env.cluster.kubeconfig)
	k.must(err)
	for _, user := range config.AuthInfos {
		user.Token = watcherToken
	}
	file := filepath.Join(k.t.TempDir(), "kubeconfig")
	k.must(clientcmd.WriteToFile(*config, file))
	return file
}

// snippetTemplates are the controller's templates with a hole in them: an
// annotation that goes into haproxy.cfg as it is.
func snippetTemplates(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	must(t, os.CopyFS(dir, os.DirFS("../../examples/controller/templates")))
	file := filepath.Join(dir, "haproxy.cfg")
	text, err := os.ReadFile(file)
	must(t, err)
	const before = "    use_backend %"
	hole := `{% for p in prefix %}{% if p.Ingress.Annotations["snippet"] != "" %}
    {{ raw(p.Ingress.Annotations["snippet"]) }}
{% end %}{% end %}
`
	changed := strings.Replace(string(text), before, hole+before, 1)
	must(t, os.WriteFile(file, []byte(changed), 0o600))
	return dir
}

func annotated(key, value string) edit {
	return func(ing *netv1.Ingress) { ing.Annotations = map[string]string{key: value} }
}

// event is a condition: that there is an Event of the Ingress, and what it says.
func (k *kube) event(ingress, reason string, says ...string) func() error {
	return func() error {
		events, err := env.cluster.client.CoreV1().Events(k.ns).List(k.t.Context(), metav1.ListOptions{
			FieldSelector: "involvedObject.kind=Ingress,involvedObject.name=" + ingress + ",reason=" + reason})
		if err != nil {
			return err
		}
		err = fmt.Errorf("no Event %s of Ingress %s", reason, ingress)
		for _, e := range events.Items {
			missing := slices.DeleteFunc(slices.Clone(says), func(s string) bool { return strings.Contains(e.Message, s) })
			switch {
			case len(missing) > 0:
				err = fmt.Errorf("%q is not in %q", missing, e.Message)
			case e.InvolvedObject.APIVersion != "networking.k8s.io/v1" || e.InvolvedObject.UID == "":
				err = fmt.Errorf("the Event is of %+v", e.InvolvedObject)
			default:
				return nil
			}
		}
		return err
	}
}

// A resource with which haproxy refuses the configuration is left out, its
// owner reads why in "kubectl describe", and everybody else is served.
func TestQuarantine(t *testing.T) {
	startBackends(t, backendPort)
	k := newKube(t)
	k.service("good", backendPort, host("10"))
	k.ingress("good", site("good.test", "good"))
	with := options{args: []string{"-templates", snippetTemplates(t), "-kubeconfig", k.kubeconfigOf(controllerRole())}}
	c := startController(t, with)
	v, good := c.visit(), endpoint(host("10"), backendPort)
	eventually(t, "the good site is served", v.expect("good.test", "/", good))
	tr := startTraffic(t, v, "good.test")

	k.ingress("bad", site("bad.test", "good"), annotated("snippet", "http-request deny deny_status never"))
	eventually(t, "an Event says what is wrong with the Ingress",
		k.event("bad", "Quarantined", "deny_status", "; rendered as line ", " of haproxy.cfg for Ingress "+k.ns+"/bad"))
	k.ingress("next", site("next.test", "good"))
	eventually(t, "what comes after the bad Ingress is served", v.expect("next.test", "/", good))
	eventually(t, "the bad one is not", v.expectStatus("bad.test", "/", http.StatusNotFound))
	k.ingress("refused", site("refused.test", "good"), route("refused.test", netv1.PathTypePrefix, "/a b", "good"))
	eventually(t, "an Event says what part of an Ingress is refused", k.event("refused", "Refused", "spec.rules[1]"))

	tr.noFailures(t, 100)

	t.Run("after a restart", func(t *testing.T) {
		c.stop()
		v := startController(t, with).visit()
		eventually(t, "the others are served", v.expect("next.test", "/", good))
		eventually(t, "the bad one is not", v.expectStatus("bad.test", "/", http.StatusNotFound))
		_, err := env.cluster.client.NetworkingV1().Ingresses(k.ns).Patch(t.Context(), "bad", types.MergePatchType,
			[]byte(`{"metadata":{"annotations":{"snippet":"http-request set-header X-A b"}}}`), metav1.PatchOptions{})
		k.must(err)
		eventually(t, "it is taken back when it is mended", v.expect("bad.test", "/", good))
		eventually(t, "an Event says so", k.event("bad", "Released", "released from quarantine"))
	})
}
