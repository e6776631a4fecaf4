package command

import (
	"flag"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Env gives a flag that is not given the value of a variable of the environment, with a
// prefix, unless that is not set or empty. Checks judge it as if it were given, and name
// the variable. Call it after Parse.
func (f *Flags) Env(name, variable, prefix string) {
	value := os.Getenv(variable)
	if f.given[name] || value == "" {
		return
	}
	f.from[name] = "$" + variable
	one := &noted{f.Lookup(name).Value, name, f}
	_ = one.Set(prefix + value) // which notes its error
}

// label is how an error names a flag: by the variable that it comes from.
func (f *Flags) label(name string) string {
	if from := f.from[name]; from != "" {
		return from
	}
	return "-" + name
}

// CheckObjects checks flags whose values are [namespace/]name, behind a prefix.
func (f *Flags) CheckObjects(prefix string, names ...string) {
	for _, name := range names {
		namespace, object, qualified := strings.Cut(strings.TrimPrefix(f.value(name), prefix), "/")
		if !qualified {
			namespace, object = "default", namespace
		}
		ok := len(validation.IsDNS1123Label(namespace)) == 0 && len(validation.IsDNS1123Subdomain(object)) == 0
		f.Check(name, ok, prefix+"[namespace/]name")
	}
}

// Values are all flags with their values, for [observe.Subject.Config]. Those that are
// functions, such as -debug-token-file, have none; -log-level and -log-format have what
// is in force.
func (f *Flags) Values() map[string]string {
	values := map[string]string{}
	f.VisitAll(func(one *flag.Flag) { values[one.Name] = one.Value.String() })
	values["log-level"], values["log-format"] = f.log.Level(), f.log.Format()
	return values
}
