package discover

import (
	"fmt"
	"os"
	"strings"
)

// ownNamespaceFile is the file in which Kubernetes gives each container its namespace.
const ownNamespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// OwnNamespace returns the namespace of this process: the environment variable POD_NAMESPACE,
// or else the namespace of its service account. It returns an error if neither is there.
func OwnNamespace(getenv func(string) string) (string, error) {
	return ownNamespace(getenv, ownNamespaceFile)
}

func ownNamespace(getenv func(string) string, file string) (string, error) {
	if namespace := strings.TrimSpace(getenv("POD_NAMESPACE")); namespace != "" {
		return namespace, nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("POD_NAMESPACE is not set, and there is no service account: %w", err)
	}
	namespace := strings.TrimSpace(string(data))
	if namespace == "" {
		return "", fmt.Errorf("POD_NAMESPACE is not set, and %s is empty", file)
	}
	return namespace, nil
}
