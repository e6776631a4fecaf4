package dataplanetest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hapticsdk/haptic/dataplane/dataplanetest"
)

func newServer(t *testing.T, version string) *dataplanetest.Server {
	t.Helper()
	return dataplanetest.New(t, &dataplanetest.Options{APIVersion: version})
}

func runtimeScenarios() []scenario {
	const servers, maps, acls = "runtime/backends/b/servers", "runtime/maps", "runtime/acls"
	load := []step{
		{do: "POST storage/maps", file: "m.map", body: "a 1\nb 2\n", status: 201},
		{do: "POST storage/general", file: "l.acl", body: "x\ny\n", status: 201},
		{do: "POST configuration/raw?version={v}&force_reload=true", status: 201, body: startText +
			"frontend m\n  bind unix@m.sock\n  mode http\n  http-request deny if { path,map({dir}/maps/m.map) -m found }\n  http-request deny if { path -f {dir}/general/l.acl }\n"},
	}
	var many []string
	for i := range 1000 {
		many = append(many, fmt.Sprintf(`{"key":"key%d","value":"v"}`, i))
	}
	return []scenario{
		{name: "servers, of the process", from: 30, steps: []step{
			{do: "GET " + servers, status: 200, want: `"admin_state":"ready"`},
			{do: "GET " + servers + "/s1", status: 200, want: `"name":"s1"`},
			{do: "GET " + servers + "/nobody", status: 404, want: "no data for b/nobody: not found"},
			{do: "GET runtime/backends/nobody/servers", status: 404, want: "no data for nobody: not found"},
			{do: "PUT " + servers + "/s1", body: `{"admin_state":"maint"}`, status: 200, want: `"admin_state":"maint"`},
			{do: "PUT " + servers + "/s1", body: `{"admin_state":"drain"}`, status: 200, want: `"admin_state":"drain"`},
			{do: "PUT " + servers + "/s1", body: `{"admin_state":"ready"}`, status: 200, want: `"admin_state":"ready"`},
			{do: "PUT " + servers + "/nobody", body: `{"admin_state":"ready"}`, status: 404},
			{do: "POST " + servers, body: `{"name":"n","address":"127.0.0.9","port":1009}`, status: 201},
			{do: "GET " + servers + "/n", status: 200, want: `"admin_state":"maint"`},
			{do: "POST " + servers, body: `{"name":"n","address":"127.0.0.9","port":1009}`, status: 409, want: "Already exists a server with the same name in backend"},
			{do: "POST " + servers, body: `{"address":"127.0.0.9"}`, status: 400, want: "the new server must have a name"},
			{do: "POST runtime/backends/nobody/servers", body: `{"name":"n","address":"127.0.0.9","port":1009}`, status: 404, want: "No such backend"},
			{do: "PUT " + servers + "/n", body: `{"admin_state":"ready"}`, status: 200, want: `"admin_state":"ready"`},
			{do: "DELETE " + servers + "/n", status: 204},
			{do: "DELETE " + servers + "/n", status: 404},
			{do: "DELETE " + servers + "/s2", status: 204},
			{do: "GET configuration/version", status: 200, want: "1"},
		}},
		{name: "statistics", from: 30, steps: []step{
			{do: "GET stats/native?type=server&parent=b&name=s1", status: 200, want: `"weight":`, differs: "only some columns"},
			{do: "GET stats/native?type=server&parent=nobody", status: 200},
			{do: "GET stats/native?type=frontend", status: 200, differs: "only some columns"},
			{do: "GET stats/native?name=s1", status: 400, want: "Type required when filtering by name"},
			{do: "GET stats/native?name=s1&type=server", status: 400, want: "Parent backend required when filtering by server"},
		}},
		{name: "servers, added to the configuration", from: 30, steps: []step{
			{do: "POST configuration/backends/b/servers?version={v}", body: `{"name":"n","address":"127.0.0.9","port":1009}`, status: 201},
			{do: "GET " + servers + "/n", status: 200, want: `"admin_state":"maint"`},
			{do: "POST configuration/backends/b/servers?version={v}&force_reload=true", body: `{"name":"o","address":"127.0.0.9","port":1009}`, status: 201},
			{do: "GET " + servers + "/o", status: 200, want: `"admin_state":"ready"`},
			{do: "PUT configuration/backends/b?version={v}", body: `{"name":"b","balance":{"algorithm":"roundrobin"},"default_server":{"inter":1000}}`, status: 202, reload: true},
			{do: "POST configuration/backends/b/servers?version={v}", body: `{"name":"p","address":"127.0.0.9","port":1009}`, status: 202, reload: true},
		}},
		{name: "maps, of the process", from: 30, steps: append(load[:3:3], []step{
			{do: "GET " + maps, status: 200, want: `"storage_name":"m.map"`, differs: "identifiers, and words about places"},
			{do: "GET " + maps + "/m.map", status: 200, want: "/etc/haproxy/maps/m.map", differs: "identifiers, and words about places"},
			{do: "GET " + maps + "/absent.map", status: 404},
			{do: "GET " + maps + "/m.map/entries", status: 200, want: `"key":"a"`},
			{do: "GET " + maps + "/m/entries", status: 200, want: `"key":"a"`},
			{do: "GET " + maps + "/absent/entries", status: 404},
			{do: "GET " + maps + "/m/entries/a", status: 200, want: `"value":"1"`},
			{do: "GET " + maps + "/m/entries/z", status: 404},
			{do: "POST " + maps + "/m/entries", body: `{"key":"c","value":"3"}`, status: 201},
			{do: "POST " + maps + "/m/entries", body: `{"key":"c","value":"3"}`, status: 409},
			{do: "PUT " + maps + "/m/entries/c", body: `{"value":"4"}`, status: 200, want: `"value":"4"`},
			{do: "PUT " + maps + "/m/entries/z", body: `{"value":"4"}`, status: 404},
			{do: "DELETE " + maps + "/m/entries/c", status: 204},
			{do: "DELETE " + maps + "/m/entries/c", status: 404},
			{do: "POST " + maps + "/m/entries", body: `{"key":"a%2Fb","value":"5"}`, status: 201},
			{do: "GET " + maps + "/m/entries/a%252Fb", status: 200, want: `"value":"5"`},
			{do: "PUT " + maps + "/m", body: `[{"key":"d","value":"6"}]`, status: 201},
			{do: "GET " + maps + "/m/entries/a", status: 200},
			{do: "PUT " + maps + "/m", body: "[" + strings.Join(many, ",") + "]", status: 201},
			{do: "GET " + maps + "/m/entries/a", status: 404},
			{do: "GET " + maps + "/m/entries/key999", status: 200},
			{do: "DELETE " + maps + "/m", status: 204},
			{do: "GET " + maps + "/m/entries/key1", status: 404},
		}...)},
		{name: "ACLs, of the process", from: 30, steps: append(load[:3:3], []step{
			{do: "GET " + acls, status: 200, want: "/etc/haproxy/general/l.acl", save: "acl", differs: "identifiers, and words about places"},
			{do: "GET " + acls + "/{acl}", status: 200, want: "/etc/haproxy/general/l.acl", differs: "identifiers, and words about places"},
			{do: "GET " + acls + "/{acl}/entries", status: 200, want: `"value":"y"`, save: "entry"},
			{do: "POST " + acls + "/{acl}/entries", body: `{"value":"z"}`, status: 201, want: `"value":"z"`},
			{do: "GET " + acls + "/{acl}/entries/z", status: 200, want: `"value":"z"`},
			{do: "GET " + acls + "/{acl}/entries/nobody", status: 404},
			{do: "DELETE " + acls + "/{acl}/entries/{entry}", status: 204},
			{do: "GET " + acls + "/{acl}/entries", status: 200, want: `"value":"z"`},
			{do: "GET " + acls + "/99", status: 404},
			{do: "GET " + acls + "/99/entries", status: 404},
			{do: "POST " + acls + "/99/entries", body: `{"value":"z"}`, status: 500, want: "Unknown ACL identifier"},
		}...)},
		{name: "certificates, of the process", from: 30, steps: []step{
			{do: "GET runtime/ssl_certs/absent.pem", status: 404},
			{do: "POST runtime/ssl_certs", file: "n.pem", body: pemOf("n.test", true, false), status: 201},
			{do: "GET runtime/ssl_certs/n.pem", status: 200, want: `"storage_name":"n.pem"`, differs: "more than the pretender knows"},
			{do: "PUT runtime/ssl_certs/n.pem", file: "n.pem", body: pemOf("o.test", true, false), status: 200},
			{do: "PUT runtime/ssl_certs/absent.pem", file: "n.pem", body: pemOf("o.test", true, false), status: 500},
			{do: "DELETE runtime/ssl_certs/n.pem", status: 204},
			{do: "DELETE runtime/ssl_certs/n.pem", status: 500},
			{do: "POST runtime/ssl_ca_files", file: "ca.pem", body: pemOf("ca.test", false, false) + "\n", status: 201},
			{do: "GET runtime/ssl_ca_files/ca.pem", status: 200, want: `"count":"1 certificate(s)"`},
			{do: "GET runtime/ssl_ca_files/ca.pem/entries/1", status: 200, want: `"status":"U`, differs: "more than the pretender knows"},
			{do: "POST runtime/ssl_ca_files/ca.pem/entries", file: "ca.pem", body: pemOf("cb.test", false, false), status: 201},
			{do: "GET runtime/ssl_ca_files/ca.pem", status: 200, want: `"count":"2 certificate(s)"`},
			{do: "PUT runtime/ssl_ca_files/ca.pem", file: "ca.pem", body: pemOf("cc.test", false, false) + "\n", status: 201},
			{do: "PUT runtime/ssl_ca_files/ca.pem", file: "ca.pem", body: pemOf("cd.test", false, false), status: 500, want: "general error"}, // no empty line ends it
			{do: "GET runtime/ssl_ca_files/absent.pem", status: 404},
			{do: "DELETE runtime/ssl_ca_files/ca.pem", status: 204},
			{do: "GET runtime/ssl_crt_lists/entries", status: 422, want: "name in query is required"},
			{do: "GET runtime/ssl_crt_lists/entries?name=absent", status: 404},
			{do: "POST runtime/ssl_crt_lists/entries?name=absent", body: `{"file":"n.pem"}`, status: 500},
			{do: "DELETE runtime/ssl_crt_lists/entries?name=absent&cert_file=n.pem", status: 404},
		}},
	}
}
