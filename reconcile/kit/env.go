package kit

import (
	"flag"
	"os"
	"strings"
)

// Env sets a flag that the command line does not set: to prefix plus the value of the
// environment variable. An unset or empty variable changes nothing. Checks judge the value
// like a given one, and their errors name the variable. Call Env after Parse.
func (f *Flags) Env(name, variable, prefix string) {
	value := os.Getenv(variable)
	if f.given[name] || value == "" {
		return
	}
	f.from[name] = "$" + variable
	one := &noted{f.Lookup(name).Value, name, f}
	_ = one.Set(prefix + value) // Set records its error
}

// label returns the name of a flag in errors: the variable, if the value comes from one.
func (f *Flags) label(name string) string {
	if from := f.from[name]; from != "" {
		return from
	}
	return "-" + name
}

// CheckObjects checks flags whose values are prefix plus [namespace/]name.
func (f *Flags) CheckObjects(prefix string, names ...string) {
	for _, name := range names {
		object := strings.TrimPrefix(f.value(name), prefix)
		f.Check(name, IsObject(object) || IsObject("default/"+object), prefix+"[namespace/]name")
	}
}

// Values returns all flags with their values, for [observe.Subject.Config]. Function flags,
// such as -debug-token-file, have no value. -log-level and -log-format have the values in
// force.
func (f *Flags) Values() map[string]string {
	values := map[string]string{}
	f.VisitAll(func(one *flag.Flag) { values[one.Name] = one.Value.String() })
	values["log-level"], values["log-format"] = f.log.Level(), f.log.Format()
	return values
}
