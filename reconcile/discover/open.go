package discover

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/internal/follow"
	"github.com/hapticsdk/haptic/k8swatch"
)

// key identifies the instances that credentials are meant for.
func (w *Wanted) key() string {
	return fmt.Sprintf("%q %q %q %+v %+v", w.Secret, w.Selector, w.URLs, w.Pods, w.TLS)
}

// check returns an error that names the wrong field.
func (w *Wanted) check(source bool) error {
	_, selector := labels.Parse(w.Selector)
	objects := []string{w.Secret, w.TLS.CASecret}
	for i, name := range []string{"Secret", "TLS.CASecret"} {
		if namespace, of, _ := strings.Cut(objects[i], "/"); objects[i] != "" && (namespace == "" || of == "") {
			return fmt.Errorf("discovery: Wanted.%s %q: want namespace/name", name, objects[i])
		}
	}
	switch {
	case w.Selector != "" && len(w.URLs) > 0:
		return errors.New("discovery: Wanted.URLs and Wanted.Selector exclude each other")
	case selector != nil:
		return fmt.Errorf("discovery: Wanted.Selector: %w", selector)
	case !source && (w.Selector != "" && w.List == nil || strings.Join(objects, "") != ""):
		return errors.New("discovery: FollowerOptions.Source is missing, which Wanted needs")
	case w.Selector != "":
		return w.Pods.check()
	}
	return nil
}

// open reads everything that the instances need: credentials and TLS.
func (f *Follower) open(ctx context.Context, w *Wanted) (*opened, error) {
	now, secret := map[follow.Source]string{}, sourceOf(w.Secret)
	info, created := CredentialsInfo{Source: "environment"}, time.Time{}
	if w.Secret != "" {
		info.Source = secret.String()
	}
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.info, f.created = info, created
	}()
	if err := f.follow(ctx, secret, w.TLS.ca()); err != nil {
		return nil, err
	}
	credentials := w.Credentials
	if w.Secret != "" {
		content, err := f.read("credentials", secret, now)
		if err != nil {
			return nil, err
		}
		info.Keys, info.ResourceVersion, created = slices.Sorted(maps.Keys(content.Data)), content.Version, content.Created
		if credentials, err = ParseCredentials(content.Data); err != nil {
			return nil, &sourceError{"credentials", secret, err}
		}
	} else if credentials.DataplaneUsername == "" || credentials.DataplanePassword == "" {
		return nil, errors.New("credentials: there are none: name a Secret, or give a user name and a password")
	}
	config, err := f.config(w.TLS, now)
	if err != nil {
		return nil, err
	}
	published := false
	for object, version := range now {
		if f.versions[object] != version || object == secret && f.reported != "" {
			eventbus.Publish(f.opts.Bus, CredentialsUpdated{Secret: object.Object(), Version: version})
			published = true
		}
	}
	if f.reported != "" && !published { // a file is in order again
		eventbus.Publish(f.opts.Bus, CredentialsUpdated{})
	}
	f.reported, f.versions = "", now
	return &opened{w.key(), credentials, config}, nil
}

// follow follows these sources and stops following all others.
func (f *Follower) follow(ctx context.Context, sources ...follow.Source) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for s, object := range f.followed {
		if !slices.Contains(sources, s) {
			object.Stop()
			delete(f.followed, s)
		}
	}
	for _, s := range sources {
		if f.followed[s] != nil || s == (follow.Source{}) {
			continue
		}
		object, err := follow.Start(ctx, &f.wg, f.opts.Source, f.opts.Logger, s, f.Look)
		if err != nil {
			return &sourceError{"TLS", s, err}
		}
		f.followed[s] = object
	}
	return nil
}

// read returns the content of a source, and notes its version in now.
func (f *Follower) read(of string, s follow.Source, now map[follow.Source]string) (follow.Content, error) {
	content, err := f.followed[s].Get()
	if err != nil {
		return content, &sourceError{of, s, err}
	}
	if s.Kind != "" {
		now[s] = content.Version
	}
	return content, nil
}

// lateness tells a slow source from a failed one.
type lateness struct {
	what  string
	since time.Time
}

// due returns the error, or nil while the source is only slow. It also returns when to look
// again.
func (l *lateness) due(err error) (error, time.Duration) {
	var unread *follow.UnreadError
	if !errors.As(err, &unread) {
		*l = lateness{}
		return err, follow.ReadTime
	}
	if l.what != unread.What {
		*l = lateness{unread.What, time.Now()}
	}
	if left := follow.ReadTime - time.Since(l.since); left > 0 {
		return nil, min(left, time.Second) // by then the reason may be known
	}
	return err, follow.ReadTime
}

// report shows a problem and publishes it, but not the same one twice in a row. It returns when
// to look again, 0 for never.
func (f *Follower) report(w *Wanted, wrong, missing error) (again time.Duration) {
	var unread *follow.UnreadError
	slow := errors.As(wrong, &unread) || errors.As(missing, &unread)
	dueWrong, first := f.late[0].due(wrong)
	dueMissing, second := f.late[1].due(missing)
	if wrong != nil || slow {
		again = min(first, second)
	}
	f.mu.Lock()
	f.wrong, f.missing, f.unready = dueWrong, dueMissing, errors.Join(wrong, missing)
	inUse := f.opened != nil
	select {
	case <-f.known:
	default:
		if !slow && f.wanted == w {
			close(f.known)
		}
	}
	f.mu.Unlock()
	if dueWrong == nil {
		return again
	}
	reported := dueWrong.Error()
	if errors.As(wrong, &unread) { // the words of the reason change from one request to the next
		reported = "unread: " + unread.What
	}
	if f.reported == reported {
		return again
	}
	f.reported = reported
	invalid := CredentialsInvalid{Err: dueWrong, InUse: inUse}
	var at *sourceError
	if errors.As(wrong, &at) {
		invalid.Secret = at.source.Object()
	}
	eventbus.Publish(f.opts.Bus, invalid)
	return again
}

// CredentialsInfo describes credentials without any secret.
type CredentialsInfo struct {
	Source          string   `json:"source"`                    // "Secret default/haptic", or "environment"
	Keys            []string `json:"keys"`                      // present in the Secret
	ResourceVersion string   `json:"resourceVersion,omitempty"` // of the Secret
	Age             string   `json:"age,omitempty"`             // of the Secret
	InUse           bool     `json:"inUse"`                     // instances are reached with these; if Error is not empty, with the ones before
	Error           string   `json:"error,omitempty"`           // why they cannot be used
}

// Credentials describes the credentials, without their values.
func (f *Follower) Credentials() CredentialsInfo {
	f.mu.Lock()
	defer f.mu.Unlock()
	info := f.info
	info.Keys, info.InUse = slices.Clone(info.Keys), f.opened != nil
	if !f.created.IsZero() {
		info.Age = time.Since(f.created).Round(time.Second).String()
	}
	if f.wrong != nil {
		info.Error = f.wrong.Error()
	}
	return info
}

// Check says why there are no instances, or fewer than wanted. If all is well, it returns nil.
// For problems of credentials see [Follower.Credentials].
func (f *Follower) Check() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.missing
}

// Watches returns the state of each watch of Run. The names are "pods", and kind and name of
// each Secret, such as "Secret haproxy/credentials". Once instances are found,
// they stay in use, and a watch that fails later counts as synced.
func (f *Follower) Watches() map[string]k8swatch.State {
	f.mu.Lock()
	defer f.mu.Unlock()
	states := map[string]k8swatch.State{}
	for s, object := range f.followed {
		if object.State != nil {
			states[s.String()] = object.State()
		}
	}
	if f.pods != nil {
		states["pods"] = f.pods.watcher.State()
	}
	for name, state := range states {
		state.Synced = state.Synced || f.opened != nil
		states[name] = state
	}
	return states
}
