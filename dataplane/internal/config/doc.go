// Package config holds one configuration: the text of haproxy.cfg, cut into
// sections and lines, and the files that the text names.
//
// It is the vocabulary of the packages beside it. Package dataplane converts its
// public types to these at its edge.
package config
