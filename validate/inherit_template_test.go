package validate_test

import (
	"testing"

	"github.com/hapticsdk/haptic/validate"
)

// A server-template makes servers whose names no server line shows.
func TestInheritNotBesideAServerTemplate(t *testing.T) {
	t.Parallel()
	needHAProxy(t)
	const proxy = "defaults\n  mode http\n  timeout connect 1s\n  timeout client 1s\n  timeout server 1s\n" +
		"frontend f\n  bind 127.0.0.1:9999\n  default_backend b\nbackend b\n  server-template web 2 192.0.2.9:80 check\n  server a 192.0.2.1:80 check\n"
	v := &validate.Validator{Timeout: patience}
	if err := v.Validate(t.Context(), text(t, proxy)); err != nil {
		t.Fatal(err)
	}
	if err := v.Validate(t.Context(), text(t, proxy+"  server web1 192.0.2.2:80 check\n")); err == nil {
		t.Error("took a second server web1")
	}
}
