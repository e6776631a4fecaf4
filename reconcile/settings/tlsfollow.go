package settings

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/k8swatch"
)

// tlsFollower keeps what https to the Dataplane APIs is checked with as it is now.
type tlsFollower struct {
	live *Live
	wg   sync.WaitGroup

	objects  map[objectRef]*followedObject
	file     string // that is watched
	stopFile context.CancelFunc

	settings TLS
	material tlsMaterial
	versions map[objectRef]string // that it was made of
	config   *tls.Config          // the same one until something changes: a target goes with it
}

// tlsMaterial is what a tls.Config is made of, in PEM.
type tlsMaterial struct{ ca, certificate, key string }

// objectRef names a Secret or a ConfigMap.
type objectRef struct{ kind, namespace, name string }

func (r objectRef) String() string { return r.kind + " " + r.namespace + "/" + r.name }

// objectError is what is wrong with what dataplane.tls names.
type objectError struct {
	ref objectRef // zero for a file
	err error
}

func (e *objectError) Error() string {
	if e.ref == (objectRef{}) {
		return "dataplane.tls: " + e.err.Error()
	}
	return fmt.Sprintf("dataplane.tls: %v: %v", e.ref, e.err)
}
func (e *objectError) Unwrap() error { return e.err }

// followedObject is a Secret or a ConfigMap that is watched.
type followedObject struct {
	stop  context.CancelFunc
	state func() k8swatch.State
	get   func() (data map[string][]byte, version string, ok bool)
}

// now returns the configuration for these settings. namespace is that of the
// controller. The error is an [*unreadError] while not all is known that it takes.
func (f *tlsFollower) now(ctx context.Context, settings TLS, namespace string) (config *tls.Config, err error) {
	if err := f.follow(ctx, settings, namespace); err != nil {
		return nil, err
	}
	for _, ref := range f.names() {
		if state := f.objects[ref].state(); !state.Synced {
			return nil, &objectError{ref, &unreadError{ref.String(), state.Err}}
		}
	}
	m, versions, err := f.read(settings, namespace)
	if err != nil {
		return nil, err
	}
	if settings == f.settings && m == f.material && (f.config != nil || settings == TLS{}) {
		return f.config, nil
	}
	if config, err = settings.Config([]byte(m.ca), []byte(m.certificate), []byte(m.key)); err != nil {
		ref := settings.clientRef(namespace)
		if _, wrong := certPool([]byte(m.ca)); wrong != nil && settings.hasCA() {
			ref, _ = settings.caRef(namespace)
		}
		return nil, &objectError{ref, err}
	}
	for ref, version := range versions {
		if f.versions[ref] != version {
			eventbus.Publish(f.live.opts.Bus, CredentialsUpdated{Secret: ref.namespace + "/" + ref.name, Version: version})
		}
	}
	f.settings, f.material, f.versions, f.config = settings, m, versions, config
	return config, nil
}

// names are those of what is watched, in a fixed order.
func (f *tlsFollower) names() []objectRef {
	return slices.SortedFunc(maps.Keys(f.objects), func(a, b objectRef) int { return strings.Compare(a.String(), b.String()) })
}

// caRef is the object with the CAs, and its key; zero where there is none.
func (d TLS) caRef(namespace string) (objectRef, string) {
	kind, ref := "Secret", d.CASecret
	if d.CAConfigMap != (KeyRef{}) {
		kind, ref = "ConfigMap", d.CAConfigMap
	}
	if ref == (KeyRef{}) {
		return objectRef{}, ""
	}
	return objectRef{kind, cmp.Or(ref.Namespace, namespace), ref.Name}, cmp.Or(ref.Key, defaultCAKey)
}

// clientRef is the Secret with the certificate of the client; zero for none.
func (d TLS) clientRef(namespace string) objectRef {
	if d.ClientCertificate.Name == "" {
		return objectRef{}
	}
	return objectRef{"Secret", cmp.Or(d.ClientCertificate.Namespace, namespace), d.ClientCertificate.Name}
}

// read reads all that the settings name.
func (f *tlsFollower) read(settings TLS, namespace string) (m tlsMaterial, versions map[objectRef]string, err error) {
	versions = map[objectRef]string{}
	key := func(ref objectRef, key string) string {
		data, version, ok := f.objects[ref].get()
		versions[ref] = version
		switch {
		case !ok:
			err = errors.Join(err, &objectError{ref, errors.New("does not exist")})
		case len(data[key]) == 0:
			err = errors.Join(err, &objectError{ref, fmt.Errorf("the key %s is missing or empty", key)})
		}
		return string(data[key])
	}
	if ref, name := settings.caRef(namespace); ref != (objectRef{}) {
		m.ca = key(ref, name)
	}
	if ref := settings.clientRef(namespace); ref != (objectRef{}) {
		if m.certificate = key(ref, corev1.TLSCertKey); err == nil {
			m.key = key(ref, corev1.TLSPrivateKeyKey)
		}
	}
	if settings.CAFile != "" {
		text, e := os.ReadFile(settings.CAFile)
		if e != nil {
			err = errors.Join(err, &objectError{err: e})
		}
		m.ca = string(text)
	}
	return m, versions, err
}

// follow watches what the settings name, and nothing else.
func (f *tlsFollower) follow(ctx context.Context, settings TLS, namespace string) error {
	ca, _ := settings.caRef(namespace)
	wanted := map[objectRef]bool{ca: true, settings.clientRef(namespace): true}
	delete(wanted, objectRef{})
	for ref, o := range f.objects {
		if !wanted[ref] {
			o.stop()
			delete(f.objects, ref)
		}
	}
	for ref := range wanted {
		if f.objects[ref] != nil {
			continue
		}
		start := followSecret
		if ref.kind == "ConfigMap" {
			start = followConfigMap
		}
		o, err := start(ctx, f, ref)
		if err != nil {
			return &objectError{ref, err}
		}
		if f.objects == nil {
			f.objects = map[objectRef]*followedObject{}
		}
		f.objects[ref] = o
	}
	return f.followFile(ctx, settings.CAFile)
}

func followSecret(ctx context.Context, f *tlsFollower, ref objectRef) (*followedObject, error) {
	return followObject(ctx, f, secretResource, ref, func(s *corev1.Secret) map[string][]byte { return s.Data })
}

func followConfigMap(ctx context.Context, f *tlsFollower, ref objectRef) (*followedObject, error) {
	return followObject(ctx, f, corev1.SchemeGroupVersion.WithResource("configmaps"), ref, configMapData)
}

func configMapData(c *corev1.ConfigMap) map[string][]byte {
	data := make(map[string][]byte, len(c.Data)+len(c.BinaryData))
	for key, text := range c.Data {
		data[key] = []byte(text)
	}
	for key, text := range c.BinaryData {
		data[key] = text
	}
	return data
}

func followObject[T k8swatch.Object](ctx context.Context, f *tlsFollower, gvr schema.GroupVersionResource, ref objectRef, data func(T) map[string][]byte) (*followedObject, error) {
	single, err := k8swatch.NewSingle(f.live.opts.Source, gvr, ref.namespace, ref.name,
		&k8swatch.SingleOptions[T]{Logger: f.live.log, OnChange: func(context.Context, k8swatch.SingleChange[T]) error {
			f.live.wakePods()
			return nil
		}})
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	f.wg.Go(func() { _ = single.Run(ctx) }) // ErrStarted alone
	return &followedObject{stop: stop, state: single.State, get: func() (map[string][]byte, string, bool) {
		obj, ok := single.Get()
		if !ok {
			return nil, "", false
		}
		return data(obj), obj.GetResourceVersion(), true
	}}, nil
}

// followFile watches the folder of a file, as FollowFile does.
func (f *tlsFollower) followFile(ctx context.Context, file string) error {
	if file == f.file {
		return nil
	}
	if f.stopFile != nil {
		f.stopFile()
	}
	f.file, f.stopFile = "", nil
	if file == "" {
		return nil
	}
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return &objectError{err: err}
	}
	if err := watcher.Add(filepath.Dir(file)); err != nil {
		return errors.Join(&objectError{err: fmt.Errorf("folder of caFile: %w", err)}, watcher.Close())
	}
	ctx, f.stopFile = context.WithCancel(ctx)
	f.file = file
	f.wg.Go(func() {
		defer watcher.Close()
		settled := time.NewTimer(settingsSettle)
		defer settled.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-watcher.Events:
				settled.Reset(settingsSettle)
			case err := <-watcher.Errors:
				f.live.log.Warn("watching the file of CAs", "file", file, "error", err)
				settled.Reset(settingsSettle)
			case <-settled.C:
				f.live.wakePods()
			}
		}
	})
	return nil
}

// end stops everything and waits.
func (f *tlsFollower) end() {
	for _, o := range f.objects {
		o.stop()
	}
	if f.stopFile != nil {
		f.stopFile()
	}
	f.wg.Wait()
}
