package config

import (
	"slices"
	"strings"

	"github.com/hapticsdk/haptic/internal/haproxycfg"
)

// RedactValue hides a value whose field or place speaks of secrets.
func RedactValue(value string, names ...string) string {
	if value != "" && slices.ContainsFunc(names, SpeaksOfSecrets) {
		return haproxycfg.Secret
	}
	return value
}

// SpeaksOfSecrets is [haproxycfg.NamesSecret] for names of files and fields, which say less:
// the entries of "auth.map" are no less secret than those of "tokens.map".
func SpeaksOfSecrets(name string) bool {
	return haproxycfg.NamesSecret(name) || strings.Contains(strings.ToLower(name), "auth")
}
