package haproxycfg

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNormaliseOrder(t *testing.T) {
	for text, line := range map[string]int{ // 0: taken
		"backend b\n  option httpchk\n  option tcp-check\n":                                               3,
		"backend b\n  option tcp-check\n  option httpchk\n":                                               0,
		"frontend f\n  option httplog\n  log-format x\n":                                                  3,
		"frontend f\n  log-format x\n  option httplog\n":                                                  0,
		"frontend f\n  option httpclose\n  option http-server-close\n":                                    0,
		"frontend f\n  option http-server-close\n  option httpclose\n":                                    3,
		"frontend f\n  errorfiles x\n  errorfile 503 /a\n":                                                2,
		"frontend f\n  errorfile 503 /a\n  errorfiles x\n":                                                0,
		"frontend f\n  errorloc 503 http://a\n  errorfile 503 /b\n":                                       2,
		"backend b\n  server-template t 3 a:80\n  server s 192.0.2.1:80\n":                                2,
		"backend b\n  server s 192.0.2.1:80\n  server t 192.0.2.1:80\n":                                   0,
		"frontend f\n  capture request header Host len 10\n  declare capture request len 10\n":            2,
		"global\n  ssl-default-bind-options no-sslv3\n  ssl-default-bind-options no-tlsv10\n":             3,
		"global\n  setenv A 1\n  unsetenv A\n  setenv A 2\n":                                              3,
		"global\n  setenv A 1\n  setenv B 2\n  node \"$A\"\n":                                             0,
		"global\n  node \"$A\"\n  setenv A 1\n":                                                           3,
		"global\n  node '$A'\n  setenv A 1\n":                                                             0,
		"defaults\n  errorfile 503 /a\nfrontend f\n  bind :80\ndefaults\n  errorfile 503 /b\nbackend b\n": 0,
	} {
		_, err := Normalise(text)
		var r *Refusal
		if line == 0 {
			require.NoError(t, err, text)
			continue
		}
		require.True(t, errors.As(err, &r), "%s%v", text, err)
		require.Equal(t, line, r.Line, "%s%v", text, err)
	}
}
