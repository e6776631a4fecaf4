package dataplane_test

import (
	"testing"
	"time"

	"github.com/hapticsdk/haptic/dataplane"
)

// TestOptionsAreChecked: each wrong option is named, with the form that is wanted.
func TestOptionsAreChecked(t *testing.T) {
	dir := t.TempDir()
	local := func(o dataplane.LocalOptions) error { _, err := dataplane.NewLocal(o); return err }
	client := func(o dataplane.ClientOptions) error {
		_, err := dataplane.NewClient(dataplane.Endpoint{Name: "edge", URL: "http://127.0.0.1:1"}, &o)
		return err
	}
	for want, err := range map[string]error{
		"local: options: LocalOptions.Dir is empty, no folder for the state: want a path":                 local(dataplane.LocalOptions{}),
		"local: options: LocalOptions.MaxOldWorkers is negative: -1: want 0, for 8, or more":              local(dataplane.LocalOptions{Dir: dir, MaxOldWorkers: -1}),
		"local: options: LocalOptions.StartTimeout is negative: -1s: want 0, for 30s, or more":            local(dataplane.LocalOptions{Dir: dir, StartTimeout: -time.Second}),
		"local: options: LocalOptions.StopTimeout is negative: -1s: want 0, for 1.2s, or more":            local(dataplane.LocalOptions{Dir: dir, StopTimeout: -time.Second}),
		"edge: endpoint: ClientOptions.Timeout is negative: -1s: want 0, for the default, or more":        client(dataplane.ClientOptions{Timeout: -time.Second}),
		"edge: endpoint: ClientOptions.RequestTimeout is negative: -1s: want 0, for the default, or more": client(dataplane.ClientOptions{RequestTimeout: -time.Second}),
		"edge: endpoint: ClientOptions.ReloadTimeout is negative: -1s: want 0, for the default, or more":  client(dataplane.ClientOptions{ReloadTimeout: -time.Second}),
		"edge: endpoint: ClientOptions.Attempts is negative: -1: want 0, for 3, or more":                  client(dataplane.ClientOptions{Attempts: -1}),
	} {
		if err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
