package settings

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"

	"github.com/hapticsdk/haptic/internal/follow"
	"github.com/hapticsdk/haptic/internal/strictyaml"
)

// Error is one mistake in [Settings]: its File, Line, Column, Message and Path, such as
// watchedResources.ingresses.indexBy[0]. Err is the cause, such as a [*templating.Error], if
// there is one.
type Error = strictyaml.Error

// Errors has all mistakes in [Settings], by line. errors.As finds it, and the first *Error in
// it.
type Errors = strictyaml.Errors

// ConfigMapKey is the key of a ConfigMap that holds settings.
const ConfigMapKey = "settings.yaml"

// Parse reads settings from YAML or JSON. It refuses unknown and repeated keys, and wrong
// types, durations, selectors, JSONPath, regular expressions and file names. It returns all
// mistakes at once, as [Errors] with a line each. name is the name of the file in errors.
//
// Parse does not compile templates, because that needs the host's functions. [NewProgram]
// compiles; [ParseProgram] does both.
func Parse(name string, data []byte) (*Settings, error) {
	s, errs := read(name, data)
	if len(errs) > 0 {
		return nil, errs.OrNil()
	}
	return s, nil
}

// FromConfigMap reads the key [ConfigMapKey] of a ConfigMap, as [Parse] does. Lines count
// within its value. It refuses other keys, because they would have no effect.
func FromConfigMap(cm *corev1.ConfigMap) (*Settings, error) {
	name := "ConfigMap " + cm.Namespace + "/" + cm.Name
	text, err := only(name, follow.ConfigMapData(cm))
	if err != nil {
		return nil, err
	}
	return Parse(name+" "+ConfigMapKey, text)
}

// only returns the value of the only key that a ConfigMap of settings may have.
func only(name string, data map[string][]byte) ([]byte, error) {
	var errs Errors
	text, ok := data[ConfigMapKey]
	if !ok {
		errs = append(errs, &Error{File: name, Message: "the key " + ConfigMapKey + " is missing"})
	}
	for key := range data {
		if key != ConfigMapKey {
			errs = append(errs, &Error{File: name, Message: fmt.Sprintf("unknown key %q, only %s is read", key, ConfigMapKey)})
		}
	}
	return text, errs.OrNil()
}

// read returns the readable part of settings together with the mistakes. The templates of
// settings with a mistake elsewhere can then be compiled, too. The settings are nil if nothing
// could be read.
func read(name string, data []byte) (*Settings, Errors) {
	doc, roots := strictyaml.Read(name, data)
	if len(roots) == 0 && len(doc.Errs) > 0 {
		return nil, doc.Errs
	}
	doc.Elsewhere = elsewhere
	s := &Settings{doc: doc}
	if doc.Decode(roots, s); doc.Over() || len(roots) != 1 {
		return nil, doc.Errs
	}
	for i := 0; i+1 < len(roots[0].Content); i += 2 {
		if roots[0].Content[i].Value == "validationTests" {
			s.cases, _ = yaml.Marshal(roots[0].Content[i+1])
		}
	}
	return s, append(doc.Errs, s.check()...)
}

// keysElsewhere maps keys of the reference system, which have another name or form here, to
// hints for their users. A key is the path in lower case without "_". A * is the name of a
// resource, [] the number of a case.
func keysElsewhere() map[string]string {
	const whole = "move all that is below spec to the top level, and remove apiVersion, kind, metadata and spec"
	return map[string]string{
		"apiversion":                        whole,
		"kind":                              whole,
		"metadata":                          whole,
		"spec":                              whole,
		"podselector":                       "here it is dataplane.podSelector",
		"controller":                        "leader election is the flag -leader-elect here, and the ports are -metrics-addr and -debug-addr",
		"logging.verbose":                   "here it is logging.level: debug, info, warn or error",
		"dataplane.mindeploymentinterval":   "here it is reconcile.minDeploymentInterval",
		"dataplane.driftpreventioninterval": "here it is reconcile.driftPreventionInterval",
		"dataplane.deploymenttimeout":       "here it is reconcile.deploymentTimeout",
		"dataplane.configfile":              "here it is dataplane.baseDir, the folder of haproxy.cfg",
		"templatingsettings":                "templates are always Scriggo's here, and values that they share stand in a snippet or in a watched ConfigMap",
		"validation":                        "the controller runs haproxy -c itself here: leave it out",
		"watchedresources.*.kind":           "here it is resources, the plural: ingresses for Ingress",
		"watchedresources.*.labelselector":  "here it is one text, as in kubectl -l: app=web,tier!=test",
		"watchedresources.*.enablevalidationwebhook": "remove it: there is no webhook; the controller quarantines a resource that makes the configuration invalid, and tells its owner by an Event",
		"validationtests":                 "here it is a list, and each case has a name",
		"validationtests[].httpresources": "here it is http, a text by URL",
	}
}

// Constants in effect: they match the parts of a path that differ from user to user.
var (
	pathOfResource = regexp.MustCompile(`^watchedresources(?:\.[^.\[]+|\['[^']*'\])`)
	pathIndex      = regexp.MustCompile(`\[\d+\]`)
)

// elsewhere returns the hint for a key of the reference system, or "" for other keys.
func elsewhere(path string) string {
	path = strings.ReplaceAll(strings.ToLower(path), "_", "")
	path = pathOfResource.ReplaceAllString(path, "watchedresources.*")
	return keysElsewhere()[pathIndex.ReplaceAllString(path, "[]")]
}

// isWrong reports whether settings are wrong as such, with any resources.
func isWrong(err error) bool {
	var wrong Errors
	var tried *trialError
	return errors.As(err, &wrong) && !errors.As(err, &tried)
}
