package dataplane

import (
	"fmt"
	"slices"
)

// RuntimeChange is a kind of change that a running HAProxy takes without a
// reload, through one transport. What has no RuntimeChange takes one reload.
type RuntimeChange struct {
	Kind      string    // as in [Op.Kind]: "server", "map entry", "certificate", ...
	Action    Action    // as in [Op.Action]
	Field     string    // as in [Change.Field]: "address", ...; "" for the whole
	Transport Transport // the way to the process
	Since     Version   // of HAProxy; for API of the Dataplane API
	Where     string    // what it takes beyond the version; "" for nothing
}

// String tells the change on one line, such as "update server weight (sockets,
// 2.6): a dynamic balance".
func (c RuntimeChange) String() string {
	what := string(c.Action) + " " + c.Kind
	if c.Field != "" {
		what += " " + c.Field
	}
	s := fmt.Sprintf("%s (%s, %s)", what, c.Transport, c.Since)
	if c.Where != "" {
		s += ": " + c.Where
	}
	return s
}

// String returns "sockets" or "api".
func (t Transport) String() string {
	switch t {
	case Sockets:
		return "sockets"
	case API:
		return "api"
	}
	return fmt.Sprintf("transport(%d)", int(t))
}

// What the changes take beyond a version.
const (
	whereDynamic  = "balance roundrobin, leastconn or random"
	whereChecked  = "the server has a health check before and after"
	whereAgent    = "the server has an agent check before and after"
	whereWords    = "keys and values of safe characters, at most 2,000 entries, no repeated key and no order"
	whereMap      = "only map converters and ACLs with -M use the file"
	whereList     = "the list is not empty, and its default certificate stays unless strict-sni makes it idle"
	wherePatterns = "only ACLs with -f use the file"
)

// RuntimeChanges returns the table by which [Diff], [Local] and [Client] decide
// what takes a reload. The rows for sockets have been measured with HAProxy 2.6,
// 3.0 and 3.2, each against a process that starts with the new configuration;
// the commands are those of the management manual, section 9.3. What a command
// could change but nothing could read back has no row for the API.
func RuntimeChanges() []RuntimeChange { return slices.Clone(runtimeChanges) }

var (
	haproxy26, haproxy30 = Version{2, 6}, Version{3, 0}
	api30, api32         = Version{3, 0}, Version{3, 2}
)

var runtimeChanges = []RuntimeChange{
	{"server", Update, "address", Sockets, haproxy26, "from an IP address and port to another"},
	{"server", Update, "address", API, api30, "from an IP address and port to another"},
	{"server", Update, "weight", Sockets, haproxy26, "the balance is dynamic or consistent; no agent check"},
	{"server", Update, "weight", API, api30, "the balance is dynamic or consistent; no agent check"},
	{"server", Update, "state", Sockets, haproxy26, "between enabled and disabled"},
	{"server", Update, "state", API, api30, "between enabled and disabled"},
	{"server", Update, "maxconn", Sockets, haproxy26, "no minconn"},
	{"server", Update, "port", Sockets, haproxy26, whereChecked},
	{"server", Update, "addr", Sockets, haproxy26, whereChecked + "; no agent check"},
	{"server", Update, "agent-addr", Sockets, haproxy26, whereAgent},
	{"server", Update, "agent-port", Sockets, haproxy26, whereAgent},
	{"server", Update, "agent-send", Sockets, haproxy26, whereAgent},
	{"server", Create, "", Sockets, haproxy26, whereDynamic + "; an IP address and port; keywords that add server takes"},
	{"server", Create, "", API, api30, whereDynamic + "; HAProxy 3.0; no check; keywords that the API knows"},
	{"server", Create, "cookie", Sockets, haproxy30, "not a dynamic one"},
	{"server", Delete, "", Sockets, haproxy26, whereDynamic + "; no rule names it and no server tracks it"},
	{"server", Delete, "", API, api30, whereDynamic + "; HAProxy 3.0; no rule names it and no server tracks it"},
	{"frontend", Update, "maxconn", Sockets, haproxy26, "a number before and after; no server has minconn"},
	{"global", Update, "maxconn", Sockets, haproxy26, "up to what the process started with; no server has minconn"},
	{"map entry", Create, "", Sockets, haproxy26, whereMap},
	{"map entry", Create, "", API, api30, whereMap + "; " + whereWords},
	{"map entry", Update, "", Sockets, haproxy26, whereMap},
	{"map entry", Update, "", API, api30, whereMap + "; " + whereWords},
	{"map entry", Delete, "", Sockets, haproxy26, whereMap},
	{"map entry", Delete, "", API, api30, whereMap + "; " + whereWords},
	{"acl entry", Create, "", Sockets, haproxy26, wherePatterns},
	{"acl entry", Delete, "", Sockets, haproxy26, wherePatterns},
	{"certificate", Update, "", Sockets, haproxy26, "crt or a crt-list uses the file"},
	{"certificate", Update, "", API, api32, "crt or a crt-list uses the file"},
	{"certificate", Create, "", Sockets, haproxy26, "only a crt-list uses the file"},
	{"certificate", Create, "", API, api32, "only a crt-list uses the file"},
	{"certificate", Delete, "", Sockets, haproxy26, "only a crt-list uses the file"},
	{"certificate", Delete, "", API, api32, "only a crt-list uses the file"},
	{"crt-list entry", Create, "", Sockets, haproxy26, whereList},
	{"crt-list entry", Create, "", API, api32, whereList},
	{"crt-list entry", Update, "", Sockets, haproxy26, whereList},
	{"crt-list entry", Update, "", API, api32, whereList},
	{"crt-list entry", Delete, "", Sockets, haproxy26, whereList},
	{"crt-list entry", Delete, "", API, api32, whereList},
	{"ca", Update, "", Sockets, haproxy26, "at most 13 KiB; only ca-file and ca-verify-file use it"},
	{"ca", Update, "bundle", Sockets, haproxy30, "more than that"},
	{"crl", Update, "", Sockets, haproxy26, "at most 13 KiB; only crl-file uses it"},
}

// AtRuntime reports whether the table allows such a change for the target. An
// unknown newer version counts as the newest one known. What a row needs beyond
// the version, [RuntimeChange.Where] says; only [Diff] sees whether it is there.
func (t Target) AtRuntime(kind string, action Action, field string) bool {
	return slices.ContainsFunc(runtimeChanges, func(c RuntimeChange) bool {
		return c.Kind == kind && c.Action == action && c.Field == field && c.Transport == t.Transport &&
			t.version().Compare(c.Since) >= 0
	})
}

// version is the version, or else the oldest one that the transport has.
func (t Target) version() Version {
	if t.Version == (Version{}) && t.Transport == API {
		return Version{3, 0}
	}
	return t.Version.orOldest()
}

// whyNot says why the target cannot make such a change at runtime, "" if the
// table allows it.
func (t Target) whyNot(kind string, action Action, field string) string {
	if t.AtRuntime(kind, action, field) {
		return ""
	}
	what := kind
	if field != "" {
		what = fmt.Sprintf("the %s of a %s", field, kind)
	}
	if t.Transport == API {
		return fmt.Sprintf("the Dataplane API %s cannot %s %s in the running process", t.version(), action, what)
	}
	return fmt.Sprintf("HAProxy %s cannot %s %s at runtime", t.version(), action, what)
}
