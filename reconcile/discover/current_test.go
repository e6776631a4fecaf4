package discover

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/dataplane/dataplanetest"
)

// TestCurrentOfANewInstance: what an instance came with, before anybody deployed to it,
// says nothing beside what another one has.
func TestCurrentOfANewInstance(t *testing.T) {
	var clients Clients
	endpoint := func(name string) dataplane.Endpoint {
		return dataplane.Endpoint{Name: name, URL: dataplanetest.New(t, nil).URL(), Username: "admin", Password: "secret"}
	}
	targets, err := clients.Targets([]dataplane.Endpoint{endpoint("a-new"), endpoint("b-old")})
	require.NoError(t, err)
	came, err := clients.Current(t.Context())
	require.NoError(t, err)
	require.NotNil(t, came, "where none has more")
	deployed, err := dataplane.NewConfig(came.Main()+"\nfrontend x\n    bind 127.0.0.1:1\n    http-request deny if { src,map_str("+dataplane.Layout{}.Path(dataplane.Map, "hosts.map")+") -m found }\n",
		dataplane.File{Kind: dataplane.Map, Name: "hosts.map", Content: []byte("shop.test shop\n")})
	require.NoError(t, err)
	_, err = targets[1].Sync(t.Context(), deployed)
	require.NoError(t, err)
	current, err := clients.Current(t.Context())
	require.NoError(t, err)
	file, ok := current.File(dataplane.Map, "hosts.map")
	require.True(t, ok)
	require.Equal(t, "shop.test shop\n", string(file.Content))
}
