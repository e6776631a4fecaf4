package main

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFlagsAreChecked: each wrong flag is one line that names the flag, the value and the
// form that is wanted, and nothing else is printed.
func TestFlagsAreChecked(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	const (
		missing = ": a value is missing: give one, or leave the flag out"
		address = ": want address:port with a port from 1 to 65535, such as :8080 or 127.0.0.1:8080"
		debug   = ": want host:port with a port from 0 to 65535, such as 127.0.0.1:9090, or unix:/path"
		label   = ": want the name of a namespace: a-z, 0-9 and -, 63 characters at most"
	)
	for want, args := range map[string][]string{
		"-settings is required, and nothing else than flags; -h lists them":    {"-test"},
		"flag provided but not defined: -nonsense; -h lists all flags":         {"-nonsense"},
		`invalid boolean value "x" for -test: parse error; -h lists all flags`: {"-test=x"},
		`-settings ""` + missing:                                           {"-settings", ""},
		`-local ""` + missing:                                              {"-local="},
		`-manifests "/no/such": want a folder that exists`:                 {"-manifests", "/no/such"},
		`-local "` + file + `": want a folder, and this is a file`:         {"-local", file},
		`-kubeconfig "/no/such": want a file that exists`:                  {"-kubeconfig", "/no/such"},
		`-namespace "NO SUCH"` + label:                                     {"-namespace", "NO SUCH"},
		`-http-addr "8080"` + address:                                      {"-http-addr", "8080"},
		`-http-addr ":0"` + address:                                        {"-http-addr", ":0"},
		`-debug-addr "9090"` + debug:                                       {"-debug-addr", "9090"},
		`-debug-addr "unix:x"` + debug:                                     {"-debug-addr", "unix:x"},
		`-endpoint-socket "x": want a path that begins with /`:             {"-endpoint-socket", "x"},
		"-http-addr \"x\"" + address + "\nerror: -namespace \"X\"" + label: {"-namespace", "X", "-http-addr", "x"},
	} {
		var stderr strings.Builder
		if _, err := parseFlags(args, &stderr); err == nil || err.Error() != want || stderr.Len() > 0 {
			t.Errorf("got %v, want %s; printed %s", err, want, stderr.String())
		}
	}
	var stderr strings.Builder
	if _, err := parseFlags([]string{"-h"}, &stderr); !errors.Is(err, flag.ErrHelp) || !strings.Contains(stderr.String(), "-manifests folder") {
		t.Errorf("%v: %s", err, stderr.String())
	}
}

// TestFlagsThatAreRight: templates get what HAProxy can listen on.
func TestFlagsThatAreRight(t *testing.T) {
	for _, bind := range []string{":80", "*:80", "[::]:80", ":::80", "ipv4@:80", ":80,:81", ":8000-8010", "unix@/run/x.sock", "/run/x.sock", "fd@3"} {
		if _, err := parseFlags([]string{"-settings", "x", "-test", "-http-addr", bind}, &strings.Builder{}); err != nil {
			t.Error(err)
		}
	}
}
