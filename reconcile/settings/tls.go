package settings

import (
	"cmp"

	"github.com/hapticsdk/haptic/reconcile/discover"
)

// TLS says how to check https to the Dataplane APIs. The zero value means Go's defaults: the
// CAs of the system, and the pod's address as the name.
type TLS struct {
	CAFile             string    `json:"caFile,omitempty" doc:"PEM file of the CAs to trust, on the machine of the controller. Empty, with the other two: those of the system." is:"folder"`
	CASecret           KeyRef    `json:"caSecretRef,omitzero" doc:"These CAs in a Secret."`
	CAConfigMap        KeyRef    `json:"caConfigMapRef,omitzero" doc:"These CAs in a ConfigMap."`
	ServerName         string    `json:"serverName,omitempty" doc:"The name that must stand in the certificate. Empty: the address of the pod, which few certificates have." is:"host"`
	ClientCertificate  SecretRef `json:"clientCertificateSecretRef,omitzero" doc:"The Secret with tls.crt and tls.key, for Dataplane APIs that ask for a certificate."`
	InsecureSkipVerify bool      `json:"insecureSkipVerify,omitempty" doc:"Trust any certificate. All who are on the way to a pod can then read the password and change the configuration: for tests alone."`
}

// KeyRef names a key of a Secret or of a ConfigMap.
type KeyRef struct {
	Name      string `json:"name" doc:"Its name." required:"true" is:"name"`
	Namespace string `json:"namespace,omitempty" doc:"Empty: that of the controller." is:"name"`
	Key       string `json:"key,omitempty" doc:"Empty: ca.crt." is:"key"`
}

// discovery returns the TLS of a follower, for a controller in a namespace.
func (d TLS) discovery(namespace string) discover.TLS {
	object := func(in, name string) string {
		if name == "" {
			return ""
		}
		return cmp.Or(in, namespace) + "/" + name
	}
	return discover.TLS{
		CAFile: d.CAFile, CASecret: object(d.CASecret.Namespace, d.CASecret.Name), CAConfigMap: object(d.CAConfigMap.Namespace, d.CAConfigMap.Name),
		CAKey: cmp.Or(d.CASecret.Key, d.CAConfigMap.Key), ServerName: d.ServerName,
		ClientCertificate: object(d.ClientCertificate.Namespace, d.ClientCertificate.Name), InsecureSkipVerify: d.InsecureSkipVerify,
	}
}

// check reports contradictions.
func (d TLS) check(scheme string, fail func(path, format string, args ...any)) {
	if d == (TLS{}) {
		return
	}
	if scheme == "http" {
		fail("", "no effect with dataplane.scheme: http: set https, or remove tls")
	}
	given := 0
	for _, is := range []bool{d.CAFile != "", d.CASecret != (KeyRef{}), d.CAConfigMap != (KeyRef{})} {
		if is {
			given++
		}
	}
	if given > 1 {
		fail("", "%d sources of CAs: keep one of caFile, caSecretRef and caConfigMapRef", given)
	}
	if d.InsecureSkipVerify && (given > 0 || d.ServerName != "") {
		fail(".insecureSkipVerify", "with it, the controller checks neither the CA nor serverName: remove those, or insecureSkipVerify")
	}
}
