// Package haproxyctl speaks to a running HAProxy through its sockets: to a worker through its
// stats socket (management manual, section 9.3), to the master process through the master
// socket (section 9.4).
//
// It frames commands and answers. The caller knows what the commands mean.
package haproxyctl
