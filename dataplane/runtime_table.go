package dataplane

import (
	"cmp"
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
	Since     Version   // of HAProxy
	API       Version   // of the Dataplane API, where that is the way
	Where     string    // what it takes beyond the versions; "" for nothing
}

// String tells the change on one line, such as "update server weight (sockets,
// HAProxy 2.6): a dynamic balance".
func (c RuntimeChange) String() string {
	what := string(c.Action) + " " + c.Kind
	if c.Field != "" {
		what += " " + c.Field
	}
	s := fmt.Sprintf("%s (%s, HAProxy %s)", what, c.Transport, c.Since)
	if c.Transport == API {
		s = fmt.Sprintf("%s (%s %s, HAProxy %s)", what, c.Transport, c.API, c.Since)
	}
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
	whereWhole    = "all at once: more than 8 KiB of keys and values of safe characters"
	whereMap      = "only map converters and ACLs with -M use the file"
	whereList     = "the list is not empty, and its default certificate stays unless strict-sni makes it idle"
	wherePatterns = "only ACLs with -f use the file"
)

// RuntimeChanges returns the table by which [Diff], [Local] and [Client] decide
// what takes a reload. The rows for sockets have been measured with HAProxy 2.6,
// 3.0 and 3.2, each against a process that starts with the new configuration;
// the commands are those of the management manual, section 9.3.
//
// The rows for the API have been measured with version 3.2 of it. What a command
// could change but nothing can read back has none, such as the port of a health
// check. Before HAProxy 2.7 that goes for all of servers and frontends: there the
// master socket answers what the API asks with an error first.
func RuntimeChanges() []RuntimeChange { return slices.Clone(runtimeChanges) }

var (
	haproxy26, haproxy27, haproxy30 = Version{2, 6}, Version{2, 7}, Version{3, 0}

	api30, api32 = Version{3, 0}, Version{3, 2}
	noAPI        = Version{}
)

// wholeMap is how the API replaces a map that it cannot change entry by entry.
var wholeMap = RuntimeChange{"map entry", Update, "", API, haproxy27, api30, whereMap + "; " + whereWhole}

var runtimeChanges = []RuntimeChange{
	{"server", Update, "address", Sockets, haproxy26, noAPI, "from an IP address and port to another"},
	{"server", Update, "address", API, haproxy27, api30, "from an IP address and port to another"},
	{"server", Update, "weight", Sockets, haproxy26, noAPI, "the balance is dynamic or consistent; no agent check"},
	{"server", Update, "weight", API, haproxy27, api30, "the balance is dynamic or consistent; no agent check"},
	{"server", Update, "state", Sockets, haproxy26, noAPI, "between enabled and disabled"},
	{"server", Update, "state", API, haproxy27, api30, "between enabled and disabled"},
	{"server", Update, "maxconn", Sockets, haproxy26, noAPI, "no minconn"},
	{"server", Update, "port", Sockets, haproxy26, noAPI, whereChecked},
	{"server", Update, "addr", Sockets, haproxy26, noAPI, whereChecked + "; no agent check"},
	{"server", Update, "agent-addr", Sockets, haproxy26, noAPI, whereAgent},
	{"server", Update, "agent-port", Sockets, haproxy26, noAPI, whereAgent},
	{"server", Update, "agent-send", Sockets, haproxy26, noAPI, whereAgent},
	{"server", Create, "", Sockets, haproxy26, noAPI, whereDynamic + "; an IP address and port; keywords that add server takes"},
	{"server", Create, "", API, haproxy30, api30, whereDynamic + "; an IP address and port; no check; keywords that the API knows"},
	{"server", Create, "cookie", Sockets, haproxy30, noAPI, "not a dynamic one"},
	{"server", Create, "cookie", API, haproxy30, api30, "a dynamic one"},
	{"server", Delete, "", Sockets, haproxy26, noAPI, whereDynamic + "; no rule names it and no server tracks it"},
	{"server", Delete, "", API, haproxy30, api30, whereDynamic + "; no rule names it and no server tracks it"},
	{"frontend", Update, "maxconn", Sockets, haproxy26, noAPI, "a number before and after; no server has minconn"},
	{"frontend", Update, "maxconn", API, haproxy27, api30, "a number before and after; no server has minconn"},
	{"global", Update, "maxconn", Sockets, haproxy26, noAPI, "up to what the process started with; no server has minconn"},
	{"map entry", Create, "", Sockets, haproxy26, noAPI, whereMap},
	{"map entry", Create, "", API, haproxy26, api30, whereMap + "; " + whereWords},
	{"map entry", Update, "", Sockets, haproxy26, noAPI, whereMap},
	{"map entry", Update, "", API, haproxy26, api30, whereMap + "; " + whereWords},
	{"map entry", Delete, "", Sockets, haproxy26, noAPI, whereMap},
	{"map entry", Delete, "", API, haproxy26, api30, whereMap + "; " + whereWords},
	wholeMap,
	{"acl entry", Create, "", Sockets, haproxy26, noAPI, wherePatterns},
	{"acl entry", Create, "", API, haproxy26, api30, wherePatterns + "; safe characters, at most 500 patterns"},
	{"acl entry", Delete, "", Sockets, haproxy26, noAPI, wherePatterns},
	{"acl entry", Delete, "", API, haproxy26, api30, wherePatterns + "; safe characters, at most 500 patterns"},
	{"certificate", Update, "", Sockets, haproxy26, noAPI, "crt or a crt-list uses the file"},
	{"certificate", Update, "", API, haproxy26, api32, "crt or a crt-list uses the file"},
	{"certificate", Create, "", Sockets, haproxy26, noAPI, "only a crt-list uses the file"},
	{"certificate", Create, "", API, haproxy26, api32, "only a crt-list uses the file"},
	{"certificate", Delete, "", Sockets, haproxy26, noAPI, "only a crt-list uses the file"},
	{"certificate", Delete, "", API, haproxy26, api32, "only a crt-list uses the file"},
	{"crt-list entry", Create, "", Sockets, haproxy26, noAPI, whereList},
	{"crt-list entry", Create, "", API, haproxy26, api32, whereList},
	{"crt-list entry", Update, "", Sockets, haproxy26, noAPI, whereList},
	{"crt-list entry", Update, "", API, haproxy26, api32, whereList},
	{"crt-list entry", Delete, "", Sockets, haproxy26, noAPI, whereList},
	{"crt-list entry", Delete, "", API, haproxy26, api32, whereList},
	{"ca", Update, "", Sockets, haproxy26, noAPI, "at most 13 KiB; only ca-file and ca-verify-file use it"},
	{"ca", Update, "", API, haproxy26, api32, "at most 13 KiB; only ca-file and ca-verify-file use it"},
	{"ca", Update, "bundle", Sockets, haproxy30, noAPI, "more than that"},
	{"crl", Update, "", Sockets, haproxy26, noAPI, "at most 13 KiB; only crl-file uses it"},
}

// AtRuntime reports whether the table allows such a change for the target. An
// unknown newer version counts as the newest one known. What a row needs beyond
// the versions, [RuntimeChange.Where] says; only [Diff] sees whether it is there.
func (t Target) AtRuntime(kind string, action Action, field string) bool {
	return t.whyNot(kind, action, field) == ""
}

// whyNot says why the target cannot make such a change at runtime, "" if the
// table allows it.
func (t Target) whyNot(kind string, action Action, field string) (why string) {
	if t.silent {
		return "the running HAProxy has no stats socket that answers"
	}
	for _, c := range runtimeChanges {
		if c.Kind != kind || c.Action != action || c.Field != field || c.Transport != t.Transport {
			continue
		}
		lacks := t.lacks(c)
		if lacks == "" {
			return ""
		}
		why = cmp.Or(why, lacks)
	}
	c := RuntimeChange{Kind: kind, Action: action, Field: field}
	if t.Transport == API {
		return cmp.Or(why, fmt.Sprintf("the Dataplane API cannot %s in the running process", c.what()))
	}
	return cmp.Or(why, fmt.Sprintf("HAProxy %s cannot %s at runtime", t.Version, c.what()))
}

// lacks says which version the target would need for a row of the table, "" if
// it has it.
func (t Target) lacks(c RuntimeChange) string {
	old := t.Version.Compare(c.Since) < 0
	switch {
	case t.Transport == API && t.apiVersion().Compare(c.API) < 0:
		return fmt.Sprintf("the Dataplane API before %s cannot %s in the running process", c.API, c.what())
	case old && t.Transport == API:
		return fmt.Sprintf("the Dataplane API can %s in the running process of HAProxy %s and later only", c.what(), c.Since)
	case old:
		return fmt.Sprintf("HAProxy %s cannot %s at runtime", t.Version, c.what())
	}
	return ""
}

// what tells the change as part of a sentence.
func (c RuntimeChange) what() string {
	if c.Field == "" {
		return fmt.Sprintf("%s a %s", c.Action, c.Kind)
	}
	return fmt.Sprintf("%s the %s of a %s", c.Action, c.Field, c.Kind)
}
