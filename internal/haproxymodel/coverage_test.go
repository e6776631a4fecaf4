package haproxymodel

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// waived are fields in which a change is no difference, with the reason.
var waived = map[string]string{
	"Metadata": "comments",
}

// leaves calls f with the path of Go names to each leaf of a type, and a
// function that makes a value in which only that leaf is set.
func leaves(t reflect.Type, path string, f func(path string, make func() reflect.Value)) {
	switch t.Kind() {
	case reflect.Pointer:
		leaves(t.Elem(), path, func(path string, make func() reflect.Value) {
			f(path, func() reflect.Value {
				p := reflect.New(t.Elem())
				p.Elem().Set(make())
				return p
			})
		})
	case reflect.Slice:
		leaves(t.Elem(), path+"[]", func(path string, make func() reflect.Value) {
			f(path, func() reflect.Value { return reflect.Append(reflect.Zero(t), make()) })
		})
	case reflect.Map:
		leaves(t.Elem(), path+"[]", func(path string, make func() reflect.Value) {
			f(path, func() reflect.Value {
				m := reflect.MakeMap(t)
				m.SetMapIndex(reflect.ValueOf("k").Convert(t.Key()), make())
				return m
			})
		})
	case reflect.Struct:
		for i := range t.NumField() {
			field := t.Field(i)
			if !field.IsExported() || waived[field.Name] != "" {
				continue
			}
			leaves(field.Type, path+"."+field.Name, func(path string, make func() reflect.Value) {
				f(path, func() reflect.Value {
					v := reflect.New(t).Elem()
					v.Field(i).Set(make())
					return v
				})
			})
		}
	default:
		f(path, func() reflect.Value {
			v := reflect.New(t).Elem()
			switch t.Kind() {
			case reflect.String:
				v.SetString("x")
			case reflect.Bool:
				v.SetBool(true)
			case reflect.Int64, reflect.Int32, reflect.Int:
				v.SetInt(7)
			case reflect.Float64:
				v.SetFloat(7)
			case reflect.Interface:
				v.Set(reflect.ValueOf("x"))
			default:
				panic("no value for a field of type " + t.String())
			}
			return v
		})
	}
}

// TestEveryField sets each field of each model, nested ones too, and wants to
// see exactly one difference.
func TestEveryField(t *testing.T) {
	fields, collections := 0, map[string]bool{}
	for _, k := range Kinds() {
		leaves(k.model, k.Name, func(path string, make func() reflect.Value) {
			fields++
			p := reflect.New(k.model)
			p.Elem().Set(make())
			section := func(model reflect.Value) *Section {
				return &Section{Kind: k, model: model.Interface(), changed: true}
			}
			steps := Diff(section(reflect.New(k.model)), section(p))
			if len(steps) != 1 || len(steps[0].Fields) > 2 {
				// a child by name shows its key as well
				t.Errorf("%s: steps %+v", path, steps)
			} else if c := steps[0].Child; c != nil {
				collections[k.Name+" "+c.Field] = true
			}
		})
	}
	rows := 0
	for _, k := range Kinds() {
		for _, c := range k.Children {
			rows++
			if !collections[k.Name+" "+c.Field] {
				t.Errorf("no field of %s %s", k.Name, c.Field)
			}
		}
		// Whatever looks like children has a row.
		for i := range k.model.NumField() {
			f := k.model.Field(i)
			list := f.Type.Kind() == reflect.Map || f.Type.Kind() == reflect.Slice
			if list && !f.Anonymous && waived[f.Name] == "" && k.ChildOf(f.Name) == nil {
				t.Errorf("%s of %s has no row", f.Name, k.Name)
			}
		}
	}
	t.Logf("%d kinds, %d collections, %d fields", len(Kinds()), rows, fields)
}

// apiOperations reads paths and methods from the specification of the API that
// client-native brings along.
func apiOperations(t *testing.T) map[string]bool {
	t.Helper()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/haproxytech/client-native/v6").Output()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "specification", "build", "haproxy_spec.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	operations, path := map[string]bool{}, ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\n")
		if rest, ok := strings.CutPrefix(line, "  /"); ok {
			path = strings.TrimPrefix(strings.TrimSuffix(rest, ":"), "services/haproxy/configuration/")
			for _, name := range []string{"name", "index", "prefix", "username", "certificate"} {
				path = strings.ReplaceAll(path, "/{"+name+"}", "/{}")
			}
		}
		switch line {
		case "    get:", "    post:", "    put:", "    delete:":
			operations[strings.TrimSpace(strings.TrimSuffix(line, ":"))+" "+path] = true
		}
	}
	return operations
}

func TestPathsOfTheAPI(t *testing.T) {
	operations := apiOperations(t)
	if len(operations) < 200 {
		t.Fatalf("only %d operations in the specification", len(operations))
	}
	want := func(has bool, method, path string) {
		t.Helper()
		path = strings.ReplaceAll(path, "%7B", "{")
		path = strings.ReplaceAll(path, "%7D", "}")
		path, _, _ = strings.Cut(path, "?")
		if operations[method+" "+path] != has {
			t.Errorf("%s %s: in the specification %v", method, path, !has)
		}
	}
	for _, k := range Kinds() {
		want(true, "get", k.Target("{}"))
		want(!k.NoUpdate, "put", k.Target("{}"))
		if !k.Single {
			want(true, "post", k.Path)
			want(true, "delete", k.Target("{}"))
		}
		for _, c := range k.Children {
			if c.Inline() {
				continue
			}
			item := strings.ReplaceAll(c.Target("{parent_name}", "{}", 3), "/3", "/{}")
			if c.ByName() || c.Append {
				want(true, "post", c.Collection("{parent_name}"))
			} else {
				want(true, "post", item)
			}
			want(true, "delete", item)
			want(!c.NoUpdate, "put", item)
		}
	}
}
