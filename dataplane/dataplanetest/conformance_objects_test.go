package dataplanetest_test

import "strings"

func fields(s string) []string { return strings.Fields(s) }

// inTransaction wraps steps in a transaction that is not committed, so that no
// haproxy sees them.
func inTransaction(steps ...step) []step {
	all := append([]step{{do: "POST transactions?version={v}", status: 201, save: "tx"}}, steps...)
	return append(all, step{do: "GET configuration/raw?transaction_id={tx}", status: 200})
}

func objectScenarios() []scenario {
	var sections, children, rules []step
	for _, s := range sectionSamples() {
		sections = append(sections, s.steps(false)...)
	}
	children = append(children, around...)
	for _, s := range childSamples() {
		children = append(children, s.steps(false)...)
	}
	rules = append(rules, around...)
	for _, s := range ruleSamples() {
		rules = append(rules, s.steps(true)...)
	}
	return []scenario{
		{name: "sections, each kind", steps: inTransaction(sections...)},
		{name: "named children, each kind", steps: inTransaction(children...)},
		{name: "rules, each kind", steps: inTransaction(rules...)},
		{name: "global, traces and front uses", steps: inTransaction(
			step{do: "GET configuration/global?transaction_id={tx}", status: 200, want: `"performance_options":{"maxconn":100}`},
			step{do: "PUT configuration/global?transaction_id={tx}", body: `{"daemon":true}`, status: 202},
			step{do: "GET configuration/global?transaction_id={tx}&full_section=true", status: 200, want: `"daemon":true`},
			step{do: "PUT configuration/global?transaction_id={tx}&full_section=true", body: `{"performance_options":{"maxconn":7},"log_target_list":[{"address":"127.0.0.1:514","facility":"local0"}]}`, status: 202},
			step{do: "POST configuration/global?transaction_id={tx}", body: `{}`, status: 405, differs: "the order of the methods"},
			step{do: "GET configuration/traces?transaction_id={tx}", status: 404},
			step{do: "POST configuration/traces?transaction_id={tx}", body: `{"entries":[{"trace":"h1 sink stderr"}]}`, status: 202},
			step{do: "GET configuration/traces?transaction_id={tx}", status: 200},
			step{do: "PUT configuration/traces?transaction_id={tx}", body: `{"entries":[{"trace":"h2 sink stderr"}]}`, status: 200},
			step{do: "POST configuration/traces/entries?transaction_id={tx}", body: `{"trace":"h1 level error"}`, status: 201},
			step{do: "GET configuration/traces?transaction_id={tx}&full_section=true", status: 200},
			step{do: "DELETE configuration/traces/entries?transaction_id={tx}", body: `{"trace":"h1 level error"}`, status: 202},
			step{do: "DELETE configuration/traces?transaction_id={tx}", status: 202},
			step{do: "GET configuration/frontends/f/ssl_front_uses?transaction_id={tx}", status: 200, want: "[]"},
			step{do: "POST configuration/frontends/f/ssl_front_uses?transaction_id={tx}", body: `{"certificate":"/c.pem"}`, status: 202},
			step{do: "GET configuration/frontends/f/ssl_front_uses?transaction_id={tx}", status: 200},
			step{do: "PUT configuration/frontends/f/ssl_front_uses/0?transaction_id={tx}", body: `{"certificate":"/d.pem"}`, status: 200},
			step{do: "GET configuration/frontends/f/ssl_front_uses/0?transaction_id={tx}", status: 200},
			step{do: "DELETE configuration/frontends/f/ssl_front_uses/0?transaction_id={tx}", status: 202},
		)},
		{name: "sections with their children", steps: inTransaction(
			step{do: "POST configuration/backends?transaction_id={tx}&full_section=true", status: 202,
				body: `{"name":"x","mode":"http","servers":{"s":{"name":"s","address":"192.0.2.1","port":80}},"acl_list":[{"acl_name":"a","criterion":"path","value":"/a"}]}`},
			step{do: "GET configuration/backends/x/servers?transaction_id={tx}", status: 200, want: `"address":"192.0.2.1"`},
			step{do: "GET configuration/backends/x?transaction_id={tx}&full_section=true", status: 200, want: `"acl_list"`},
			step{do: "GET configuration/backends/x?transaction_id={tx}", status: 200, want: `"name":"x"`},
			step{do: "PUT configuration/backends/x?transaction_id={tx}", body: `{"name":"x","mode":"tcp"}`, status: 202},
			step{do: "GET configuration/backends/x/servers?transaction_id={tx}", status: 200, want: `"address":"192.0.2.1"`},
			step{do: "PUT configuration/backends/x?transaction_id={tx}&full_section=true", body: `{"name":"x","mode":"tcp"}`, status: 202},
			step{do: "GET configuration/backends/x/servers?transaction_id={tx}", status: 200, want: "[]"},
			step{do: "POST configuration/frontends?transaction_id={tx}&full_section=true", status: 202,
				body: `{"name":"y","mode":"http","binds":{"d":{"name":"d","address":"127.0.0.1","port":81}},"http_request_rule_list":[{"type":"deny"}]}`},
			step{do: "GET configuration/frontends?transaction_id={tx}&full_section=true", status: 200, want: `"http_request_rule_list"`},
		)},
		{name: "edits, refused", steps: []step{
			{do: "POST configuration/backends", body: `{"name":"x"}`, status: 400, want: "version or transaction not specified"},
			{do: "POST configuration/backends?version=9", body: `{"name":"x"}`, status: 409, want: "version mismatch"},
			{do: "POST configuration/backends?version={v}", body: `{}`, status: 422, want: "name in body is required"},
			{do: "POST configuration/backends?version={v}", body: `{"name":"x","mode":"y"}`, status: 422, want: "mode in body should be one of [http tcp log]"},
			{do: "POST configuration/backends?version={v}", body: `{"name":"x"`, status: 400, differs: "the words of a JSON parser"},
			{do: "POST configuration/backends?version={v}", body: "name: x", status: 415, want: "unsupported media type"},
			{do: "GET configuration/backends/nobody", status: 404, want: "Backend nobody does not exist"},
			{do: "GET configuration/backends/nobody/servers", status: 200, want: "[]"},
			{do: "GET configuration/backends/nobody/servers/s", status: 404, want: "server s does not exist in nobody backend"},
			{do: "GET configuration/backends/b/acls/x", status: 422, want: "index in path must be of type int64"},
			{do: "GET configuration/nobody", status: 404, want: "was not found"},
			{do: "GET configuration/users", status: 422, want: "userlist in query is required"},
			{do: "PUT configuration/backends/nobody?version={v}", body: `{"name":"nobody"}`, status: 404},
			{do: "DELETE configuration/backends/nobody?version={v}", status: 404},
			{do: "DELETE configuration/backends/b/acls/7?version={v}", status: 404},
			{do: "PUT configuration/userlists/x?version={v}", body: `{"name":"x"}`, status: 405, differs: "the order of the methods"},
			{do: "GET configuration/version", status: 200, want: "1"},
		}},
		{name: "edits, outside of a transaction", steps: []step{
			{do: "POST configuration/backends?version={v}", body: `{"name":"x"}`, status: 202, reload: true, save: "first"},
			{do: "POST configuration/backends?version={v}", body: `{"name":"x"}`, status: 409, want: "already exists"},
			{do: "PUT configuration/backends/x?version={v}", body: `{"name":"x","mode":"tcp"}`, status: 202, reload: true},
			{do: "POST configuration/backends/b/acls/0?version={v}&force_reload=true", body: `{"acl_name":"a","criterion":"path","value":"/a"}`, status: 201},
			{do: "PUT configuration/backends/b/acls?version={v}&force_reload=true", body: `[]`, status: 200},
			{do: "DELETE configuration/backends/x?version={v}&force_reload=true", status: 204},
			{do: "DELETE configuration/backends/b/servers/s2?version={v}", status: 202, reload: true},
			{do: "GET configuration/raw", status: 200, want: "# _version=7\n"},
		}},
		{name: "servers, at runtime", steps: []step{
			{do: "PUT configuration/backends/b/servers/s1?version={v}", body: `{"name":"s1","address":"127.0.0.1","port":1001,"weight":20}`, status: 200},
			{do: "PUT configuration/backends/b/servers/s1?version={v}", body: `{"name":"s1","address":"127.0.0.1","port":1001,"weight":20}`, status: 200},
			{do: "PUT configuration/backends/b/servers/s1?version={v}", body: `{"name":"s1","address":"127.0.0.2","port":1009,"weight":20}`, status: 200},
			{do: "PUT configuration/backends/b/servers/s1?version={v}", body: `{"name":"s1","address":"127.0.0.2","port":1009,"weight":20,"maintenance":"enabled"}`, status: 200},
			{do: "PUT configuration/backends/b/servers/s1?version={v}", body: `{"name":"s1","address":"127.0.0.2","port":1009,"weight":20,"maintenance":"enabled","proxy-v2-options":["ssl"]}`, status: 200},
			{do: "PUT configuration/backends/b/servers/s1?version={v}", body: `{"name":"s1","address":"127.0.0.2","port":1009,"weight":20,"maxconn":5}`, status: 202, reload: true},
			{do: "PUT configuration/backends/b/servers/s1?version={v}", body: `{"name":"s1","address":"127.0.0.2","port":1009,"maxconn":5}`, status: 202, reload: true},
			{do: "PUT configuration/backends/b/servers/nobody?version={v}", body: `{"name":"nobody","address":"127.0.0.2"}`, status: 404},
			{do: "PUT configuration/frontends/f?version={v}", body: `{"name":"f","default_backend":"b","maxconn":7}`, status: 202, reload: true},
			{do: "PUT configuration/frontends/f?version={v}", body: `{"name":"f","default_backend":"b","maxconn":8}`, status: 200},
			{do: "PUT configuration/frontends/f?version={v}", body: `{"name":"f","default_backend":"b","maxconn":8,"mode":"http"}`, status: 202, reload: true},
			{do: "GET configuration/raw", status: 200, want: "# _version=11\n"},
		}},
	}
}
