package k8swatch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/connrotation"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/hapticsdk/haptic/k8swatch/internal/memapi"
)

// ClusterOptions of [NewCluster]. The zero value uses the service account of a pod.
type ClusterOptions struct {
	Kubeconfig string // file; "" means in-cluster, or $KUBECONFIG and ~/.kube/config outside a cluster
	Context    string // of the kubeconfig; "" means its current one

	// Scheme has Go types besides those of client-go, such as those of custom
	// resources. If nil, there are none.
	Scheme *runtime.Scheme

	// QPS and Burst limit the requests of this process. Zero means 50 and 100. A watch
	// counts once, when it begins. client-go's own default of 5 would make a controller
	// with twenty watches start slowly. [Cluster.Fetch] does not count: a [Cached] and
	// [OnlyNamed] bound how many run at a time.
	QPS   float32
	Burst int

	UserAgent string // "" means client-go's default

	// ReadIdleTimeout and PingTimeout find half-open connections. After ReadIdleTimeout
	// without a byte the client sends an HTTP/2 ping and waits PingTimeout for the
	// answer. Zero means 5 s and 3 s.
	ReadIdleTimeout time.Duration
	PingTimeout     time.Duration
}

// Cluster is a Kubernetes API server as a [MetadataSource].
type Cluster struct {
	config    *rest.Config
	http      *http.Client
	dialer    *connrotation.Dialer
	closed    atomic.Bool
	clientset kubernetes.Interface
	dynamic   dynamic.Interface
	fetches   dynamic.Interface // without limits
	fetchers  sync.Map          // *rest.RESTClient by resource, without limits
	metadata  metadata.Interface
	scheme    *runtime.Scheme
}

var _ MetadataSource = (*Cluster)(nil)

// ErrNoCluster means that no configuration names a cluster.
var ErrNoCluster = errors.New("no cluster: not in a pod, and neither ClusterOptions.Kubeconfig, $KUBECONFIG nor ~/.kube/config names one")

// NewCluster reads the configuration and makes the clients. It does not connect. Its
// error wraps [ErrNoCluster] if there is no configuration.
func NewCluster(opts *ClusterOptions) (*Cluster, error) {
	if opts == nil {
		opts = &ClusterOptions{}
	}
	config, err := loadConfig(opts)
	if err != nil && opts.Kubeconfig != "" {
		return nil, fmt.Errorf("k8swatch: ClusterOptions.Kubeconfig %q: want a file that says how to reach a cluster: %w", opts.Kubeconfig, err)
	}
	if clientcmd.IsEmptyConfig(err) {
		return nil, fmt.Errorf("k8swatch: %w", ErrNoCluster)
	}
	if err != nil {
		return nil, fmt.Errorf("k8swatch: cluster configuration: %w", err)
	}
	config.QPS, config.Burst = opts.QPS, opts.Burst
	if config.QPS == 0 {
		config.QPS = 50
	}
	if config.Burst == 0 {
		config.Burst = 100
	}
	// One limiter serves all clients; otherwise each would have its own.
	config.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(config.QPS, config.Burst)
	if opts.UserAgent != "" {
		config.UserAgent = opts.UserAgent
	}
	c := &Cluster{config: config, scheme: opts.Scheme}
	c.dialer = connrotation.NewDialer((&net.Dialer{Timeout: 3 * time.Second, KeepAlive: 30 * time.Second}).DialContext)
	config.Dial = c.dial
	setTransport(config, opts)
	if c.http, err = rest.HTTPClientFor(config); err != nil {
		return nil, fmt.Errorf("k8swatch: %s: %w", config.Host, err)
	}
	if c.clientset, err = kubernetes.NewForConfigAndClient(protobuf(config), c.http); err != nil {
		return nil, fmt.Errorf("k8swatch: %s: %w", config.Host, err)
	}
	if c.dynamic, err = dynamic.NewForConfigAndClient(config, c.http); err != nil {
		return nil, fmt.Errorf("k8swatch: %s: %w", config.Host, err)
	}
	if c.fetches, err = dynamic.NewForConfigAndClient(unlimited(config), c.http); err != nil {
		return nil, fmt.Errorf("k8swatch: %s: %w", config.Host, err)
	}
	if c.metadata, err = metadata.NewForConfigAndClient(config, c.http); err != nil {
		return nil, fmt.Errorf("k8swatch: %s: %w", config.Host, err)
	}
	return c, nil
}

func loadConfig(opts *ClusterOptions) (*rest.Config, error) {
	if opts.Kubeconfig == "" && opts.Context == "" {
		config, err := rest.InClusterConfig()
		if err != rest.ErrNotInCluster { //nolint:errorlint // returned as it is
			return config, err
		}
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = opts.Kubeconfig
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: opts.Context}).ClientConfig()
}

// setTransport sets time-outs and pings. client-go reads ping times only from the
// environment, 30 and 15 s by default; the hook sets them here.
func setTransport(config *rest.Config, opts *ClusterOptions) {
	idle, ping := opts.ReadIdleTimeout, opts.PingTimeout
	if idle == 0 {
		idle = 5 * time.Second
	}
	if ping == 0 {
		ping = 3 * time.Second
	}
	if config.Proxy == nil {
		// client-go shares transports between configurations, except those with a proxy
		// function. This transport is changed, so it must not be shared.
		config.Proxy = http.ProxyFromEnvironment
	}
	config.Wrap(func(rt http.RoundTripper) http.RoundTripper {
		if t, ok := rt.(*http.Transport); ok {
			// A handshake that began while packets were lost would delay the reconnection.
			t.TLSHandshakeTimeout = 5 * time.Second
			t.HTTP2 = &http.HTTP2Config{SendPingTimeout: idle, PingTimeout: ping}
		}
		return rt
	})
}

// unlimited returns the configuration for requests that are bounded elsewhere.
func unlimited(config *rest.Config) *rest.Config {
	c := rest.CopyConfig(config)
	c.RateLimiter, c.QPS = nil, -1
	return c
}

// protobuf returns the configuration for the kinds of the scheme.
func protobuf(config *rest.Config) *rest.Config {
	c := rest.CopyConfig(config)
	c.ContentType = runtime.ContentTypeProtobuf
	c.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	return c
}

func (c *Cluster) Scheme() *runtime.Scheme { return c.scheme }

// RESTConfig returns a copy of the configuration, for other clients.
func (c *Cluster) RESTConfig() *rest.Config { return rest.CopyConfig(c.config) }

// Clientset returns a client for the built-in resources, for leader election and
// for writing status. It shares connections and limits with the watchers.
func (c *Cluster) Clientset() kubernetes.Interface { return c.clientset }

// dial opens a connection that Close will close. If Close was called already, it closes
// the connection itself: a transport dials on for a request that was given up.
func (c *Cluster) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := c.dialer.DialContext(ctx, network, address)
	if err == nil && c.closed.Load() {
		_ = conn.Close()
		return nil, net.ErrClosed
	}
	return conn, err
}

// Close closes all connections and prevents new ones. Call it when nothing uses the
// cluster any more.
func (c *Cluster) Close() {
	c.closed.Store(true)
	c.http.CloseIdleConnections()
	c.dialer.CloseAll()
}

func (c *Cluster) ListWatch(gvr schema.GroupVersionResource, namespace string, tweak func(*metav1.ListOptions)) (cache.ListerWatcherWithContext, error) {
	if tweak == nil {
		tweak = func(*metav1.ListOptions) {}
	}
	if TypeOf(gvr) == nil {
		return c.untyped(gvr, namespace, tweak), nil
	}
	client, err := c.typed(gvr)
	if err != nil {
		return nil, err
	}
	request := func(opts *metav1.ListOptions) *rest.Request {
		tweak(opts)
		return client.Get().NamespaceIfScoped(namespace, namespace != "").
			Resource(gvr.Resource).VersionedParams(opts, scheme.ParameterCodec)
	}
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
			return request(&opts).Do(ctx).Get()
		},
		WatchFuncWithContext: func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
			opts.Watch = true
			return request(&opts).Watch(ctx)
		},
	}, nil
}

// typed returns a client for a resource of the scheme.
func (c *Cluster) typed(gvr schema.GroupVersionResource) (*rest.RESTClient, error) {
	return typedClient(c.config, gvr, c.http)
}

// fetcher returns a client for fetches of a resource of the scheme.
func (c *Cluster) fetcher(gvr schema.GroupVersionResource) (*rest.RESTClient, error) {
	if known, ok := c.fetchers.Load(gvr); ok {
		return known.(*rest.RESTClient), nil
	}
	client, err := typedClient(unlimited(c.config), gvr, c.http)
	if err == nil {
		c.fetchers.Store(gvr, client)
	}
	return client, err
}

func typedClient(of *rest.Config, gvr schema.GroupVersionResource, over *http.Client) (*rest.RESTClient, error) {
	config := protobuf(of)
	gv := gvr.GroupVersion()
	config.GroupVersion = &gv
	config.APIPath = "/apis"
	if gv.Group == "" {
		config.APIPath = "/api"
	}
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	return rest.RESTClientForConfigAndClient(config, over)
}

func (c *Cluster) untyped(gvr schema.GroupVersionResource, namespace string, tweak func(*metav1.ListOptions)) cache.ListerWatcherWithContext {
	client := dynamic.ResourceInterface(c.dynamic.Resource(gvr))
	if namespace != "" {
		client = c.dynamic.Resource(gvr).Namespace(namespace)
	}
	return listWatchOf(client.List, client.Watch, tweak)
}

// listWatchOf makes a list-watch from the methods of a client.
func listWatchOf[L runtime.Object](
	list func(context.Context, metav1.ListOptions) (L, error),
	watches func(context.Context, metav1.ListOptions) (watch.Interface, error),
	tweak func(*metav1.ListOptions),
) cache.ListerWatcherWithContext {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
			tweak(&opts)
			return list(ctx, opts)
		},
		WatchFuncWithContext: func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
			tweak(&opts)
			return watches(ctx, opts)
		},
	}
}

// MetadataListWatch implements [MetadataSource]. The server sends only the metadata of
// objects, as protobuf.
func (c *Cluster) MetadataListWatch(
	gvr schema.GroupVersionResource,
	namespace string,
	tweak func(*metav1.ListOptions),
) (cache.ListerWatcherWithContext, error) {
	if tweak == nil {
		tweak = func(*metav1.ListOptions) {}
	}
	client := metadata.ResourceInterface(c.metadata.Resource(gvr))
	if namespace != "" {
		client = c.metadata.Resource(gvr).Namespace(namespace)
	}
	return listWatchOf(client.List, client.Watch, tweak), nil
}

func (c *Cluster) Fetch(ctx context.Context, gvr schema.GroupVersionResource, namespace, name string) (Object, error) {
	return c.fetchSince(ctx, gvr, namespace, name, "")
}

// fetchSince is Fetch for an object that is no older than a resource version, which the server has
// in its cache. "" means as it is now.
func (c *Cluster) fetchSince(ctx context.Context, gvr schema.GroupVersionResource, namespace, name, version string) (Object, error) {
	opts := metav1.GetOptions{ResourceVersion: version}
	if TypeOf(gvr) == nil {
		client := dynamic.ResourceInterface(c.fetches.Resource(gvr))
		if namespace != "" {
			client = c.fetches.Resource(gvr).Namespace(namespace)
		}
		return client.Get(ctx, name, opts)
	}
	client, err := c.fetcher(gvr)
	if err != nil {
		return nil, err
	}
	request := client.Get().NamespaceIfScoped(namespace, namespace != "").Resource(gvr.Resource).Name(name)
	obj, err := request.VersionedParams(&opts, scheme.ParameterCodec).Do(ctx).Get()
	if err != nil {
		return nil, err
	}
	o, ok := obj.(Object)
	if !ok {
		return nil, fmt.Errorf("k8swatch: the server sent a %T", obj)
	}
	o.GetObjectKind().SetGroupVersionKind(memapi.KindFor(gvr).GVK)
	return o, nil
}
