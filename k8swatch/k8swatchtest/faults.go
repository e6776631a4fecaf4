package k8swatchtest

import (
	"context"
	"fmt"
	"net"
	"slices"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hapticsdk/haptic/k8swatch/internal/memapi"
)

// Drop ends all open watches, as a restart of the API server does.
func (s *Source) Drop() { s.server.DropWatches() }

// Compact forgets the history: a watch from an older resource version gets 410 Gone and
// must list again.
func (s *Source) Compact() { s.server.Compact() }

// Bookmark sends a bookmark to the watches that ask for them, as the API server does
// once a minute.
func (s *Source) Bookmark() { s.server.Bookmark() }

// EatBookmarks suppresses the bookmark that ends a streaming list.
func (s *Source) EatBookmarks(on bool) { s.server.SetNoBookmarks(on) }

// Partition ends all watches and refuses connections until [Source.Restore].
func (s *Source) Partition() { s.change(func() { s.partitioned = true }) }

// Restore ends a partition.
func (s *Source) Restore() { s.change(func() { s.partitioned = false }) }

// Forbid takes away the permission for the verbs ("get", "list", "watch"; none means
// all) on a resource, allows the other verbs, and ends the watches.
func (s *Source) Forbid(gvr schema.GroupVersionResource, verbs ...string) {
	if len(verbs) == 0 {
		verbs = []string{"get", "list", "watch"}
	}
	s.change(func() { s.forbidden[gvr] = verbs })
}

// Allow gives the permission back.
func (s *Source) Allow(gvr schema.GroupVersionResource) {
	s.change(func() { delete(s.forbidden, gvr) })
}

// Uninstall removes a resource as the deletion of its CRD does. Watches get a deletion
// for each object, and then end. The server answers 404 until [Source.Install]. Before
// that no object of the resource can be applied.
func (s *Source) Uninstall(gvr schema.GroupVersionResource) {
	s.mu.Lock()
	s.absent[gvr] = true
	s.mu.Unlock()
	s.server.Remove(gvr)
}

// Install makes a resource known again, without objects. A source knows all
// resources that were not uninstalled.
func (s *Source) Install(gvr schema.GroupVersionResource) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.absent, gvr)
}

func (s *Source) change(f func()) {
	s.mu.Lock()
	f()
	s.mu.Unlock()
	s.server.DropWatches()
}

// Request describes a request of a client.
type Request struct {
	Resource schema.GroupVersionResource
	Verb     string // "get", "list" or "watch"
	Continue bool   // a list that asks for a later page
}

// OnRequest calls f for each request, with the context of the request. If f returns an
// error, the client gets it. f may also wait. Nil removes f.
func (s *Source) OnRequest(f func(context.Context, Request) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onRequest = f
}

// fault decides whether a request fails.
func (s *Source) fault(ctx context.Context, r memapi.Request) error {
	s.mu.Lock()
	onRequest := s.onRequest
	s.mu.Unlock()
	if onRequest != nil {
		if err := onRequest(ctx, Request(r)); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.partitioned:
		return &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	case s.absent[r.Resource]:
		return notInstalled(r.Resource)
	case slices.Contains(s.forbidden[r.Resource], r.Verb):
		return apierrors.NewForbidden(r.Resource.GroupResource(), "", fmt.Errorf("cannot %s resource %q", r.Verb, r.Resource.Resource))
	}
	return nil
}

// notInstalled is the error of a client for the plain 404 of an unknown path.
func notInstalled(gvr schema.GroupVersionResource) error {
	return apierrors.NewGenericServerResponse(404, "get", gvr.GroupResource(), "", "404 page not found", 0, true)
}
