package dataplane_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
)

func ExampleRuntimeChanges() {
	for _, c := range dataplane.RuntimeChanges() {
		fmt.Println(c)
	}
	// Output:
	// update server address (sockets, HAProxy 2.6): from an IP address and port to another
	// update server address (api 3.0, HAProxy 2.7): from an IP address and port to another
	// update server weight (sockets, HAProxy 2.6): the balance is dynamic or consistent; no agent check
	// update server weight (api 3.0, HAProxy 2.7): the balance is dynamic or consistent; no agent check
	// update server maxconn (sockets, HAProxy 2.6): no minconn
	// update server state (sockets, HAProxy 2.6): between enabled and disabled
	// update server state (api 3.0, HAProxy 2.7): between enabled and disabled
	// create server (sockets, HAProxy 2.6): balance roundrobin, leastconn or random; an IP address and port; keywords that add server takes
	// create server (api 3.0, HAProxy 3.0): balance roundrobin, leastconn or random; an IP address and port; no check; keywords that the API knows
	// create server cookie (sockets, HAProxy 3.0): not a dynamic one
	// create server cookie (api 3.0, HAProxy 3.0): a dynamic one
	// delete server (sockets, HAProxy 2.6): balance roundrobin, leastconn or random; no rule names it and no server tracks it
	// delete server (api 3.0, HAProxy 3.0): balance roundrobin, leastconn or random; no rule names it and no server tracks it
	// create backend (sockets, HAProxy 2.6): a spare backend has its lines but for name and servers, the servers can come at runtime, and only whole values of maps name it
	// delete backend (sockets, HAProxy 2.6): there are spare backends, and nothing names it
	// create backend from defaults (sockets, HAProxy 3.4): it has servers that can come at runtime and no other lines, the defaults have a name and stay, and the mode is http or tcp
	// delete backend from defaults (sockets, HAProxy 3.4): it has servers and no other lines, the defaults have a name, and nothing names it
	// create map entry (sockets, HAProxy 2.6): only map converters and ACLs with -M use the file
	// create map entry (api 3.0, HAProxy 2.6): only map converters and ACLs with -M use the file; keys and values of safe characters, at most 2,000 entries, no repeated key and no order
	// update map entry (sockets, HAProxy 2.6): only map converters and ACLs with -M use the file
	// update map entry (api 3.0, HAProxy 2.6): only map converters and ACLs with -M use the file; keys and values of safe characters, at most 2,000 entries, no repeated key and no order
	// delete map entry (sockets, HAProxy 2.6): only map converters and ACLs with -M use the file
	// delete map entry (api 3.0, HAProxy 2.6): only map converters and ACLs with -M use the file; keys and values of safe characters, at most 2,000 entries, no repeated key and no order
	// create acl entry (sockets, HAProxy 2.6): only ACLs with -f use the file
	// create acl entry (api 3.0, HAProxy 2.6): only ACLs with -f use the file; keys and values of safe characters, at most 2,000 entries, no repeated key and no order
	// delete acl entry (sockets, HAProxy 2.6): only ACLs with -f use the file
	// delete acl entry (api 3.0, HAProxy 2.6): only ACLs with -f use the file; keys and values of safe characters, at most 2,000 entries, no repeated key and no order
	// update certificate (sockets, HAProxy 2.6): crt or a crt-list uses the file
	// update certificate (api 3.2, HAProxy 2.6): crt or a crt-list uses the file
	// create certificate (sockets, HAProxy 2.6): only a crt-list uses the file
	// create certificate (api 3.2, HAProxy 2.6): only a crt-list uses the file
	// delete certificate (sockets, HAProxy 2.6): only a crt-list uses the file
	// delete certificate (api 3.2, HAProxy 2.6): only a crt-list uses the file
	// create crt-list entry (sockets, HAProxy 2.6): the list is not empty, and its default certificate stays unless strict-sni makes it idle
	// create crt-list entry (api 3.2, HAProxy 2.6): the list is not empty, and its default certificate stays unless strict-sni makes it idle
	// update crt-list entry (sockets, HAProxy 2.6): the list is not empty, and its default certificate stays unless strict-sni makes it idle
	// update crt-list entry (api 3.2, HAProxy 2.6): the list is not empty, and its default certificate stays unless strict-sni makes it idle
	// delete crt-list entry (sockets, HAProxy 2.6): the list is not empty, and its default certificate stays unless strict-sni makes it idle
	// delete crt-list entry (api 3.2, HAProxy 2.6): the list is not empty, and its default certificate stays unless strict-sni makes it idle
	// update ca (sockets, HAProxy 2.6): at most 13 KiB; only ca-file and ca-verify-file use it
	// update ca (api 3.2, HAProxy 2.6): at most 13 KiB; only ca-file and ca-verify-file use it
}

func TestRuntimeChangesAreACopy(t *testing.T) {
	t.Parallel()
	dataplane.RuntimeChanges()[0].Kind = "x"
	require.Equal(t, "server", dataplane.RuntimeChanges()[0].Kind)
}
