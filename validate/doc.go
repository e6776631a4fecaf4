// Package validate says whether a HAProxy would take a configuration, before
// it is sent to one, and names every line that is wrong.
//
// There are two phases. The first, [Syntax], reads the text on its own, in
// some milliseconds: keywords, names, references. The second asks the haproxy
// binary (`haproxy -c`) about a copy in a folder of its own, with the files of
// the configuration laid out as on the target; see [Validator.Semantics]. Both
// find everything that is wrong at once, and fail with an [*Error]:
//
//	v := &validate.Validator{Layout: layout}
//	report, err := v.Check(ctx, cfg)
//	var invalid *validate.Error
//	switch {
//	case errors.As(err, &invalid):
//		for _, f := range invalid.Findings {
//			log.Print(f) // /etc/haproxy/haproxy.cfg:12: backend shop: unknown keyword ...
//		}
//	case err != nil: // no haproxy, or it did not answer
//	}
//
// # What it costs
//
// A [Validator] that is kept parses only the sections that changed, and does
// not run haproxy for a configuration that it has seen, nor for one that
// differs from the last that haproxy accepted only in what a running HAProxy
// checks itself when it is told: see [Report.Inherited]. A change of endpoints
// so costs no haproxy at all.
//
// # What it does not know
//
// The local binary may be another version than the target's: give the target's
// by [Validator.TargetVersion], and [Report.OtherVersion] and
// [Error.OtherVersion] say so. Files that the configuration names
// outside of the folders of the layout are looked for where they are, on this
// machine. Addresses that are names are resolved here, and the users and groups
// of a global section must exist here. Lua that the configuration loads is run,
// as HAProxy does when it checks.
package validate
