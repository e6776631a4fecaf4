package kit_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/reconcile/kit"
	"github.com/hapticsdk/haptic/reconcile/settings"
)

// program has flags of its own.
func program(out *bytes.Buffer, args ...string) (*kit.Flags, error) {
	f := kit.NewFlags("program", kit.NewLog(out))
	size := f.Int("size", 4, "how many")
	hold := f.Duration("hold", time.Second, "how long")
	f.String("folder", "", "which `folder`")
	f.String("http", ":8080", "where HAProxy listens")
	f.String("namespace", "", "which `namespace`")
	f.String("socket", "", "which socket")
	f.Bool("once", false, "once")
	if err := f.Parse(args); err != nil {
		return f, err
	}
	f.Check("size", *size > 0, "a number above 0")
	f.Check("hold", *hold > 0, "a duration above 0s")
	f.CheckFile("folder", kit.IsFolder(f.Lookup("folder").Value.String()), "a folder that exists")
	f.CheckNamespaces("namespace")
	f.CheckPaths("socket")
	f.CheckBinds(true, "http")
	return f, f.Err()
}

// TestWrongFlags: each wrong flag is one line, all are told, and no usage is printed.
func TestWrongFlags(t *testing.T) {
	dir := t.TempDir()
	token := filepath.Join(dir, "token")
	require.NoError(t, os.WriteFile(token, []byte("c4nary c4nary"), 0o600))
	for args, want := range map[string]string{
		"-sise 3":                           "flag provided but not defined: -sise; -h lists all flags",
		"-size x":                           `-size "x": want a whole number`,
		"-size 0":                           "-size 0: want a number above 0",
		"-hold 5":                           `-hold "5": want a duration, such as 1m30s`,
		"-hold -5s":                         "-hold -5s: want a duration above 0s",
		"-once=x":                           `-once "x": want true or false`,
		"-http=":                            `-http "": a value is missing: give one, or leave the flag out`,
		"-http 80":                          `-http "80": want address:port with a port from 1 to 65535, such as :8080 or 127.0.0.1:8080`,
		"-namespace A":                      `-namespace "A": want the name of a namespace: a-z, 0-9 and -, 63 characters at most`,
		"-socket x":                         `-socket "x": want a path that begins with /`,
		"-folder " + dir + "/no":            `-folder "` + dir + `/no": want a folder that exists (no such file or directory)`,
		"-folder " + token:                  `-folder "` + token + `": want a folder that exists`,
		"-log-level loud":                   `-log-level "loud": want debug, info, warn or error`,
		"-log-format xml":                   `-log-format "xml": want text or json`,
		"-debug-token-file " + token:        `-debug-token-file "` + token + `": ` + token + ": the token is not one word of at least 16 characters: write one, such as openssl rand -hex 16 prints",
		"-metrics-addr 9090":                `-metrics-addr "9090": want host:port with a port from 0 to 65535, such as :9090`,
		"-debug-addr 9090":                  `-debug-addr "9090": want host:port with a port from 0 to 65535, such as 127.0.0.1:6060, or unix:/path`,
		"-debug-addr /run/x":                `-debug-addr "/run/x": want host:port with a port from 0 to 65535, such as 127.0.0.1:6060, or unix:/path`,
		"-debug-addr :6060":                 `-debug-addr ":6060" is not loopback: give -debug-token-file; Prometheus and probes need -metrics-addr only`,
		"-debug-addr 127.0.0.1:9090":        `-debug-addr "127.0.0.1:9090": want another address than -metrics-addr ":9090", which has the same`,
		"-metrics-addr [::]:8080":           `-metrics-addr "[::]:8080": want another address than -http ":8080", which has the same`,
		"-http 127.0.0.1:6060,:6":           `-debug-addr "127.0.0.1:6060": want another address than -http "127.0.0.1:6060,:6", which has the same`,
		"-size 0 -hold x -metrics-addr :-1": `-hold "x": want a duration, such as 1m30s` + "\nerror: -size 0: want a number above 0\nerror: " + `-metrics-addr ":-1": want host:port with a port from 0 to 65535, such as :9090`,
	} {
		t.Run(args, func(t *testing.T) {
			var out bytes.Buffer
			_, err := program(&out, strings.Fields(args)...)
			require.EqualError(t, err, want)
			require.Empty(t, out.String())
			require.Equal(t, 1, kit.ExitCode(kit.NewLog(&out), err))
			require.Equal(t, "error: "+want+"\n", out.String())
		})
	}
}

// TestRightFlags are taken, and the zero values are those of the table in the doc.
func TestRightFlags(t *testing.T) {
	for _, args := range []string{"-metrics-addr= -debug-addr=", "-debug-addr unix:/run/x", "-metrics-addr :0 -debug-addr 127.0.0.1:0", "-http /run/x.sock,unix@y",
		"-metrics-addr 10.0.0.1:9090 -debug-addr 127.0.0.1:9090", "-once -size 3", "-http 10.0.0.1:8000-8010 -metrics-addr 10.0.0.2:8005"} {
		_, err := program(&bytes.Buffer{}, strings.Fields(args)...)
		require.NoError(t, err, args)
	}
	var out bytes.Buffer
	f, err := program(&out)
	require.NoError(t, err)
	require.Equal(t, ":9090 127.0.0.1:6060", f.MetricsAddr+" "+f.DebugAddr)
	require.False(t, f.Given("size"))
	_, err = program(&out, "-h")
	require.ErrorIs(t, err, flag.ErrHelp)
	for _, name := range []string{"-metrics-addr host:port", "-debug-addr host:port", "-debug-token-file file", "-log-level level", "-log-format format", "-size int"} {
		require.Contains(t, out.String(), name)
	}
	require.Zero(t, kit.ExitCode(kit.NewLog(&out), err))
}

// TestSettingsBeatLogFlags: the flags are what settings mean that say no level or format.
func TestSettingsBeatLogFlags(t *testing.T) {
	const nothing = "haproxyConfig: {template: x}\n"
	for _, c := range []struct{ args, logging, want string }{
		{"", "", "info"},
		{"", "logging: {level: debug, format: json}", "debug info {"},
		{"", "logging: {level: error}", ""},
		{"-log-level debug", "", "debug info"},
		{"-log-level debug", "logging: {format: json}", "debug info {"},
		{"-log-level debug", "logging: {level: info}", "info"},
		{"-log-format json", "logging: {level: debug}", "debug info {"},
		{"-log-level error -log-format json", "logging: {level: debug, format: text}", "debug info"},
	} {
		var out bytes.Buffer
		log := kit.NewLog(&out)
		flags := kit.NewFlags("program", log)
		require.NoError(t, flags.Parse(strings.Fields(c.args)))
		with := &settings.ProgramOptions{Logging: settings.Logging{Level: log.Level(), Format: log.Format()}}
		for range 2 { // what is said later is not compared with what was said before
			out.Reset()
			p, err := settings.ParseProgram("s.yaml", []byte(nothing+c.logging), with)
			require.NoError(t, err)
			log.Follow(p.Settings().Logging.Level, p.Settings().Logging.Format)
			log.Debug("debug")
			log.Info("info")
			var got []string
			for _, sign := range []string{"debug", "info", "{"} {
				if strings.Contains(out.String(), sign) {
					got = append(got, sign)
				}
			}
			require.Equal(t, c.want, strings.Join(got, " "), "%+v", c)
			log.Follow("error", "json")
		}
		require.Equal(t, "error json", flags.Values()["log-level"]+" "+flags.Values()["log-format"])
	}
}
