// Package settings has a whole controller as data: what is watched, the templates,
// the intervals, how the instances are found, and cases.
//
// [Parse] reads [Settings] from YAML, and [Schema] describes them. A [Program] is
// settings compiled. A [Live] follows a file or a ConfigMap: new settings take
// effect while everything runs, after all checks and in one step, or not at all.
package settings
