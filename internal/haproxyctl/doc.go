// Package haproxyctl speaks to a running HAProxy through its sockets: to a
// worker through its stats socket (management manual, section 9.3), to the
// master process through the master socket (section 9.4).
//
// It knows how commands and answers are framed; what the commands mean is the
// caller's business.
package haproxyctl
