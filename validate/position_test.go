package validate_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/validate"
)

// TestPositions: what is wrong has a line in the configuration, or in the file
// that a line of it names.
func TestPositions(t *testing.T) {
	t.Parallel()
	needHAProxy(t)
	const head = "global\ndefaults\n    mode http\n    timeout connect 1s\n    timeout client 1s\n    timeout server 1s\nfrontend f\n"
	cert := dataplane.File{Kind: dataplane.Certificate, Name: "x.pem", Content: []byte("none")}
	list := func(content string) dataplane.File {
		return dataplane.File{Kind: dataplane.CRTList, Name: "list.txt", Content: []byte(content)}
	}
	const bind = head + "    bind :8443 ssl crt-list /etc/haproxy/general/list.txt\n"
	for name, c := range map[string]struct {
		text  string
		files []dataplane.File
		want  []dataplane.Position
	}{
		"keyword":       {head + "    bind :80\n    foo bar\n    baz\n", nil, []dataplane.Position{{Line: 9}, {Line: 10}}},
		"argument":      {head + "    bind :80\n    http-request deny status x\n", nil, []dataplane.Position{{Line: 9}}},
		"certificate":   {bind, []dataplane.File{cert, list("/etc/haproxy/ssl/x.pem a.test\n")}, []dataplane.Position{{Kind: dataplane.Certificate, Name: "x.pem"}}},
		"crt-list":      {bind, []dataplane.File{cert, list("# one\n/etc/haproxy/ssl/x.pem [foo bar] a.test\n")}, []dataplane.Position{{Kind: dataplane.CRTList, Name: "list.txt", Line: 2}}},
		"line of a map": {head + "    bind :80\n    http-request set-var(txn.a) path,map_reg(/etc/haproxy/maps/r.map)\n", []dataplane.File{{Kind: dataplane.Map, Name: "r.map", Content: []byte("a b\na[ b\n")}}, []dataplane.Position{{Kind: dataplane.Map, Name: "r.map", Line: 2}}},
		"no listener":   {"global\n", nil, []dataplane.Position{{}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg, err := dataplane.NewConfig(c.text, c.files...)
			require.NoError(t, err)
			_, err = (&validate.Validator{Timeout: patience}).Check(t.Context(), cfg)
			var invalid *validate.Error
			require.True(t, errors.As(err, &invalid), "%v", err)
			var got []dataplane.Position
			for p, message := range invalid.Positions() {
				require.NotEmpty(t, message)
				got = append(got, p)
			}
			require.Equal(t, c.want, got, "%v", err)
		})
	}
}
