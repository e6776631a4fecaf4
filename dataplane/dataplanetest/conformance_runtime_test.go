package dataplanetest_test

func serverScenarios() []scenario {
	const servers = "runtime/backends/b/servers"
	return []scenario{
		{name: "servers, of the process", from: 30, steps: []step{
			{do: "GET " + servers, status: 200, want: `"admin_state":"ready"`},
			{do: "GET runtime/backends/nobody/servers", status: 404, want: "no data for nobody: not found"},
			{do: "PUT " + servers + "/s1", body: `{"admin_state":"maint"}`, status: 200, want: `"admin_state":"maint"`},
			{do: "PUT " + servers + "/s1", body: `{"admin_state":"drain"}`, status: 200, want: `"admin_state":"drain"`},
			{do: "PUT " + servers + "/s1", body: `{"admin_state":"ready"}`, status: 200, want: `"admin_state":"ready"`},
			{do: "PUT " + servers + "/nobody", body: `{"admin_state":"ready"}`, status: 404},
			{do: "POST " + servers, body: `{"name":"n","address":"127.0.0.9","port":1009}`, status: 201},
			{do: "GET " + servers, status: 200, want: `"admin_state":"maint"`},
			{do: "POST " + servers, body: `{"name":"n","address":"127.0.0.9","port":1009}`, status: 409, want: "Already exists a server with the same name in backend"},
			{do: "POST runtime/backends/nobody/servers", body: `{"name":"n","address":"127.0.0.9","port":1009}`, status: 404, want: "No such backend"},
			{do: "PUT " + servers + "/n", body: `{"admin_state":"ready"}`, status: 200, want: `"admin_state":"ready"`},
			{do: "DELETE " + servers + "/n", status: 204},
			{do: "DELETE " + servers + "/n", status: 404},
			{do: "DELETE " + servers + "/s2", status: 204},
			{do: "GET configuration/version", status: 200, want: "1"},
		}},
		{name: "statistics", from: 30, steps: []step{
			{do: "GET stats/native?type=server&parent=b", status: 200, want: `"addr":"127.0.0.1:1001"`},
			{do: "PUT " + servers + "/s1", body: `{"admin_state":"maint"}`, status: 200},
			{do: "GET stats/native?type=server", status: 200, want: `"status":"MAINT"`},
			{do: "PUT " + servers + "/s1", body: `{"admin_state":"drain"}`, status: 200},
			{do: "GET stats/native?type=server", status: 200, want: `"status":"DRAIN"`},
			{do: "POST configuration/raw?version={v}&skip_reload=true", header: "X-Runtime-Actions: SetServerState b s1 ready;SetServerAddr b s1 127.0.0.9 1009;SetServerWeight b s1 0", body: startText, status: 201},
			{do: "GET stats/native?type=server&parent=b", status: 200, want: `"addr":"127.0.0.9:1009"`},
			{do: "POST " + servers, body: `{"name":"n","address":"[::1]","port":1009,"weight":7}`, status: 201},
			{do: "GET stats/native?type=server&parent=b", status: 200, want: `"status":"MAINT"`, differs: "the weight is 1 until it has been ready"},
			{do: "PUT " + servers + "/n", body: `{"admin_state":"ready"}`, status: 200},
			{do: "GET stats/native?type=server&parent=b", status: 200, want: `"weight":7`},
			{do: "GET stats/native?type=server&parent=nobody", status: 200},
		}},
	}
}

func patternScenarios() []scenario {
	const maps, acls = "runtime/maps", "runtime/acls"
	load := []step{
		{do: "POST storage/maps", file: "m.map", body: "a 1\nb 2\n", status: 201},
		{do: "POST storage/general", file: "l.acl", body: "x\ny\n", status: 201},
		{do: "POST configuration/raw?version={v}&force_reload=true", status: 201, body: startText +
			"frontend m\n  bind unix@m.sock\n  mode http\n  http-request deny if { path,map({dir}/maps/m.map) -m found }\n  http-request deny if { path -f {dir}/general/l.acl }\n"},
	}
	return []scenario{
		{name: "maps, of the process", from: 30, steps: append(load[:3:3], []step{
			{do: "GET " + maps + "/m.map/entries", status: 200, want: `"key":"a"`},
			{do: "GET " + maps + "/m/entries", status: 200, want: `"key":"a"`},
			{do: "GET " + maps + "/absent/entries", status: 404},
			{do: "POST " + maps + "/m/entries", body: `{"key":"c","value":"3"}`, status: 201},
			{do: "POST " + maps + "/m/entries", body: `{"key":"c","value":"3"}`, status: 409},
			{do: "PUT " + maps + "/m/entries/c", body: `{"value":"4"}`, status: 200, want: `"value":"4"`},
			{do: "PUT " + maps + "/m/entries/z", body: `{"value":"4"}`, status: 404},
			{do: "DELETE " + maps + "/m/entries/c", status: 204},
			{do: "DELETE " + maps + "/m/entries/c", status: 404},
			{do: "POST " + maps + "/m/entries", body: `{"key":"a%2Fb","value":"5"}`, status: 201},
			{do: "GET " + maps + "/m/entries", status: 200, want: `"key":"a%2Fb","value":"5"`},
			{do: "DELETE " + maps + "/m/entries/a%252Fb", status: 204},
		}...)},
		{name: "ACLs, of the process", from: 30, steps: append(load[:3:3], []step{
			{do: "GET " + acls, status: 200, want: "/etc/haproxy/general/l.acl", save: "acl", differs: "identifiers"},
			{do: "GET " + acls + "/{acl}/entries", status: 200, want: `"value":"y"`, save: "entry"},
			{do: "POST " + acls + "/{acl}/entries", body: `{"value":"z"}`, status: 201, want: `"value":"z"`},
			{do: "DELETE " + acls + "/{acl}/entries/{entry}", status: 204},
			{do: "GET " + acls + "/{acl}/entries", status: 200, want: `"value":"z"`},
			{do: "GET " + acls + "/99/entries", status: 404},
			{do: "POST " + acls + "/99/entries", body: `{"value":"z"}`, status: 500, want: "Unknown ACL identifier"},
		}...)},
	}
}

func sslScenarios() []scenario {
	const list = "runtime/ssl_crt_lists/entries?name={dir}/general/list.txt"
	one, two := pemOf("a.test", true, false), pemOf("b.test", true, false)
	return []scenario{
		{name: "crt-lists, of the process", from: 30, steps: []step{
			{do: "POST storage/ssl_certificates?skip_reload=true", file: "a.pem", body: one, status: 201},
			{do: "POST storage/general", file: "list.txt", body: "{dir}/ssl/a.pem [alpn h2] a.test\n", status: 201, differs: "the size, by the folder"},
			{do: "POST configuration/raw?version={v}&force_reload=true", status: 201, body: startText +
				"frontend t\n  bind unix@t.sock ssl crt-list {dir}/general/list.txt\n  default_backend b\n"},
			{do: "POST storage/ssl_certificates", file: "b.pem", body: two, status: 201},
			{do: "GET runtime/ssl_certs/{dir%2F}ssl%2Fa.pem", status: 200, want: `"storage_name":"/etc/haproxy/ssl/a.pem"`},
			{do: "PUT storage/ssl_certificates/a.pem", body: two, status: 200},
			{do: "GET runtime/ssl_certs/{dir%2F}ssl%2Fa.pem", status: 200, want: `"sha1_finger_print":"` + fingerprintOf(two) + `"`},
			{do: "POST " + list, body: `{"file":"{dir}/ssl/b.pem","sni_filter":["b.test\n"]}`, status: 201},
			{do: "DELETE " + list + "&cert_file={dir}/ssl/b.pem", status: 204},
			{do: "DELETE runtime/ssl_certs/{dir%2F}ssl%2Fb.pem", status: 204},
			{do: "DELETE runtime/ssl_certs/{dir%2F}ssl%2Fa.pem", status: 500, want: "in use"},
		}},
		{name: "certificates, of the process", from: 30, steps: []step{
			{do: "GET runtime/ssl_certs/absent.pem", status: 404},
			{do: "POST runtime/ssl_crt_lists/entries?name=absent", body: `{"file":"n.pem"}`, status: 500},
			{do: "DELETE runtime/ssl_crt_lists/entries?name=absent&cert_file=n.pem", status: 404},
		}},
		{name: "CA files, of the process", from: 30, steps: []step{
			{do: "POST storage/general", file: "ca.pem", body: pemOf("ca.test", false, false), status: 201},
			{do: "POST configuration/raw?version={v}&force_reload=true", status: 201, body: startText + "  server s3 127.0.0.1:1003 ssl verify required ca-file {dir}/general/ca.pem\n"},
			{do: "PUT runtime/ssl_ca_files/{dir%2F}general%2Fca.pem", file: "ca.pem", body: pemOf("cc.test", false, false) + pemOf("cd.test", false, false) + "\n", status: 201},
			{do: "PUT runtime/ssl_ca_files/{dir%2F}general%2Fca.pem", file: "ca.pem", body: pemOf("ce.test", false, false), status: 500}, // no empty line ends it
		}},
	}
}
