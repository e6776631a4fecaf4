package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// runCluster has a controller that reads a cluster, as a user who may read what it
// needs.
func runCluster(t *testing.T, b *board, g *group) {
	k := newKube(t)
	k.service("others", backendPort, host("20"), host("21"))
	k.ingress("others", site("others.test", "others"))
	for i, m := range g.mistakes {
		if !m.noSite {
			k.service(siteOf(i), backendPort, host("20"), host("21"))
			k.ingress(siteOf(i), site(siteOf(i)+".test", siteOf(i)))
		}
	}
	may(t, "*")
	t.Cleanup(mayNothing)
	kubeconfig, err := os.ReadFile(env.cluster.kubeconfig)
	must(t, err)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, os.WriteFile(file, []byte(strings.ReplaceAll(string(kubeconfig), apiToken, watcherToken)), 0o600))
	c := startController(t, options{binary: *mistakesController, addr: subnet + "227", debugPort: 9127,
		args: []string{"-kubeconfig", file, "-leader-elect", "-lease", k.ns + "/haptic"}})
	s := &stage{t: t, b: b, group: g.name, c: c, plain: c.visit(), kube: k}
	eventually(t, "the other site is served", s.plain.expectStatus("others.test", "/", 200))
	s.startOthers("others.test")
	s.runAll(g)
}

// may lets the user of the controller do all it needs with these resources, and
// nothing with those that are left out.
func may(t *testing.T, resources ...string) {
	t.Helper()
	ctx := context.Background()
	roles, bindings := env.cluster.client.RbacV1().ClusterRoles(), env.cluster.client.RbacV1().ClusterRoleBindings()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "mistakes"},
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: resources, Verbs: []string{"*"}}}}
	if _, err := roles.Update(ctx, role, metav1.UpdateOptions{}); err != nil { // makes it where it is not there
		t.Fatal(err)
	}
	_, err := bindings.Update(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "mistakes"},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "mistakes"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "watcher"}}}, metav1.UpdateOptions{})
	must(t, err)
}

// mayNothing takes it back.
func mayNothing() {
	_ = env.cluster.client.RbacV1().ClusterRoleBindings().Delete(context.Background(), "mistakes", metav1.DeleteOptions{})
	_ = env.cluster.client.RbacV1().ClusterRoles().Delete(context.Background(), "mistakes", metav1.DeleteOptions{})
}

// clusterMistakes are an API server that is away or forbids, and objects in it.
var clusterMistakes = []mistake{
	{name: "a label typo", own: 503, plant: func(sc *scene) {
		sc.fatal(sc.kube.patch(sc.t.Context(), "endpointslices", sc.site+"-1", `{"metadata":{"labels":{"kubernetes.io/service-name":"typo"}}}`))
		sc.undo = append(sc.undo, func() {
			sc.fatal(sc.kube.patch(context.Background(), "endpointslices", sc.site+"-1", `{"metadata":{"labels":{"kubernetes.io/service-name":"`+sc.site+`"}}}`))
		})
	}, says: []string{"Service", "/SITE", "kubernetes.io/service-name"}},
	{name: "a class of nobody", own: 404, plant: func(sc *scene) {
		sc.fatal(sc.kube.patch(sc.t.Context(), "ingresses", sc.site, `{"spec":{"ingressClassName":"hapitc"}}`))
		sc.undo = append(sc.undo, func() {
			sc.fatal(sc.kube.patch(context.Background(), "ingresses", sc.site, `{"spec":{"ingressClassName":"haptic"}}`))
		})
	}, says: []string{"Ingress", "/SITE", "spec.ingressClassName", "hapitc"}},
	{name: "the lease is another's", noSite: true, long: true, passing: true, plant: func(sc *scene) {
		leases := env.cluster.client.CoordinationV1().Leases(sc.kube.ns)
		take := func(holder string) {
			sc.fatal(poll(sc.t.Context(), patience, func() error {
				lease, err := leases.Get(context.Background(), "haptic", metav1.GetOptions{})
				if err != nil {
					return err
				}
				now, seconds := metav1.NewMicroTime(time.Now()), int32(5)
				lease.Spec = coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, AcquireTime: &now, RenewTime: &now}
				_, err = leases.Update(context.Background(), lease, metav1.UpdateOptions{})
				return err
			}))
		}
		take("another")
	}, says: []string{"leads no longer"}},
	{name: "a resource is forbidden, at a restart", noSite: true, unready: true, plant: func(sc *scene) {
		may(sc.t, "ingresses", "ingressclasses", "services", "endpointslices", "leases", "events")
		sc.undo = append(sc.undo, func() { may(sc.t, "*") })
		eventually(sc.t, "the API server has heard of it", sc.forbidden)
		sc.restart()
	}, says: []string{"secrets", "forbidden"}},
	{name: "the API server is away", noSite: true, plant: func(sc *scene) {
		env.cluster.api.kill()
		sc.undo = append(sc.undo, func() { sc.fatal(env.cluster.startAPI()) })
	}, says: []string{"connection refused"}},
}

// forbidden is a condition: the user may not list Secrets.
func (sc *scene) forbidden() error {
	config := *env.cluster.config
	config.BearerToken = watcherToken
	client, err := kubernetes.NewForConfig(&config)
	if err != nil {
		return err
	}
	if _, err := client.CoreV1().Secrets("").List(sc.t.Context(), metav1.ListOptions{}); apierrors.IsForbidden(err) {
		return nil
	}
	return fmt.Errorf("they can be listed: %v", err)
}
