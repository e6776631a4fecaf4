package dataplanetest

import (
	"reflect"
	"strings"
	"testing"

	"github.com/haproxytech/client-native/v6/configuration"

	"github.com/hapticsdk/haptic/internal/haproxymodel"
)

// TestTableNamesMethods finds the methods that the table leads to in the
// engine.
func TestTableNamesMethods(t *testing.T) {
	engine := reflect.TypeFor[configuration.Configuration]()
	check := func(path string, names ...string) {
		for _, name := range names {
			if _, ok := engine.MethodByName(name); !ok {
				t.Errorf("%s: the engine has no method %s", path, name)
			}
		}
	}
	for _, table := range []map[string]resource{sections(), entries(), children()} {
		for path, r := range table {
			check(path, "Get"+r.many, "Get"+r.one, "Create"+r.one, "Delete"+r.one)
			if !r.fixed {
				check(path, "Edit"+r.one)
			}
			if r.replace != "" {
				check(path, "Replace"+r.replace)
			}
			if r.full {
				check(path, "GetStructured"+r.many, "GetStructured"+r.one, "CreateStructured"+r.one)
			}
		}
	}
}

// TestTableHasAll finds every getter of the engine in the table, or here with
// the reason why not.
func TestTableHasAll(t *testing.T) {
	reached := map[string]bool{}
	for _, table := range []map[string]resource{sections(), entries(), children()} {
		for _, r := range table {
			for _, name := range []string{r.many, r.one} {
				reached["Get"+name], reached["GetStructured"+name] = true, r.full
			}
		}
	}
	for _, why := range []string{
		"GetGlobalConfiguration", "GetStructuredGlobalConfiguration", "GetTraces", "GetStructuredTraces", // there is but one
		"GetDefaultsConfiguration", "GetStructuredDefaultsConfiguration", // not in version 3 of the API
		"GetStructuredAcmeProvider", "GetStructuredAcmeProviders", "GetStructuredLogProfile", "GetStructuredLogProfiles", // the API has no full_section
		"GetSite", "GetSites", // sites are not there
		"GetConfigurationVersion", "GetVersion", "GetRawConfiguration", "GetRawConfigurationWithClusterData",
		"GetTransaction", "GetTransactions", "GetParser", "GetParserTransactions", "GetFailedParserTransactionVersion",
	} {
		reached[why] = true
	}
	engine := reflect.TypeFor[configuration.Configuration]()
	for i := range engine.NumMethod() {
		if name := engine.Method(i).Name; strings.HasPrefix(name, "Get") && !reached[name] {
			t.Errorf("nothing leads to %s", name)
		}
	}
}

// TestTableHasModels finds the endpoints for everything that can differ.
func TestTableHasModels(t *testing.T) {
	for _, kind := range haproxymodel.Kinds() {
		if _, _, _, ok := find([]string{kind.Path}); !ok && !kind.Single {
			t.Errorf("%s: no endpoint %s", kind.Name, kind.Path)
		}
		for _, child := range kind.Children {
			path, query, _ := strings.Cut(child.Path, "?")
			name, _, _ := strings.Cut(query, "=")
			if r, _, _, ok := find(strings.Split(strings.ReplaceAll(path, "{parent}", "x"), "/")); (!ok || r.query != name) && child.Path != "" && child.Path != "traces/entries" {
				t.Errorf("%s: no endpoint %s", child.Kind, child.Path)
			}
		}
	}
}
