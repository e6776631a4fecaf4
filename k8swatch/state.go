package k8swatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Phase says how a watcher is doing.
type Phase string

// The phases. Snapshots stay readable in all of them.
const (
	PhaseStarting     Phase = "Starting"     // some initial objects are missing
	PhaseSynced       Phase = "Synced"       // connected, and no known change is missing
	PhaseStale        Phase = "Stale"        // synced once, but cannot reach the source now
	PhaseForbidden    Phase = "Forbidden"    // RBAC does not allow to list, watch or, with OnlyNamed, get
	PhaseNotInstalled Phase = "NotInstalled" // the server does not have the resource
	PhaseStopped      Phase = "Stopped"      // Run has returned
)

// State is a report on a watcher.
type State struct {
	Phase      Phase
	Since      time.Time // when the phase began
	StaleSince time.Time // since when the source does not answer; zero while it does
	Synced     bool      // all initial objects were stored once
	Err        error     // a *SyncError in the phases that have one
	Objects    int
	Refused    int // objects that cannot be stored; see the log
	Revision   Revision
}

// health tracks the state. Its methods may be called concurrently.
type health struct {
	resource  schema.GroupVersionResource
	namespace string

	mu      sync.Mutex
	current State
	failing *SyncError    // how the last request failed; nil if all is well
	blocked *SyncError    // why another watcher, which has to be first, gets no further
	count   int           // objects of the initial sync
	round   int           // the round whose list is stored: see Watcher.round
	changed chan struct{} // closed and replaced on each change
}

func newHealth(gvr schema.GroupVersionResource, namespace string) *health {
	return &health{
		resource: gvr, namespace: namespace, changed: make(chan struct{}),
		current: State{Phase: PhaseStarting, Since: time.Now()},
	}
}

// set changes the state and derives the phase from it.
func (h *health) set(change func(*State)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := &h.current
	before := s.Phase
	if before == PhaseStopped {
		return
	}
	change(s)
	if s.Phase != PhaseStopped {
		h.judge(s)
	}
	if s.Phase != before {
		s.Since = time.Now()
	}
	close(h.changed)
	h.changed = make(chan struct{})
}

func (h *health) judge(s *State) {
	s.Err = nil
	failing := cmp.Or(h.failing, h.blocked)
	switch {
	case failing == nil && s.Synced:
		s.Phase, s.StaleSince = PhaseSynced, time.Time{}
		return
	case failing == nil: // the initial objects are on their way
		s.Phase = PhaseStarting
		return
	case failing.Reason == ErrForbidden:
		s.Phase = PhaseForbidden
	case failing.Reason == ErrNotInstalled:
		s.Phase = PhaseNotInstalled
	case s.Synced:
		s.Phase = PhaseStale
	default:
		s.Phase = PhaseStarting
	}
	s.Err = failing
	if s.Synced && s.StaleSince.IsZero() {
		s.StaleSince = time.Now()
	}
}

// syncedNow is called once, when the last initial object is in the store.
func (h *health) syncedNow(count int) {
	h.set(func(s *State) { s.Synced, h.count = true, count })
}

// The requests that a watcher needs to work.
const (
	verbList  = "list"
	verbWatch = "watch"
	verbGet   = "get" // with OnlyNamed
)

// well is called when the source has served the verb. A list that works does not hide a
// forbidden watch: a watcher needs both, and they take turns.
func (h *health) well(verb string) {
	h.set(func(*State) {
		if h.failing != nil && (verb == verbWatch || h.failing.Verb == verb) {
			h.failing = nil
		}
	})
}

func (h *health) failed(verb string, err error) {
	h.set(func(*State) {
		e := &SyncError{Resource: h.resource, Namespace: h.namespace, Verb: verb, Reason: reason(err), Err: err}
		if e.Reason == ErrNotInstalled { // one cause, whatever request came first
			e.Verb = verbWatch
		}
		if h.failing == nil || h.failing.Reason == ErrUnreachable || !errors.Is(err, errNoAnswer) {
			h.failing = e // a missing answer does not hide a refusal
		}
	})
}

func reason(err error) error {
	switch {
	case apierrors.IsForbidden(err):
		return ErrForbidden
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return ErrNotInstalled
	}
	return ErrUnreachable
}

// block notes what keeps another watcher, whose objects have to be first; nil: nothing.
func (h *health) block(e *SyncError) {
	h.set(func(*State) { h.blocked = e })
}

// obstacle returns why requests fail, or nil, and what is closed on the next change.
func (h *health) obstacle() (e *SyncError, changed <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.failing, h.changed
}

func (h *health) stop() {
	h.set(func(s *State) { s.Phase = PhaseStopped })
}

// listed notes that the list of a round is in the store.
func (h *health) listed(round int) {
	h.set(func(*State) { h.round = round })
}

func (h *health) isSynced() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.current.Synced
}

func (h *health) state() State {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.current
}

// wait waits for the initial objects, and for the list of a round.
func (h *health) wait(ctx context.Context, round int) (int, error) {
	begun := time.Now()
	for {
		h.mu.Lock()
		s, count, listed, changed := h.current, h.count, h.round, h.changed
		h.mu.Unlock()
		switch {
		case s.Synced && listed >= round:
			return count, nil
		case s.Phase == PhaseStopped:
			return 0, &SyncError{Resource: h.resource, Namespace: h.namespace, Reason: ErrStopped, Err: s.Err}
		case s.Phase == PhaseForbidden, s.Phase == PhaseNotInstalled:
			return 0, s.Err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			e := &SyncError{Resource: h.resource, Namespace: h.namespace, Reason: ErrUnreachable}
			late := &lateError{after: time.Since(begun), end: ctx.Err()}
			var last *SyncError
			if errors.As(s.Err, &last) {
				e.Verb, late.cause = last.Verb, last.Err
			}
			e.Err = late
			return 0, e
		}
	}
}

// lateError ends a wait. The cause is the last answer of the source, nil if there was none.
type lateError struct {
	after      time.Duration
	cause, end error
}

func (e *lateError) Error() string {
	text := fmt.Sprintf("no answer within %s; the watcher tries again", e.after.Round(time.Millisecond))
	if e.cause != nil {
		text = fmt.Sprintf("%v, for %s; the watcher tries again", e.cause, e.after.Round(time.Millisecond))
	}
	return text
}

func (e *lateError) Unwrap() []error {
	if e.cause == nil {
		return []error{e.end}
	}
	return []error{e.cause, e.end}
}

// The reasons why a watcher cannot work; test for them with errors.Is.
var (
	ErrForbidden    = errors.New("forbidden")                                 // RBAC does not allow the request
	ErrNotInstalled = errors.New("the server does not have the resource")     // such as a CRD that is absent
	ErrUnreachable  = errors.New("the source cannot be read")                 // no answer, or an unusable one
	ErrStopped      = errors.New("the watcher was stopped")                   // Run has returned
	ErrStarted      = errors.New("Run was called before; it can run once")    // from a second Run
	ErrInGroup      = errors.New("the watcher belongs to a group already")    // from Group.Add
	ErrGroupRunning = errors.New("the group is running; add watchers before") // from Group.Add
)

// OptionError says which option or argument a constructor such as [New] refuses.
type OptionError struct {
	Resource schema.GroupVersionResource
	Err      error
}

func (e *OptionError) Error() string {
	if e.Resource.Resource == "" {
		return "k8swatch: " + e.Err.Error()
	}
	return "k8swatch: " + e.Resource.Resource + ": " + e.Err.Error()
}

func (e *OptionError) Unwrap() error { return e.Err }

// SyncError says why a watcher does not hold its objects (yet). It unwraps to one of
// ErrForbidden, ErrNotInstalled, ErrUnreachable or ErrStopped, and to the error of the
// source. From WaitForSync it also unwraps to the error of the context. The watcher
// goes on trying, except after ErrStopped.
type SyncError struct {
	Resource  schema.GroupVersionResource
	Namespace string // "" for all
	Verb      string // "list", "watch" or, with OnlyNamed, "get"; always "watch" with ErrNotInstalled; "" if no request was answered
	Reason    error  // one of the errors above
	Err       error  // the error of the source or the context
}

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

func (e *SyncError) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Reason}
	}
	return []error{e.Reason, e.Err}
}

// FetchError says which object a [Cached] could not fetch. It unwraps to the error of
// the source, and to ErrStopped after Run.
type FetchError struct {
	Resource        schema.GroupVersionResource
	Namespace, Name string
	Err             error
}

func (e *FetchError) Error() string {
	name := e.Name
	if e.Namespace != "" {
		name = e.Namespace + "/" + name
	}
	return "cannot get " + e.Resource.GroupResource().String() + " " + name + ": " + e.Err.Error()
}

func (e *FetchError) Unwrap() error { return e.Err }
