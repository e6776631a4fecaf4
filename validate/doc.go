// Package validate says whether HAProxy takes a configuration before HAProxy
// gets it, and names every line that is wrong.
//
// There are two phases. [Syntax] reads the text on its own, in milliseconds:
// keywords, names, references. [Validator.Semantics] then runs `haproxy -c` over
// a copy of the text and its files. Each phase finds all errors at once and
// returns them in one [*Error]:
//
//	v := &validate.Validator{Layout: layout}
//	report, err := v.Check(ctx, cfg)
//	var invalid *validate.Error
//	switch {
//	case errors.As(err, &invalid):
//		for _, f := range invalid.Findings {
//			log.Print(f) // /etc/haproxy/haproxy.cfg:12: backend shop: unknown keyword ...
//		}
//	case err != nil: // haproxy is not installed, or gave no verdict
//	}
//
// # What it costs
//
// Keep the [Validator]. It reads only the sections that changed. It does not run
// haproxy when only endpoints, backends like others, entries of maps or certificates
// changed: haproxy takes those. See [Validator.Semantics].
//
// # What it does not know
//
//   - The local haproxy may be another version than the target's. Set
//     [Validator.TargetVersion], and [Report.OtherVersion] and
//     [Error.OtherVersion] tell.
//   - haproxy looks on this machine for files outside of the layout's folders. It
//     also resolves names of hosts, users and groups here.
//   - haproxy runs the Lua that the configuration loads.
package validate
