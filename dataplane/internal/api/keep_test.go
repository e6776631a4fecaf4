package api_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/dataplane/dataplanetest"
)

// A client that remembers what it deployed keeps the same files as one that reads
// them.
func TestFilesThatTheClientRemembersStay(t *testing.T) {
	t.Parallel()
	const text = "defaults\n  mode http\n  timeout connect 1s\n  timeout client 1s\n  timeout server 1s\n"
	for name, c := range map[string]struct {
		options dataplane.ClientOptions
		global  string
	}{
		"KeepFiles":               {options: dataplane.ClientOptions{KeepFiles: true}},
		"the text names a folder": {global: "/?.lua"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := dataplanetest.New(t, nil)
			c.options.Layout = server.Layout()
			client, err := dataplane.NewClient(server.Endpoint(), &c.options)
			require.NoError(t, err)
			defer client.Close()
			global := ""
			if c.global != "" {
				global = "global\n  lua-prepend-path " + server.Layout().Dir(dataplane.General) + c.global + "\n"
			}
			file := dataplane.File{Kind: dataplane.General, Name: "library.lua", Content: []byte("-- nothing\n")}
			for _, files := range [][]dataplane.File{{file}, nil} {
				desired, err := dataplane.NewConfig(global+text, files...)
				require.NoError(t, err)
				if _, err := client.Sync(t.Context(), desired); err != nil {
					t.Fatal(err)
				}
			}
			if _, ok := server.File(file.Kind, file.Name); !ok {
				t.Error("the client deleted the file")
			}
		})
	}
}
