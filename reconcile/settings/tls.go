package settings

import (
	"cmp"

	"github.com/hapticsdk/haptic/reconcile/discover"
)

// TLS says how to check https to the Dataplane APIs. The zero value means Go's defaults: the
// CAs of the system, and the pod's address as the name.
type TLS struct {
	CAFile     string `json:"caFile,omitempty" doc:"PEM file of the CAs to trust, on the machine of the controller. Empty, with caSecretRef: those of the system." is:"folder"`
	CASecret   KeyRef `json:"caSecretRef,omitzero" doc:"These CAs in a Secret."`
	ServerName string `json:"serverName,omitempty" doc:"The name that must stand in the certificate. Empty: the address of the pod, which few certificates have." is:"host"`
}

// KeyRef names a key of a Secret.
type KeyRef struct {
	Name      string `json:"name" doc:"Its name." required:"true" is:"name"`
	Namespace string `json:"namespace,omitempty" doc:"Empty: that of the controller." is:"name"`
	Key       string `json:"key,omitempty" doc:"Empty: ca.crt." is:"key"`
}

// discovery returns the TLS of a follower, for a controller in a namespace.
func (d TLS) discovery(namespace string) discover.TLS {
	t := discover.TLS{CAFile: d.CAFile, CAKey: d.CASecret.Key, ServerName: d.ServerName}
	if d.CASecret.Name != "" {
		t.CASecret = cmp.Or(d.CASecret.Namespace, namespace) + "/" + d.CASecret.Name
	}
	return t
}

// check reports contradictions.
func (d TLS) check(scheme string, fail func(path, format string, args ...any)) {
	if d == (TLS{}) {
		return
	}
	if scheme == "http" {
		fail("", "no effect with dataplane.scheme: http: set https, or remove tls")
	}
	if d.CAFile != "" && d.CASecret != (KeyRef{}) {
		fail("", "two sources of CAs: keep one of caFile and caSecretRef")
	}
}
