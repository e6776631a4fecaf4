// Package haproxymodel compares sections of a HAProxy configuration by the
// models of client-native: what a line means, in fields.
//
//	sections := haproxymodel.Parse(inputs)          // text to models, in one pass
//	steps := haproxymodel.Diff(old, new)            // what the models tell apart
//	lines := haproxymodel.DiffLines(old, new)       // and what they do not
//
// One descriptor table, [Kinds], names every kind of section and every
// collection of children with its path in the Dataplane API v3; one reflective
// walk does the comparing. The models lose some lines and change others. What a
// model holds is therefore written back to text, and a line without a
// counterpart there is told by [Section.Unmodelled]; [DiffLines] compares those
// as text, and the order of lines of one keyword where it means something. When
// Diff and DiffLines are both empty, two sections say the same; whether the order
// between keywords counts is for the caller to know.
//
// The Dataplane API tells children apart by name (servers, binds, users, ...) or
// by position (rules, ACLs, log targets, ...). The steps of Diff can be sent one
// after the other as they come. Where Unmodelled has lines of a collection by
// position (see [Line]), the API may count other children than the model does,
// and positions must not be trusted.
//
// Values may be secrets: see [Field], [Secret] and [Line.Redacted].
package haproxymodel
