// Package host runs one HAProxy in master-worker mode on this machine: its
// stored configuration, its process, and the Sync that brings both to a desired
// configuration.
//
// The files are stored as generations. A generation is a folder with
// haproxy.cfg and the folders of the other files, and "current" is a symbolic
// link to one of them. One rename changes all files at once, and another one
// goes back.
package host
