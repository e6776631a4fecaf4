package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
	netv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const (
	apiHost         = subnet + "1"
	apiPort         = "6443"
	apiToken        = "e2e-token"
	watcherToken    = "watcher-token" // of a user that may do nothing by itself
	className       = "haptic"
	classController = "haptic.hapticsdk.dev/ingress"
)

// cluster is etcd and a kube-apiserver: all of Kubernetes that an ingress
// controller speaks to. No other controller runs, so a namespace that is
// deleted stays, and EndpointSlices are what the tests write.
type cluster struct {
	dir        string
	etcd, api  *process
	kubeconfig string
	config     *rest.Config
	client     *kubernetes.Clientset
}

func startCluster(dir string) (*cluster, error) {
	c := &cluster{dir: dir, kubeconfig: filepath.Join(dir, "kubeconfig")}
	data := filepath.Join(dir, "etcd")
	if err := os.MkdirAll(data, 0o700); err != nil {
		return nil, err
	}
	// The tests measure the controller, not how fast this disk syncs.
	if err := unix.Mount("tmpfs", data, "tmpfs", 0, "size=1g"); err != nil {
		return nil, fmt.Errorf("mounting a tmpfs for etcd: %w", err)
	}
	if err := c.writeFiles(); err != nil {
		return nil, err
	}
	url := "http://127.0.0.1:2379"
	var err error
	c.etcd, err = startProcess("etcd", nil, binary("etcd"), "--data-dir", data, "--log-level", "warn",
		"--listen-client-urls", url, "--advertise-client-urls", url,
		"--listen-peer-urls", "http://127.0.0.1:2380", "--quota-backend-bytes", "2147483648")
	if err != nil {
		return nil, err
	}
	// The API server gives up where etcd lets it wait.
	if err := poll(context.Background(), startTime, c.etcdAnswers); err != nil {
		c.stop()
		return nil, err
	}
	c.config, err = clientcmd.BuildConfigFromFlags("", c.kubeconfig)
	if err != nil {
		return nil, err
	}
	c.config.QPS = -1 // no client-side limit: bursts are the point
	c.config.ContentType = "application/vnd.kubernetes.protobuf"
	c.client, err = kubernetes.NewForConfig(c.config)
	if err != nil {
		return nil, err
	}
	if err := c.startAPI(); err != nil {
		c.stop()
		return nil, err
	}
	return c, c.createClass(context.Background())
}

// createClass makes the class of the controller, not the default one.
func (c *cluster) createClass(ctx context.Context) error {
	class := &netv1.IngressClass{ObjectMeta: metav1.ObjectMeta{Name: className},
		Spec: netv1.IngressClassSpec{Controller: classController}}
	_, err := c.client.NetworkingV1().IngressClasses().Create(ctx, class, metav1.CreateOptions{})
	return err
}

// writeFiles makes the keys, the token and the kubeconfig.
func (c *cluster) writeFiles() error {
	ca, err := newAuthority()
	if err != nil {
		return err
	}
	serving, err := ca.issue(apiHost)
	if err != nil {
		return err
	}
	kubeconfig, err := clientcmd.Write(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"e2e": {
			Server: "https://" + apiHost + ":" + apiPort, CertificateAuthorityData: ca.pem()}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"e2e": {Token: apiToken}},
		Contexts:       map[string]*clientcmdapi.Context{"e2e": {Cluster: "e2e", AuthInfo: "e2e"}},
		CurrentContext: "e2e",
	})
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{
		"tls.crt": serving.cert, "tls.key": serving.key, "kubeconfig": kubeconfig,
		"tokens": []byte(apiToken + `,e2e,1,"system:masters"` + "\n" + watcherToken + ",watcher,2\n"),
	} {
		if err := os.WriteFile(filepath.Join(c.dir, name), content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// startAPI starts the API server, the first time or again with the same port
// and data, and returns when it is ready.
func (c *cluster) startAPI() error {
	file := func(name string) string { return filepath.Join(c.dir, name) }
	var err error
	c.api, err = startProcess("kube-apiserver", nil, binary("kube-apiserver"),
		"--etcd-servers=http://127.0.0.1:2379",
		"--bind-address="+apiHost, "--advertise-address="+apiHost, "--secure-port="+apiPort,
		"--tls-cert-file="+file("tls.crt"), "--tls-private-key-file="+file("tls.key"), "--cert-dir="+c.dir,
		"--token-auth-file="+file("tokens"), "--authorization-mode=RBAC", "--anonymous-auth=false",
		"--service-account-issuer=https://e2e", "--service-account-key-file="+file("tls.key"),
		"--service-account-signing-key-file="+file("tls.key"), "--disable-admission-plugins=ServiceAccount",
		"--service-cluster-ip-range=10.96.0.0/16", "--endpoint-reconciler-type=none",
		"--enable-priority-and-fairness=false", "--max-requests-inflight=3000", "--max-mutating-requests-inflight=3000",
		"--profiling=false", "--v=0")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	return poll(ctx, startTime, func() error {
		if err := errors.Join(c.etcd.ended(), c.api.ended()); err != nil {
			cancel()
			return err
		}
		return c.client.Discovery().RESTClient().Get().AbsPath("/readyz").Timeout(pageTime).Do(ctx).Error()
	})
}

// startTime is how long etcd or the API server may take to start on a machine
// that has much else to do.
const startTime = 3 * time.Minute

// etcdAnswers asks etcd for something.
func (c *cluster) etcdAnswers() error {
	if err := c.etcd.ended(); err != nil {
		return err
	}
	return askEtcd(context.Background(), "range", map[string]any{"key": []byte("none")}, nil)
}

func (c *cluster) stop() {
	for _, p := range []*process{c.api, c.etcd} {
		if p != nil {
			p.kill()
		}
	}
	if c.client != nil {
		if rc, ok := c.client.RESTClient().(*rest.RESTClient); ok {
			utilnet.CloseIdleConnectionsFor(rc.Client.Transport)
		}
	}
}
