package change

import (
	"cmp"
	"fmt"
	"slices"
)

// Row is one kind of change that a running HAProxy takes without a reload. A change without a
// row takes a reload.
type Row struct {
	Kind   string // as in Step.Kind, or BackendFromDefaults
	Action Action
	Field  string // "" for the whole
	Where  string // conditions beyond the versions

	Since    Version // first HAProxy that can, through its sockets
	API      Version // first Dataplane API that can; zero if none can
	SinceAPI Version // first HAProxy that can, through the Dataplane API
	WhereAPI string  // conditions for the Dataplane API, if they differ

	*ServerField // of rows about a field of a server that stays
}

// BackendFromDefaults is the kind of a backend that takes all its lines, except servers, from
// a named defaults section. HAProxy itself can make and delete such a backend while requests
// go on. Its steps have the kind "backend".
const BackendFromDefaults = "backend from defaults"

const (
	whereDynamic  = "balance roundrobin, leastconn or random"
	whereMap      = "only map converters and ACLs with -M use the file"
	whereWords    = "; keys and values of safe characters, at most 2,000 entries, no repeated key and no order"
	wherePatterns = "only ACLs with -f use the file"
	whereList     = "the list is not empty, and its default certificate stays unless strict-sni makes it idle"
	whereListed   = "only a crt-list uses the file"
	whereSpare    = "a spare backend has its lines but for name and servers, the servers can come at runtime, and only whole values of maps name it"
	whereGone     = "there are spare backends, and nothing names it"
	whereFrom     = "it has servers that can come at runtime and no other lines, the defaults have a name and stay, and the mode is http or tcp"
	whereGoneFrom = "it has servers and no other lines, the defaults have a name, and nothing names it"
	whereUsed     = "crt or a crt-list uses the file"
)

// table lists what the running HAProxy takes. The fields of servers stand in the order in
// which plans show them. The commands are those of the management manual, section 9.3. The
// rows for sockets were measured with HAProxy 2.6, 3.0, 3.2 and 3.4,
// each against a process that starts with the new configuration. The rows for the API were
// measured with its version 3.2. Before HAProxy 2.7, the master socket answers the API's
// first question about servers with an error.
var table = []Row{
	{Kind: "server", Action: Update, Field: "address", Where: "from an IP address and port to another",
		Since: HAProxy26, API: API30, SinceAPI: HAProxy27, ServerField: &address},
	{Kind: "server", Action: Update, Field: "weight", Where: "the balance is dynamic or consistent; no agent check",
		Since: HAProxy26, API: API30, SinceAPI: HAProxy27, ServerField: &weight},
	{Kind: "server", Action: Update, Field: "maxconn", Where: "no minconn", Since: HAProxy26, ServerField: &maxconn},
	{Kind: "server", Action: Update, Field: "state", Where: "between enabled and disabled",
		Since: HAProxy26, API: API30, SinceAPI: HAProxy27, ServerField: &state},

	{Kind: "server", Action: Create, Where: whereDynamic + "; an IP address and port; keywords that add server takes", Since: HAProxy26,
		API: API30, SinceAPI: HAProxy30, WhereAPI: whereDynamic + "; an IP address and port; no check; keywords that the API knows"},
	{Kind: "server", Action: Create, Field: "cookie", Where: "not a dynamic one", Since: HAProxy30,
		API: API30, SinceAPI: HAProxy30, WhereAPI: "a dynamic one"},
	{Kind: "server", Action: Delete, Where: whereDynamic + "; no rule names it and no server tracks it", Since: HAProxy26,
		API: API30, SinceAPI: HAProxy30},

	{Kind: "backend", Action: Create, Where: whereSpare, Since: HAProxy26},
	{Kind: "backend", Action: Delete, Where: whereGone, Since: HAProxy26},
	{Kind: BackendFromDefaults, Action: Create, Where: whereFrom, Since: HAProxy34},
	{Kind: BackendFromDefaults, Action: Delete, Where: whereGoneFrom, Since: HAProxy34},

	{Kind: "map entry", Action: Create, Where: whereMap, Since: HAProxy26, API: API30, SinceAPI: HAProxy26, WhereAPI: whereMap + whereWords},
	{Kind: "map entry", Action: Update, Where: whereMap, Since: HAProxy26, API: API30, SinceAPI: HAProxy26, WhereAPI: whereMap + whereWords},
	{Kind: "map entry", Action: Delete, Where: whereMap, Since: HAProxy26, API: API30, SinceAPI: HAProxy26, WhereAPI: whereMap + whereWords},
	{Kind: "acl entry", Action: Create, Where: wherePatterns, Since: HAProxy26, API: API30, SinceAPI: HAProxy26, WhereAPI: wherePatterns + whereWords},
	{Kind: "acl entry", Action: Delete, Where: wherePatterns, Since: HAProxy26, API: API30, SinceAPI: HAProxy26, WhereAPI: wherePatterns + whereWords},
	{Kind: "certificate", Action: Update, Where: whereUsed, Since: HAProxy26, API: API32, SinceAPI: HAProxy26},
	{Kind: "certificate", Action: Create, Where: whereListed, Since: HAProxy26, API: API32, SinceAPI: HAProxy26},
	{Kind: "certificate", Action: Delete, Where: whereListed, Since: HAProxy26, API: API32, SinceAPI: HAProxy26},
	{Kind: "crt-list entry", Action: Create, Where: whereList, Since: HAProxy26, API: API32, SinceAPI: HAProxy26},
	{Kind: "crt-list entry", Action: Update, Where: whereList, Since: HAProxy26, API: API32, SinceAPI: HAProxy26},
	{Kind: "crt-list entry", Action: Delete, Where: whereList, Since: HAProxy26, API: API32, SinceAPI: HAProxy26},
	{Kind: "ca", Action: Update, Where: "at most 13 KiB; only ca-file and ca-verify-file use it", Since: HAProxy26, API: API32, SinceAPI: HAProxy26},
}

// Table returns a copy of the table.
func Table() []Row { return slices.Clone(table) }

// WhyNot says why the target cannot make such a change at runtime. It returns ""
// if the table allows it.
func (t Target) WhyNot(kind string, action Action, field string) string {
	if t.Silent {
		return "the running HAProxy has no stats socket that answers"
	}
	what := string(action) + " a " + kind
	if field != "" {
		what = string(action) + " the " + field + " of a " + kind
	}
	for i := range table {
		if r := &table[i]; r.Kind == kind && r.Action == action && r.Field == field {
			return t.lacks(r, what)
		}
	}
	return t.lacks(nil, what)
}

// lacks says which version the target would need for a row, or "" if it has it. No version
// has a change without a row.
func (t Target) lacks(r *Row, what string) string {
	switch {
	case t.Transport == Sockets && (r == nil || t.Version.Compare(r.Since) < 0):
		return fmt.Sprintf("HAProxy %s cannot %s at runtime", t.Version, what)
	case t.Transport == Sockets:
		return ""
	case r == nil || r.API == Version{}:
		return fmt.Sprintf("the Dataplane API cannot %s in the running process", what)
	case cmp.Or(t.API, API30).Compare(r.API) < 0:
		return fmt.Sprintf("the Dataplane API before %s cannot %s in the running process", r.API, what)
	case t.Version.Compare(r.SinceAPI) < 0:
		return fmt.Sprintf("the Dataplane API can %s in the running process of HAProxy %s and later only", what, r.SinceAPI)
	}
	return ""
}
