package kit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/observe"
)

// SourceFlags say where resources come from: a cluster, or a folder of manifests.
type SourceFlags struct {
	Manifests  string // "": a cluster
	Kubeconfig string
}

// Declare declares -manifests and -kubeconfig.
func (s *SourceFlags) Declare(f *Flags) {
	f.StringVar(&s.Manifests, "manifests", "", "watch a `folder` of manifests in place of a cluster")
	f.StringVar(&s.Kubeconfig, "kubeconfig", "", "`file` that says how to reach the cluster; empty: the cluster that this runs in or, outside of one, "+
		"$KUBECONFIG and ~/.kube/config")
}

// Check checks the values. The folder of manifests may be missing if copies says that an
// earlier process kept copies of them.
func (s *SourceFlags) Check(f *Flags, copies bool) {
	_, err := clientcmd.LoadFromFile(s.Kubeconfig)
	f.CheckFile("kubeconfig", err == nil, "a file that says how to reach a cluster")
	f.CheckFile("manifests", IsFolder(s.Manifests) || copies && !IsFile(s.Manifests), "a folder that exists")
}

// SourceOptions of [SourceFlags.Open]. The zero value is fine.
type SourceOptions struct {
	// State is the folder of the HAProxy on this host. Its subfolder manifests gets copies of
	// the last good manifests. Empty means no copies.
	State string

	Once bool // the program ends by itself, and needs no copies

	Scheme *runtime.Scheme // Go types besides those of client-go; if nil, there are none
}

// Source is a cluster, or a folder of manifests in its place.
type Source struct {
	Source  k8swatch.Source   // either of the two
	Cluster *k8swatch.Cluster // nil: a folder
	Folder  *k8swatch.Folder  // nil: a cluster

	name      string
	waiting   atomic.Bool
	recorders []record.EventBroadcaster
}

// Open opens the folder or the cluster. Its errors name the flag that helps. Call Close at
// the end.
func (s *SourceFlags) Open(opts SourceOptions) (*Source, error) {
	if s.Manifests != "" {
		folderOpts := &k8swatch.FolderOptions{Scheme: opts.Scheme}
		if opts.State != "" && !opts.Once {
			folderOpts.LastGood = filepath.Join(opts.State, "manifests")
		}
		folder, err := k8swatch.NewFolder(s.Manifests, folderOpts)
		return &Source{Source: folder, Folder: folder, name: "manifests in " + s.Manifests}, OfFlag("manifests", err)
	}
	cluster, err := k8swatch.NewCluster(&k8swatch.ClusterOptions{Kubeconfig: s.Kubeconfig, Scheme: opts.Scheme})
	if errors.Is(err, k8swatch.ErrNoCluster) {
		err = fmt.Errorf("%w; give -kubeconfig FILE, or -manifests DIR", err)
	}
	if err != nil {
		return nil, err
	}
	return &Source{Source: cluster, Cluster: cluster, name: cluster.RESTConfig().Host}, nil
}

// String returns "manifests in DIR", or the URL of the cluster.
func (s *Source) String() string { return s.name }

// Watch adds the part that follows a folder. A cluster needs none.
func (s *Source) Watch(g *Group) {
	if s.Folder != nil {
		g.Go("manifests", s.Folder.Run)
	}
}

// Observe adds the check of a folder. A cluster needs none.
func (s *Source) Observe(h *observe.Health) {
	if s.Folder != nil {
		h.Check("manifests", observe.Reported, s.Check)
	}
}

// WaitForKnown is [k8swatch.Folder.WaitForKnown], for a program that finds something already
// deployed. Check reports the wait. It returns at once for a cluster.
func (s *Source) WaitForKnown(ctx context.Context) error {
	if s.Folder == nil {
		return nil
	}
	s.waiting.Store(true)
	defer s.waiting.Store(false)
	return s.Folder.WaitForKnown(ctx)
}

// Check returns the problems of a folder; nil for a cluster.
func (s *Source) Check() error {
	if s.Folder == nil {
		return nil
	}
	errs := s.Folder.Errors()
	if s.waiting.Load() && slices.ContainsFunc(errs, isUnknown) {
		errs = append(errs, errors.New("all manifests: the controller deploys nothing until they are correct; what is deployed stays in use"))
	}
	return errors.Join(errs...)
}

// isUnknown reports whether a manifest is broken and nothing is known of it. A wait without one
// is only for watches, and ends by itself.
func isUnknown(err error) bool {
	var m *k8swatch.ManifestError
	return errors.As(err, &m) && m.Effect == k8swatch.NoneKnown
}

// Fleet returns a word that differs between two clusters and between two lists of words. The
// instances of one controller and of its replicas share it.
func (s *Source) Fleet(words ...string) (string, error) {
	hash := sha256.New()
	if s.Cluster != nil {
		cluster := s.Cluster.RESTConfig()
		if err := rest.LoadTLSFiles(cluster); err != nil {
			return "", err
		}
		fmt.Fprintf(hash, "%q ", cluster.CAData)
	}
	fmt.Fprintf(hash, "%q", words)
	return hex.EncodeToString(hash.Sum(nil)[:4]), nil
}

// Recorder returns a recorder of Kubernetes Events: "kubectl describe" then shows the
// problems of an object. component is the source that the Events name. The account needs the
// verbs create and patch on events in all watched namespaces. Without them, the log says so
// and nothing else fails. The recorder is nil for a folder.
func (s *Source) Recorder(component string, log *slog.Logger) reconcile.Recorder {
	if s.Cluster == nil {
		return nil
	}
	ctx := klog.NewContext(context.Background(), logr.FromSlogHandler(log.Handler()))
	// The loop bounds the rate: a message that the broadcaster drops would be lost.
	aboveOurs := record.CorrelatorOptions{BurstSize: 1000, QPS: 10}
	broadcaster := record.NewBroadcaster(record.WithContext(ctx), record.WithCorrelatorOptions(aboveOurs))
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: s.Cluster.Clientset().CoreV1().Events("")})
	s.recorders = append(s.recorders, broadcaster)
	return broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: component})
}

// Close ends the recorders. A nil Source has none.
func (s *Source) Close() {
	if s == nil {
		return
	}
	for _, r := range s.recorders {
		r.Shutdown()
	}
}

// SyncTimeout bounds the wait for a cluster that does not answer.
const SyncTimeout = 10 * time.Second

// AwaitSync waits until all watchers are synced. With once, an obstacle is an error, after
// [SyncTimeout] at the latest. Otherwise the watchers try again until ctx ends, and the checks
// of [observe.Observer] report the obstacle.
func AwaitSync(ctx context.Context, watchers *k8swatch.Group, once bool) error {
	for {
		bounded, cancel := context.WithTimeout(ctx, SyncTimeout)
		_, err := watchers.WaitForSync(bounded)
		cancel()
		if err == nil || once || ctx.Err() != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(2 * time.Second):
		}
	}
}
