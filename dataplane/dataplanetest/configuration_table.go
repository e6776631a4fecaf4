package dataplanetest

import "maps"

// resource is a kind of section, or of what stands in one, that the API has
// endpoints for. Its methods in the engine are called after it: GetServers,
// GetServer, CreateServer, EditServer, DeleteServer.
type resource struct {
	one, many string // as in the names of the methods
	parent    string // what the engine calls the section around it, "" where the method says it
	query     string // parameter that names that section; "" where the path does
	byIndex   bool   // else by name
	replace   string // as in the name of the method that replaces all of them, "" if there is none
	full      bool   // has full_section, with the children in it
	fixed     bool   // cannot be replaced
	posts     bool   // is created by a POST of the list although it has an index
	putDone   bool   // answers 200 to a change within a transaction, where others answer 202
	postDone  bool   // answers 201 to what is created within a transaction, where others answer 202
	missing   bool   // has a path, but not a handler
}

// sections are the kinds of sections by their path below configuration/. The
// global and the traces section, of which there is one each, are not in it.
func sections() map[string]resource {
	return map[string]resource{
		"acme":                 {one: "AcmeProvider", many: "AcmeProviders", putDone: true},
		"backends":             {one: "Backend", many: "Backends", full: true},
		"caches":               {one: "Cache", many: "Caches"},
		"crt_stores":           {one: "CrtStore", many: "CrtStores", putDone: true},
		"defaults":             {one: "DefaultsSection", many: "DefaultsSections", full: true},
		"fcgi_apps":            {one: "FCGIApplication", many: "FCGIApplications", full: true},
		"frontends":            {one: "Frontend", many: "Frontends", full: true},
		"http_errors_sections": {one: "HTTPErrorsSection", many: "HTTPErrorsSections", putDone: true},
		"log_forwards":         {one: "LogForward", many: "LogForwards", full: true},
		"log_profiles":         {one: "LogProfile", many: "LogProfiles", putDone: true},
		"mailers_section":      {one: "MailersSection", many: "MailersSections", full: true, putDone: true},
		"peer_section":         {one: "PeerSection", many: "PeerSections", full: true, fixed: true},
		"programs":             {one: "Program", many: "Programs"},
		"resolvers":            {one: "Resolver", many: "Resolvers", full: true},
		"rings":                {one: "Ring", many: "Rings", full: true},
		"userlists":            {one: "UserList", many: "UserLists", full: true, fixed: true},
	}
}

// entries are what is named by a section in the query.
func entries() map[string]resource {
	return map[string]resource{
		"crt_loads":      {one: "CrtLoad", many: "CrtLoads", query: "crt_store", putDone: true},
		"groups":         {one: "Group", many: "Groups", query: "userlist"},
		"mailer_entries": {one: "MailerEntry", many: "MailerEntries", query: "mailers_section"},
		"nameservers":    {one: "Nameserver", many: "Nameservers", query: "resolver"},
		"peer_entries":   {one: "PeerEntry", many: "PeerEntries", query: "peer_section"},
		"users":          {one: "User", many: "Users", query: "userlist"},
	}
}

// rules are what stands by index in several kinds of sections.
func rules() map[string]resource {
	index := func(one, replace string) resource {
		return resource{one: one, many: one + "s", replace: replace, byIndex: true}
	}
	return map[string]resource{
		"acls":                      {one: "ACL", many: "ACLs", replace: "Acls", byIndex: true},
		"backend_switching_rules":   index("BackendSwitchingRule", "BackendSwitchingRules"),
		"captures":                  index("DeclareCapture", "DeclareCaptures"),
		"filters":                   index("Filter", "Filters"),
		"http_after_response_rules": index("HTTPAfterResponseRule", "HTTPAfterResponseRules"),
		"http_checks":               index("HTTPCheck", "HTTPChecks"),
		"http_error_rules":          index("HTTPErrorRule", "HTTPErrorRules"),
		"http_request_rules":        index("HTTPRequestRule", "HTTPRequestRules"),
		"http_response_rules":       index("HTTPResponseRule", "HTTPResponseRules"),
		"log_targets":               index("LogTarget", "LogTargets"),
		"quic_initial_rules":        index("QUICInitialRule", "QUICInitialRules"),
		"server_switching_rules":    index("ServerSwitchingRule", "ServerSwitchingRules"),
		"stick_rules":               index("StickRule", "StickRules"),
		"tcp_checks":                index("TCPCheck", "TCPChecks"),
		"tcp_request_rules":         index("TCPRequestRule", "TCPRequestRules"),
		"tcp_response_rules":        index("TCPResponseRule", "TCPResponseRules"),
	}
}

// children are what stands in the sections, by the path of the section and
// their own.
func children() map[string]resource {
	all := map[string]resource{
		"backends/server_templates": {one: "ServerTemplate", many: "ServerTemplates"},
		"backends/servers":          {one: "Server", many: "Servers", parent: "backend"},
		"frontends/binds":           {one: "Bind", many: "Binds", parent: "frontend"},
		"frontends/ssl_front_uses":  {one: "SSLFrontUse", many: "SSLFrontUses", parent: "frontend", byIndex: true, posts: true, putDone: true},
		"log_forwards/binds":        {one: "Bind", many: "Binds", parent: "log_forward"},
		"log_forwards/dgram_binds":  {one: "DgramBind", many: "DgramBinds"},
		"peers/binds":               {one: "Bind", many: "Binds", parent: "peers"},
		"peers/servers":             {one: "Server", many: "Servers", parent: "peers"},
		"peers/tables":              {one: "Table", many: "Tables"},
		"rings/servers":             {one: "Server", many: "Servers", parent: "ring"},
	}
	byIndex := rules()
	for _, section := range []struct {
		path, parent string
		rules        []string
	}{
		{"backends", "backend", []string{
			"acls", "filters", "http_after_response_rules", "http_checks", "http_error_rules", "http_request_rules",
			"http_response_rules", "log_targets", "server_switching_rules", "stick_rules", "tcp_checks", "tcp_request_rules", "tcp_response_rules",
		}},
		{"defaults", "defaults", []string{
			"acls", "http_after_response_rules", "http_checks", "http_error_rules", "http_request_rules",
			"http_response_rules", "log_targets", "quic_initial_rules", "tcp_checks", "tcp_request_rules", "tcp_response_rules",
		}},
		{"frontends", "frontend", []string{
			"acls", "backend_switching_rules", "captures", "filters", "http_after_response_rules", "http_error_rules",
			"http_request_rules", "http_response_rules", "log_targets", "quic_initial_rules", "tcp_request_rules",
		}},
		{"fcgi_apps", "fcgi-app", []string{"acls"}},
		{"log_forwards", "log_forward", []string{"log_targets"}},
		{"peers", "peers", []string{"log_targets"}},
	} {
		for _, name := range section.rules {
			r := byIndex[name]
			r.parent = section.parent
			r.missing = section.path == "defaults" && notInDefaults(name)
			all[section.path+"/"+name] = r
		}
	}
	return all
}

// notInDefaults reports the rules that stand in the specification of the API
// for defaults sections, but that version 3.2.4 answers 501 for. A whole section
// can have them.
func notInDefaults(rules string) bool {
	switch rules {
	case "acls", "http_after_response_rules", "http_request_rules", "http_response_rules", "tcp_request_rules", "tcp_response_rules":
		return true
	}
	return false
}

// find returns the resource of a path below configuration/, the name of the
// section around it as far as the path has it, and the rest of the path: the
// name or index of one of them.
func find(path []string) (res resource, parent, key string, ok bool) {
	switch {
	case len(path) > 1 && path[0] == "global" && path[1] == "log_targets":
		res = rules()["log_targets"]
		res.parent = "global"
		path = path[1:]
		return res, "", last(path), len(path) <= 2
	case len(path) == 1 || len(path) == 2:
		flat := sections()
		maps.Copy(flat, entries())
		res, ok = flat[path[0]]
		return res, "", last(path), ok
	case len(path) == 3 || len(path) == 4:
		res, ok = children()[path[0]+"/"+path[2]]
		return res, path[1], last(path[2:]), ok
	}
	return resource{}, "", "", false
}

// last is what follows the first element, "" if nothing does.
func last(path []string) string {
	if len(path) < 2 {
		return ""
	}
	return path[1]
}
