package k8swatch

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// What can stand in the way of a watcher; test for it with errors.Is.
var (
	ErrForbidden    = errors.New("forbidden")                                 // RBAC does not allow the request
	ErrNotInstalled = errors.New("the server does not have the resource")     // such as a CRD that is absent
	ErrUnreachable  = errors.New("the source cannot be read")                 // no answer, or an answer that will not do
	ErrStopped      = errors.New("the watcher was stopped")                   // Run has returned
	ErrStarted      = errors.New("Run was called before; it can run once")    // from a second Run
	ErrInGroup      = errors.New("the watcher belongs to a group already")    // from Group.Add
	ErrGroupRunning = errors.New("the group is running; add watchers before") // from Group.Add
)

// OptionError is what [New] refuses.
type OptionError struct {
	Resource schema.GroupVersionResource
	Err      error
}

// Error implements error.
func (e *OptionError) Error() string {
	return "k8swatch: " + e.Resource.Resource + ": " + e.Err.Error()
}

// Unwrap implements errors.Is and errors.As.
func (e *OptionError) Unwrap() error { return e.Err }

// SyncError says why a watcher does not hold its objects (yet). It unwraps to
// one of ErrForbidden, ErrNotInstalled, ErrUnreachable or ErrStopped, to the
// error of the source and, from WaitForSync, to that of the context. The watcher
// goes on trying behind it, except after ErrStopped.
type SyncError struct {
	Resource  schema.GroupVersionResource
	Namespace string // "" for all
	Verb      string // "list" or "watch"; "" where no request was answered
	Reason    error  // one of the errors above
	Err       error  // what the source or the context said
}

// Error implements error.
func (e *SyncError) Error() string {
	name := e.Resource.Resource
	if e.Resource.Group != "" {
		name += "." + e.Resource.Group
	}
	where := "in all namespaces"
	if e.Namespace != "" {
		where = "in namespace " + e.Namespace
	}
	verb := e.Verb
	if verb == "" {
		verb = "watch"
	}
	text := fmt.Sprintf("cannot %s %s %s: %v", verb, name, where, e.Reason)
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap implements errors.Is and errors.As.
func (e *SyncError) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Reason}
	}
	return []error{e.Reason, e.Err}
}

// FetchError says which object a [Cached] could not fetch. It unwraps to the
// error of the source, and to ErrStopped after Run.
type FetchError struct {
	Resource        schema.GroupVersionResource
	Namespace, Name string
	Err             error
}

// Error implements error.
func (e *FetchError) Error() string {
	name := e.Name
	if e.Namespace != "" {
		name = e.Namespace + "/" + name
	}
	return "cannot get " + e.Resource.GroupResource().String() + " " + name + ": " + e.Err.Error()
}

// Unwrap implements errors.Is and errors.As.
func (e *FetchError) Unwrap() error { return e.Err }
