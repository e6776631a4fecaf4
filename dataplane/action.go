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
)

// action is a change of a running HAProxy that takes no reload, independent of
// how it is sent. Unlike an [Op] it may hold secrets: never print one.
type action struct {
	kind actionKind

	// setServer, addServer, deleteServer.
	backend, server string
	fields          []serverField // setServer: what changes
	args            []string      // addServer: the words after the name, address first

	// changeMap.
	changes []mapChange
	replace bool // the order or repeated keys matter: only the whole content will do

	// All but servers.
	file File // its new state; in deleteCertificate its last one

	// crt-lists: words of the entry, the certificate first.
	entry []string
}

// serverField is a new value of a server: "address" (IP:port), "weight",
// "maxconn" (0 means no limit), "state" ("ready" or "maint").
type serverField struct{ name, value string }

// mapChange is what happens to one key of a map.
type mapChange struct {
	action     Action
	key, value string
}
