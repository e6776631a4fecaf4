package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hapticsdk/haptic/internal/watchtest"
	"github.com/hapticsdk/haptic/k8swatch"
)

var readVerbs = []string{"get", "list", "watch"}

// bindWatcher gives the watcher a Role in the namespace, without rules.
func (s *watchServer) bindWatcher() {
	s.t.Helper()
	rbac := env.cluster.client.RbacV1()
	name := metav1.ObjectMeta{Name: "watcher"}
	_, err := rbac.Roles(s.ns).Create(s.t.Context(), &rbacv1.Role{ObjectMeta: name}, metav1.CreateOptions{})
	s.must(err)
	_, err = rbac.RoleBindings(s.ns).Create(s.t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: name,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "watcher"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "watcher"}},
	}, metav1.CreateOptions{})
	s.must(err)
}

// permit allows the watcher these verbs on ConfigMaps and nothing else, and
// returns when the API server, which is told of Roles by a watch of its own, has
// heard of it.
func (s *watchServer) permit(verbs ...string) {
	s.t.Helper()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "watcher"}}
	if len(verbs) > 0 {
		role.Rules = []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: verbs}}
	}
	_, err := env.cluster.client.RbacV1().Roles(s.ns).Update(s.t.Context(), role, metav1.UpdateOptions{})
	s.must(err)
	for _, verb := range readVerbs {
		eventually(s.t, "the API server knows the Role", func() error {
			review, err := env.cluster.client.AuthorizationV1().SubjectAccessReviews().Create(s.t.Context(), &authorizationv1.SubjectAccessReview{
				Spec: authorizationv1.SubjectAccessReviewSpec{User: "watcher", ResourceAttributes: &authorizationv1.ResourceAttributes{
					Namespace: s.ns, Verb: verb, Resource: "configmaps",
				}},
			}, metav1.CreateOptions{})
			if err == nil && review.Status.Allowed != slices.Contains(verbs, verb) {
				err = fmt.Errorf("%s: allowed: %v", verb, review.Status.Allowed)
			}
			return err
		})
	}
}

// TestWatchPermissionsComeAndGo: watchers say what they lack, keep what they
// know, and go on as soon as they may. The API server asks for permission when a
// request begins: an open watch goes on without.
func TestWatchPermissionsComeAndGo(t *testing.T) {
	s := newWatchServer(t)
	s.bindWatcher()
	s.must(s.Apply(t.Context(), s.configMap("one")))
	w := startWatchers[*corev1.ConfigMap](t, s.connect(watcherToken, nil), watchtest.ConfigMaps, s.ns, true)
	forbidden := func(verbs ...string) func() error {
		return w.fail(k8swatch.PhaseForbidden, k8swatch.ErrForbidden, verbs...)
	}
	eventually(t, "all is forbidden", forbidden("list"))
	if n, err := w.bulk.WaitForSync(t.Context()); n != 0 || !errors.Is(err, k8swatch.ErrForbidden) || !apierrors.IsForbidden(err) {
		t.Errorf("WaitForSync: %d, %v", n, err)
	}
	if _, err := w.cached.List(t.Context()); !errors.Is(err, k8swatch.ErrForbidden) {
		t.Errorf("cached: %v", err)
	}
	s.permit(readVerbs...)
	told := k8swatch.Changes{Created: 1}
	s.recovers(t, "allowed for the first time", w.well(told, "created", "one"))

	s.permit("list", "get")
	s.wire.cut()
	eventually(t, "watching is forbidden", forbidden("watch"))
	s.must(w.hold("one"))
	s.permit(readVerbs...)
	s.recovers(t, "allowed to watch again", w.well(told, "created", "one"))

	s.permit("watch", "get")
	// Each calls OnChange at once, with what is known.
	for _, force := range []func(){w.bulk.ForceSync, w.single.ForceSync, w.cached.ForceSync} {
		force()
	}
	eventually(t, "listing is forbidden", forbidden("list"))
	s.must(w.hold("one"))
	s.permit(readVerbs...)
	s.recovers(t, "allowed to list again", w.well(told, "created modified", "one"))

	s.permit()
	s.wire.cut()
	eventually(t, "all is forbidden again", forbidden("list", "watch"))
	before := w.bulk.Snapshot()
	s.must(s.Delete(t.Context(), "one"))
	s.must(s.Apply(t.Context(), s.configMap("one")))
	s.must(s.Apply(t.Context(), s.configMap("two")))
	s.must(w.hold("one"))
	s.permit(readVerbs...)
	told.Created, told.Deleted = 3, 1
	s.recovers(t, "allowed again", w.well(told, "created modified deleted created", "one", "two"))
	if got := named(before); !slices.Equal(got, []string{"one"}) {
		t.Errorf("a snapshot holds %q now", got)
	}
}

// TestWatchFetchForbidden: a cached store that may watch and not fetch has an
// error for its readers, never a list without what is missing.
func TestWatchFetchForbidden(t *testing.T) {
	s := newWatchServer(t)
	s.bindWatcher()
	s.must(s.Apply(t.Context(), s.configMap("one")))
	s.permit("list", "watch")
	w := startWatchers[*corev1.ConfigMap](t, s.connect(watcherToken, nil), watchtest.ConfigMaps, s.ns, true)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	all, err := w.cached.List(ctx)
	var fetch *k8swatch.FetchError
	if all != nil || !errors.As(err, &fetch) || !apierrors.IsForbidden(err) || fetch.Name != "one" || fetch.Resource != watchtest.ConfigMaps {
		t.Errorf("%v, %v", all, err)
	}
	s.permit(readVerbs...)
	s.recovers(t, "allowed to fetch", w.well(k8swatch.Changes{Created: 1}, "created", "one"))
}
