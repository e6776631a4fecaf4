// Package haproxymodel compares sections of a HAProxy configuration by the
// models of client-native: what a line means, in fields.
//
// One descriptor table names every kind of section and every collection of
// children, and one reflective walk does the comparing. What the models cannot
// hold is told by [Section.Unmodelled], so that a caller compares it as text:
// no difference is ever lost.
package haproxymodel
