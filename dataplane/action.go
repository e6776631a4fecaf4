package dataplane

// actionKind says what an action does to a running HAProxy.
type actionKind int

const (
	setServer actionKind = iota
	addServer
	deleteServer
	changeMap
	updateCertificate
	newCertificate
	deleteCertificate
	addCrtListEntry
	deleteCrtListEntry
	updateCrtListEntry
	changePatterns
	updateCA
	updateCRL
	setFrontend
	setGlobal
)

// action is a change of a running HAProxy that takes no reload, independent of
// how it is sent. Unlike an [Op] it may hold secrets: never print one.
type action struct {
	kind actionKind

	// setServer, addServer, deleteServer.
	backend, server string
	fields          []serverField // setServer: what changes
	args            []string      // addServer, deleteServer: the words after the name, address first

	// setFrontend, setGlobal: connections at most, and the frontends that get it.
	limit     string
	frontends []string

	// changeMap, changePatterns.
	changes []mapChange
	replace bool // the order or repeated keys matter: only the whole content will do

	// All but servers and limits.
	file File // its new state; in deleteCertificate its last one

	// crt-lists: words of the entry, the certificate first.
	entry []string
}

// serverField is a new value of a server: "address" (IP:port), "weight",
// "maxconn" (0 means no limit), "state" ("ready" or "maint"), "port" of the
// health check (0 means that of the address), "addr", "agent-addr",
// "agent-port", "agent-send".
type serverField struct{ name, value string }

// mapChange is what happens to one key of a map, or to one pattern.
type mapChange struct {
	action     Action
	key, value string
}
