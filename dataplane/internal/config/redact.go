package config

import (
	"slices"
	"strings"

	"github.com/hapticsdk/haptic/internal/haproxycfg"
)

// Secret stands for a value that never prints.
const Secret = haproxycfg.Secret

// RedactWords is [haproxycfg.RedactWords].
func RedactWords(words []string) []string { return haproxycfg.RedactWords(words) }

// RedactRaw is [haproxycfg.Redact].
func RedactRaw(raw string) string { return haproxycfg.Redact(raw) }

// RedactQuoted is [haproxycfg.RedactQuoted].
func RedactQuoted(message, line string) string { return haproxycfg.RedactQuoted(message, line) }

// RedactValue hides a value whose field or place speaks of secrets.
func RedactValue(value string, names ...string) string {
	if value != "" && slices.ContainsFunc(names, SpeaksOfSecrets) {
		return Secret
	}
	return value
}

// SpeaksOfSecrets is [haproxycfg.NamesSecret] for names of files and fields, which say less:
// the entries of "auth.map" are no less secret than those of "tokens.map".
func SpeaksOfSecrets(name string) bool {
	return haproxycfg.NamesSecret(name) || strings.Contains(strings.ToLower(name), "auth")
}
