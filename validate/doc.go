// Package validate says whether HAProxy accepts a configuration, before a deployment, and
// names every wrong line.
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
// # Costs
//
// Keep the [Validator]: it reads only the changed sections. It does not run haproxy if only
// endpoints, backends like others, entries of maps or certificates of the same kind changed:
// haproxy accepts those. See [Validator.Semantics].
//
// # Limits
//
//   - The local haproxy may be another version than the instance's. Set
//     [Validator.TargetVersion], and [Report.OtherVersion] and
//     [Error.OtherVersion] tell.
//   - haproxy reads files outside of the layout's folders from this machine. It
//     also resolves names of hosts, users and groups here.
//   - haproxy runs the Lua that the configuration loads.
package validate
