// Package reconciletest helps to test a controller that is made with package
// reconcile: [Run] plays scripts that say which resources there
// are, what happens, and what must be deployed; [Cases] runs the cases that stand
// with templates as tests.
//
// # Scripts
//
// A script is a txtar archive: commands, one a line, and behind them the files
// that they name. Time is that of testing/synctest: a minute takes none.
//
//	# An instance that fails is tried again by itself.
//	instance a b
//	create web.yaml
//	start
//	expect haproxy.cfg contains 'server s1 192.0.2.1:80'
//	fail instance b 500
//	update moved.yaml
//	wait deployed a
//	expect instance b stale
//	recover instance b
//	advance 2s
//	cmp haproxy.cfg want.cfg
//	expect reloads b 1
//
//	-- web.yaml --
//	apiVersion: v1
//	kind: Service
//	...
//
// Words are separated by spaces; a word in single quotes may have some. A line
// that begins with # is a comment. After each command everything that can happen
// without the time going on has happened.
//
// These commands act:
//
//	instance NAME...              these are the instances from now on; before start, "haproxy" unless said
//	create FILE..., update FILE...
//	                              the objects are as in these manifests
//	delete FILE...                the objects of these manifests go
//	start                         starts the controller, with a trigger once all resources are known
//	trigger                       asks for a reconciliation
//	advance DURATION              lets time pass
//	wait deployed [NAME...]       lets time pass, up to 5 minutes, until these instances, or all, have the
//	                              newest valid configuration
//	fail instance NAME WHY        its deployments fail: 500 or another HTTP status, conflict, invalid, reload,
//	                              unauthorized, down
//	fail validation MESSAGE       no configuration is valid
//	hang instance NAME            its deployments end with their deadline
//	recover instance NAME, recover validation
//	drift instance NAME           it is emptied behind the loop's back
//	leader lost, leader won       another process leads, or this one again
//
// These stand after expect, or after expect not:
//
//	TARGET[@NAME] contains REGEXP   what that instance, or each, has; targets are haproxy.cfg, map:NAME, file:NAME,
//	                                cert:NAME, crt-list:NAME, ca:NAME
//	instance NAME current|stale|failing|empty
//	reloads [NAME] N                of that instance, or of all, since start
//	deployments [NAME] N            that changed something, successful ones
//	events TYPE...                  in this order, others in between, since the last expect events
//	refused REGEXP                  a line of what is refused
//	quarantined REGEXP              a line of the resources in quarantine, with what is wrong
//	error REGEXP                    the error of the last reconciliation
//	ready                           the loop is
//
// and
//
//	cmp TARGET[@NAME] FILE          the text is that of the file
package reconciletest
