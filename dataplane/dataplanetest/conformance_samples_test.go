package dataplanetest_test

import (
	"fmt"
	"net/http"
	"slices"
)

// sample is an object of each kind that the API has endpoints for: how it is
// made, and what it is changed to.
type sample struct {
	path         string // of all of them, below configuration/
	key          string // its name or index
	query        string // more of the query
	make, change string // models; change is "" where there is no PUT
	full         bool   // has full_section
	missing      bool   // is in the specification of the API, and no more
	putDone      bool   // answers 200 to a change within a transaction
}

// sections are samples of the kinds of sections.
func sectionSamples() []sample {
	return []sample{
		{path: "acme", key: "x", make: `{"name":"x","directory":"https://acme.test/dir"}`, change: `{"name":"x","directory":"https://acme.test/other","contact":"a@b.test"}`, putDone: true},
		{path: "backends", key: "x", make: `{"name":"x","mode":"http","balance":{"algorithm":"roundrobin"}}`, change: `{"name":"x","mode":"tcp"}`, full: true},
		{path: "caches", key: "x", make: `{"name":"x","total_max_size":4}`, change: `{"name":"x","total_max_size":8}`},
		{path: "crt_stores", key: "x", make: `{"name":"x","crt_base":"/a"}`, change: `{"name":"x","crt_base":"/b"}`, putDone: true},
		{path: "defaults", key: "x", make: `{"name":"x","mode":"http"}`, change: `{"name":"x","mode":"tcp"}`, full: true},
		{path: "fcgi_apps", key: "x", make: `{"name":"x","docroot":"/a"}`, change: `{"name":"x","docroot":"/b","index":"i.php"}`},
		{path: "frontends", key: "x", make: `{"name":"x","mode":"http","maxconn":5}`, change: `{"name":"x","mode":"http","default_backend":"b"}`, full: true},
		{path: "http_errors_sections", key: "x", make: `{"name":"x","error_files":[{"code":400,"file":"/a"}]}`, change: `{"name":"x","error_files":[{"code":503,"file":"/b"}]}`, putDone: true},
		{path: "log_forwards", key: "x", make: `{"name":"x","maxconn":5}`, change: `{"name":"x","maxconn":6}`, full: true},
		{path: "log_profiles", key: "x", make: `{"name":"x","log_tag":"a"}`, change: `{"name":"x","log_tag":"b"}`, putDone: true},
		{path: "mailers_section", key: "x", make: `{"name":"x","timeout":1000}`, change: `{"name":"x","timeout":2000}`, full: true, putDone: true},
		{path: "peer_section", key: "x", make: `{"name":"x"}`, full: true},
		{path: "programs", key: "x", make: `{"name":"x","command":"true"}`, change: `{"name":"x","command":"false"}`},
		{path: "resolvers", key: "x", make: `{"name":"x","accepted_payload_size":512}`, change: `{"name":"x","accepted_payload_size":1024}`, full: true},
		{path: "rings", key: "x", make: `{"name":"x","size":32768}`, change: `{"name":"x","size":65536}`, full: true},
		{path: "userlists", key: "x", make: `{"name":"x"}`, full: true},
	}
}

// sections that the samples of children stand in.
var around = []step{
	{do: "POST configuration/crt_stores?transaction_id={tx}", body: `{"name":"p"}`, status: 202},
	{do: "POST configuration/userlists?transaction_id={tx}", body: `{"name":"p"}`, status: 202},
	{do: "POST configuration/mailers_section?transaction_id={tx}", body: `{"name":"p"}`, status: 202},
	{do: "POST configuration/resolvers?transaction_id={tx}", body: `{"name":"p"}`, status: 202},
	{do: "POST configuration/peer_section?transaction_id={tx}", body: `{"name":"p"}`, status: 202},
	{do: "POST configuration/log_forwards?transaction_id={tx}", body: `{"name":"p"}`, status: 202},
	{do: "POST configuration/rings?transaction_id={tx}", body: `{"name":"p"}`, status: 202},
	{do: "POST configuration/fcgi_apps?transaction_id={tx}", body: `{"name":"p","docroot":"/a"}`, status: 202},
	{do: "POST configuration/defaults?transaction_id={tx}", body: `{"name":"p","mode":"http"}`, status: 202},
}

// childSamples are samples of what is named in a section.
func childSamples() []sample {
	return []sample{
		{path: "crt_loads", key: "c.pem", query: "crt_store=p", make: `{"certificate":"c.pem"}`, change: `{"certificate":"c.pem","alias":"c"}`, putDone: true},
		{path: "users", key: "u", query: "userlist=p", make: `{"username":"u","password":"a","secure_password":false}`, change: `{"username":"u","password":"b","secure_password":false}`},
		{path: "groups", key: "g", query: "userlist=p", make: `{"name":"g"}`, change: `{"name":"g","users":"u"}`},
		{path: "mailer_entries", key: "m", query: "mailers_section=p", make: `{"name":"m","address":"192.0.2.1","port":25}`, change: `{"name":"m","address":"192.0.2.2","port":25}`},
		{path: "nameservers", key: "n", query: "resolver=p", make: `{"name":"n","address":"192.0.2.1","port":53}`, change: `{"name":"n","address":"192.0.2.2","port":53}`},
		{path: "peer_entries", key: "e", query: "peer_section=p", make: `{"name":"e","address":"192.0.2.1","port":1024}`, change: `{"name":"e","address":"192.0.2.2","port":1024}`},
		{path: "peers/p/binds", key: "d", make: `{"name":"d","address":"192.0.2.1","port":1024}`, change: `{"name":"d","address":"192.0.2.2","port":1024}`},
		{path: "peers/p/servers", key: "s", make: `{"name":"s","address":"192.0.2.1","port":1024}`, change: `{"name":"s","address":"192.0.2.2","port":1024}`},
		{path: "peers/p/tables", key: "t", make: `{"name":"t","type":"ip","size":"1m"}`, change: `{"name":"t","type":"ip","size":"2m"}`},
		{path: "rings/p/servers", key: "s", make: `{"name":"s","address":"192.0.2.1","port":514}`, change: `{"name":"s","address":"192.0.2.2","port":514}`},
		{path: "log_forwards/p/binds", key: "d", make: `{"name":"d","address":"192.0.2.1","port":514}`, change: `{"name":"d","address":"192.0.2.2","port":514}`},
		{path: "log_forwards/p/dgram_binds", key: "d", make: `{"name":"d","address":"192.0.2.1","port":514}`, change: `{"name":"d","address":"192.0.2.2","port":514}`},
		{path: "backends/b/servers", key: "n", make: `{"name":"n","address":"192.0.2.1","port":80,"weight":5}`, change: `{"name":"n","address":"192.0.2.2","port":80,"check":"enabled"}`},
		{path: "backends/b/server_templates", key: "t", make: `{"prefix":"t","num_or_range":"1-3","fqdn":"a.test","port":80}`, change: `{"prefix":"t","num_or_range":"1-5","fqdn":"a.test","port":80}`},
		{path: "frontends/f/binds", key: "n", make: `{"name":"n","address":"127.0.0.1","port":8080}`, change: `{"name":"n","address":"127.0.0.1","port":8081}`},
	}
}

// ruleSamples are samples of what has an index, with the sections that can have
// them.
func ruleSamples() []sample {
	const all, proxies = "backends/b defaults/p frontends/f", "backends/b frontends/f"
	var samples []sample
	for _, r := range []struct{ name, in, make, change string }{
		{"acls", all + " fcgi_apps/p", `{"acl_name":"a","criterion":"path","value":"/a"}`, `{"acl_name":"a","criterion":"path","value":"/b"}`},
		{"backend_switching_rules", "frontends/f", `{"name":"b","cond":"if","cond_test":"TRUE"}`, `{"name":"b","cond":"unless","cond_test":"FALSE"}`},
		{"captures", "frontends/f", `{"type":"request","length":5}`, `{"type":"response","length":5}`},
		{"filters", proxies, `{"type":"compression"}`, `{"type":"trace","trace_name":"t"}`},
		{"http_after_response_rules", all, `{"type":"set-header","hdr_name":"X","hdr_format":"a"}`, `{"type":"del-header","hdr_name":"X"}`},
		{"http_checks", "backends/b defaults/p", `{"type":"send","method":"GET","uri":"/"}`, `{"type":"expect","match":"status","pattern":"200"}`},
		{"http_error_rules", all, `{"type":"status","status":400,"return_content_format":"default-errorfiles"}`, `{"type":"status","status":503,"return_content_format":"default-errorfiles"}`},
		{"http_request_rules", all, `{"type":"deny","deny_status":403}`, `{"type":"set-header","hdr_name":"X","hdr_format":"%[src]","cond":"if","cond_test":"TRUE"}`},
		{"http_response_rules", all, `{"type":"del-header","hdr_name":"X"}`, `{"type":"set-status","status":503}`},
		{"log_targets", all + " log_forwards/p peers/p", `{"address":"127.0.0.1:514","facility":"local0"}`, `{"address":"127.0.0.1:515","facility":"local1"}`},
		{"quic_initial_rules", "defaults/p frontends/f", `{"type":"reject"}`, `{"type":"accept"}`},
		{"server_switching_rules", "backends/b", `{"target_server":"s1","cond":"if","cond_test":"TRUE"}`, `{"target_server":"s2","cond":"if","cond_test":"TRUE"}`},
		{"stick_rules", "backends/b", `{"type":"store-request","pattern":"src"}`, `{"type":"match","pattern":"src"}`},
		{"tcp_checks", "backends/b defaults/p", `{"action":"connect"}`, `{"action":"send","data":"a"}`},
		{"tcp_request_rules", all, `{"type":"connection","action":"accept"}`, `{"type":"inspect-delay","timeout":1000}`},
		{"tcp_response_rules", "backends/b defaults/p", `{"type":"content","action":"accept"}`, `{"type":"inspect-delay","timeout":1000}`},
	} {
		for _, section := range fields(r.in) {
			missing := section == "defaults/p" && slices.Contains(notInDefaults, r.name)
			samples = append(samples, sample{path: section + "/" + r.name, key: "0", make: r.make, change: r.change, missing: missing})
		}
	}
	return append(samples, sample{path: "global/log_targets", key: "0", make: `{"address":"127.0.0.1:514","facility":"local0"}`, change: `{"address":"127.0.0.1:515","facility":"local1"}`})
}

// notInDefaults are rules whose endpoints for defaults sections 3.2.4 has not
// implemented.
var notInDefaults = []string{"acls", "http_after_response_rules", "http_request_rules", "http_response_rules", "tcp_request_rules", "tcp_response_rules"}

// steps make, change and delete a sample in a transaction.
func (s sample) steps(byIndex bool) []step {
	list, one := "configuration/"+s.path, "configuration/"+s.path+"/"+s.key
	do := func(method, path, query string) string {
		if s.query != "" {
			query += "&" + s.query
		}
		return fmt.Sprintf("%s %s?transaction_id={tx}%s", method, path, query)
	}
	if s.missing {
		const words = "has not yet been implemented"
		return []step{
			{do: do("GET", list, ""), status: 501, want: words},
			{do: do("PUT", list, ""), body: "[" + s.make + "]", status: 501, want: words},
			{do: do("GET", one, ""), status: 501, want: words},
			{do: do("PUT", one, ""), body: s.change, status: 501, want: words},
			{do: do("POST", one, ""), body: s.make, status: 501, want: words},
			{do: do("DELETE", one, ""), status: 501, want: words},
		}
	}
	create := list
	if byIndex {
		create = one
	}
	steps := []step{
		{do: do("GET", list, ""), status: 200},
		{do: do("POST", create, ""), body: s.make, status: 202},
		{do: do("GET", list, ""), status: 200},
		{do: do("GET", one, ""), status: 200},
		{do: do("POST", create, ""), status: 422, want: "data in body is required"},
	}
	put := http.StatusAccepted
	if s.putDone {
		put = http.StatusOK
	}
	switch {
	case s.path == "crt_loads":
		steps = append(steps, step{do: do("POST", create, ""), body: s.make, status: 404, want: "does not exist in crt-store p"})
	case !byIndex:
		steps = append(steps, step{do: do("POST", create, ""), body: s.make, status: 409, want: "already exists"})
	}
	if s.change != "" {
		steps = append(steps, step{do: do("PUT", one, ""), body: s.change, status: put}, step{do: do("GET", one, ""), status: 200})
	}
	if byIndex {
		steps = append(steps,
			step{do: do("POST", create, ""), body: s.make, status: 202},
			step{do: do("GET", list, ""), status: 200},
			step{do: do("PUT", list, ""), body: "[" + s.change + "," + s.make + "]", status: 202},
			step{do: do("GET", list, ""), status: 200},
			step{do: do("GET", list+"/9", ""), status: 404},
		)
	}
	if s.full {
		steps = append(steps, step{do: do("GET", list, "&full_section=true"), status: 200}, step{do: do("GET", one, "&full_section=true"), status: 200})
	}
	return append(steps, step{do: do("DELETE", one, ""), status: 202}, step{do: do("GET", list, ""), status: 200})
}
