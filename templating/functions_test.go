package templating_test

import (
	"encoding/json"
	"testing"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/hapticsdk/haptic/templating"
)

// expression is a row of a table that reads as specification: what a template
// shows, or why it fails.
type expression struct{ expr, want, refused string }

// expressions renders each where values are written as they are.
func expressions(t *testing.T, vars map[string]any, tests []expression) {
	t.Helper()
	for _, tt := range tests {
		t.Run(tt.expr, func(t *testing.T) {
			e, err := templating.Compile(files("a.http", "{{ "+tt.expr+" }}"), &templating.Options{Vars: vars})
			if err != nil {
				check(t, "", err, tt.want, tt.refused)
				return
			}
			got, err := e.Render(t.Context(), "a.http", vars)
			check(t, got, err, tt.want, tt.refused)
		})
	}
}

func TestTextFunctions(t *testing.T) {
	replicas := int32(5)
	expressions(t, map[string]any{"list": []any{"a", 1, true}, "nothing": []any(nil), "odd": []any{"a", []int{1}}, "port": intstr.FromInt32(80), "replicas": &replicas}, []expression{
		{expr: `lower("ÄB") + upper("äb")`, want: "äbÄB"},
		{expr: `title("hello wörld, it's über-fine")`, want: "Hello Wörld, It'S Über-Fine"},
		{expr: `title("")`},
		{expr: `trim(" \t x\n") + "." + strip(" x ")`, want: "x.x"},
		{expr: `trimPrefix("v1.2", "v") + trimSuffix("a.cfg", ".cfg")`, want: "1.2a"},
		{expr: `join(split("a,b,c", ","), "-")`, want: "a-b-c"},
		{expr: `len(split("", ","))`, want: "1"},
		{expr: `join(list, ",")`, want: "a,1,true"},
		{expr: `join(nothing, ",")`},
		{expr: `join(odd, ",")`, refused: "join: element 1: a value of type []int has no text"},
		{expr: `join("ab", ",")`, refused: "join: a list wanted, not a string"},
		{expr: `replace("aXbX", "X", "-")`, want: "a-b-"},
		{expr: `hasPrefix("abc", "a") && hasSuffix("abc", "c") && "abc" contains "b"`, want: "true"},
		{expr: `basename("/etc/haproxy/maps/hosts.map")`, want: "hosts.map"},
		{expr: `basename("")`},
		{expr: `sprintf("%03d", 7)`, want: "007"},
		{expr: `sprintf("%[1]*[1]d", 600000)`, refused: `sprintf: "%[1]*[1]d": a width of up to four digits must stand in the format`},
		{expr: `sprintf("64:ff9b:99999999 %s 1048577 %d%%1048577", "a", 1048577)`, want: "64:ff9b:99999999 a 1048577 1048577%1048577"},
		{expr: `sprintf("%s %v %05d", port, "x", replicas)`, want: "80 x 00005"},
		{expr: `sprintf("%v", list)`, refused: "sprintf: argument 1: a value of type []interface {} has no text"},
		{expr: `sprintf("%10000d", 1)`, refused: `sprintf: "%10000d": a width of up to four digits must stand in the format`},
		{expr: `sprintf("%% %-+0.10000f", 1.0)`, refused: `sprintf: "%-+0.10000f": a width of up to four digits`},
		{expr: `sprintf("%99999999999999999999d", 1)`, refused: "a width of up to four digits"},
		{expr: `len(indent("a\n\nb\n", 2))`, refused: "invalid argument"},
		{expr: `indent("a", 2)`, want: "  a"},
		{expr: `indent("a", -1)`, refused: "indent: -1 spaces, 0 to 1024 is allowed"},
		{expr: `indent(1, 1)`, refused: "indent: text wanted, not a int"},
		{expr: `lower(1)`, refused: "cannot use 1"},
		{expr: `fail("because")`, refused: "because"},
	})
}

func TestPatternFunctions(t *testing.T) {
	expressions(t, map[string]any{"names": []string{"b-1", "c", "b/2", "b-2"}, "anys": []any{"b-1", "c"}, "odd": []any{1}}, []expression{
		{expr: `regex_search("app-12", "^app-[0-9]+$")`, want: "true"},
		{expr: `regex_search("a", "(")`, refused: "regex_search: error parsing regexp: missing closing"},
		{expr: `sanitize_regex("a.b*")`, want: `a\.b\*`},
		{expr: `join(glob_match(names, "b-*"), " ")`, want: "b-1 b-2"},
		{expr: `join(glob_match(anys, "?"), " ")`, want: "c"},
		{expr: `len(glob_match("abc", "a*"))`, want: "1"},
		{expr: `len(glob_match(nil, "a*"))`, want: "0"},
		{expr: `len(glob_match(names, "["))`, refused: `glob_match: pattern "[": syntax error in pattern`},
		{expr: `len(glob_match(names, "zz["))`, refused: `glob_match: pattern "zz[": syntax error in pattern`},
		{expr: `len(glob_match(odd, "*"))`, refused: "glob_match: element 0 is a int, not a string"},
	})
}

func TestConversionFunctions(t *testing.T) {
	n := int32(5)
	vars := map[string]any{"ptr": &n, "none": (*int32)(nil), "port": intstr.FromInt32(80), "named": intstr.FromString("8080"),
		"big": json.Number("9007199254740993"), "ns": metav1.ConditionTrue, "x": []byte("12"), "u": uint64(1<<64 - 1)}
	expressions(t, vars, []expression{
		{expr: `tostring(12) + tostring(true) + tostring(1.5) + tostring("a") + tostring(ptr) + tostring(ns)`, want: "12true1.5a5True"},
		{expr: `tostring(port) + ":" + tostring(named)`, want: "80:8080"},
		{expr: `tostring(none)`, refused: "tostring: the value is nil"},
		{expr: `tostring(nil)`, refused: "tostring: the value is nil"},
		{expr: `tostring([]int{1})`, refused: "tostring: a value of type []int has no text"},
		{expr: `toint("12") + toint(" -2 ") + toint(2.0) + toint(ptr) + toint(named) + toint(x)`, want: "8109"},
		{expr: `toint(big)`, want: "9007199254740993"},
		{expr: `toint("1e3")`, want: "1000"},
		{expr: `toint(1.5)`, refused: "toint: 1.5, not a whole number"},
		{expr: `toint("1.5")`, refused: "toint: 1.5, not a whole number"},
		{expr: `toint("12a")`, refused: `toint: "12a" is not a number`},
		{expr: `toint("0x10")`, refused: `toint: "0x10" is not a number`},
		{expr: `toint("")`, refused: `toint: "" is not a number`},
		{expr: `toint(true)`, refused: `toint: "true" is not a number`},
		{expr: `toint(u)`, refused: "too large"},
		{expr: `toint("9223372036854775808")`, refused: "too large"},
		{expr: `toint("1e300")`, refused: "too large"},
		{expr: `tofloat("1.5") + tofloat(1)`, want: "2.5"},
		{expr: `tofloat("NaN")`, refused: `tofloat: "NaN" is not a number`},
		{expr: `ceil(1.2) + ceil("-1.2") + ceil(3)`, want: "4"},
		{expr: `ceil("x")`, refused: `ceil: "x" is not a number`},
		{expr: `min(1, 2) + max(1, 2)`, want: "3"},
		{expr: `join(seq(3), " ")`, want: "0 1 2"},
		{expr: `join(seq(1, 4), " ")`, want: "1 2 3"},
		{expr: `join(seq(0, 10, 4), " ")`, want: "0 4 8"},
		{expr: `join(seq(3, 0, -1), " ")`, want: "3 2 1"},
		{expr: `len(seq(-3)) + len(seq(3, 1)) + len(seq(0, 3, -1))`, want: "0"},
		{expr: `len(seq(0, 1, 0))`, refused: "seq: a step of 0 has no end"},
		{expr: `len(seq(1, 2, 3, 4))`, refused: "seq: at most three numbers"},
		{expr: `len(seq(1048577))`, refused: "seq: 1048577 numbers, at most 1048576 are allowed"},
		{expr: `len(seq(-9223372036854775808, 9223372036854775807))`, refused: "seq: 18446744073709551615 numbers"},
		{expr: `len(seq(9223372036854775807, -9223372036854775808, -9223372036854775808))`, want: "2"},
	})
}

func TestEncodingFunctions(t *testing.T) {
	ing := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	expressions(t, map[string]any{"m": map[string]any{"b": []any{int64(1), 1.5}, "a": "x: <y>", "n": nil}, "rule": networkingv1.IngressRule{Host: "a.example"}, "ing": ing}, []expression{
		{expr: `b64encode("a b")`, want: "YSBi"},
		{expr: `b64decode("YWI=\n")`, want: "ab"},
		{expr: `b64decode("?")`, refused: "b64decode: illegal base64"},
		{expr: `to_json(m)`, want: `{"a":"x: <y>","b":[1,1.5],"n":null}`},
		{expr: `toJson("a")`, want: `"a"`},
		{expr: `to_json(rule)`, want: `{"host":"a.example"}`},
		{expr: `to_json(func() {})`, refused: "to_json: json: unsupported type"},
		{expr: `dig(from_json("{\"a\": [1, 2.5]}"), "a[0]")`, want: "1"},
		{expr: `digInt(from_json("{\"a\": 9007199254740993}"), "a")`, want: "9007199254740993"},
		{expr: `dig(from_json("{\"a\": 1e400}"), "a")`, refused: "from_json: strconv.ParseFloat"},
		{expr: `tostring(from_json(""))`, refused: "from_json: an empty document"},
		{expr: `tostring(from_json("1 2"))`, refused: "from_json: something follows the value"},
		{expr: `tostring(from_json("{"))`, refused: "from_json: unexpected EOF"},
		{expr: `dig(from_yaml("a:\n- b: x\n"), "a[0].b")`, want: "x"},
		{expr: `digInt(from_yaml("a: 0x10"), "a")`, want: "16"},
		{expr: `digString(from_yaml("a: 2001-12-14"), "a")`, want: "2001-12-14"},
		{expr: `digString(from_yaml("x: &x {b: c}\na:\n  <<: *x\n"), "a.b")`, want: "c"},
		{expr: `tostring(from_yaml("yes"))`, want: "yes"},
		{expr: `dig(from_yaml("1: a"), "x")`, refused: `from_yaml: a key that is not a string: "1"`},
		{expr: `dig(from_yaml("a: 1\na: 2"), "x")`, refused: "already defined"},
		{expr: `dig(from_yaml("a: .nan"), "x")`, refused: "from_yaml: NaN is not a number of JSON"},
		{expr: `tostring(from_yaml("a\n---\nb"))`, refused: "from_yaml: more than one document"},
		{expr: `tostring(from_yaml("a: ["))`, refused: "from_yaml: yaml: line 1"},
		{expr: `tostring(from_yaml(""))`, refused: "from_yaml: an empty document"},
		{expr: `replace(to_yaml(m), "\n", "|")`, want: "a: 'x: <y>'|b:|  - 1|  - 1.5|\"n\": null|"},
		{expr: `replace(to_yaml(rule), "\n", "|")`, want: "host: a.example|"},
		{expr: `sha256("a")`, want: "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"},
	})
}

func TestObjectFunctions(t *testing.T) {
	ptype := networkingv1.PathTypePrefix
	typed := &networkingv1.Ingress{
		ObjectMeta: metav1.ObjectMeta{Name: "shop", Annotations: map[string]string{"a.b/c": "d"}},
		Spec: networkingv1.IngressSpec{Rules: []networkingv1.IngressRule{{Host: "h", IngressRuleValue: networkingv1.IngressRuleValue{
			HTTP: &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{{Path: "/a", PathType: &ptype}}}}}, {Host: "tcp"}}},
	}
	obj := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{"a.b/c": "d"}},
		"spec": map[string]any{"replicas": int64(3), "weight": 1.5, "whole": 2.0, "num": json.Number("4"), "on": true, "null": nil, "none": []any{},
			"rules": []any{map[string]any{"host": "h"}}, "text": "12"},
	}}
	vars := map[string]any{"obj": obj, "ing": typed, "nothing": (*networkingv1.Ingress)(nil), "m": map[string]string{"b": "1", "a": "2"},
		"nilmap": map[string]any(nil), "ints": map[int]string{1: "a"}, "named": map[networkingv1.PathType]int{"Exact": 1}, "x": (*unstructured.Unstructured)(nil)}
	expressions(t, vars, []expression{
		{expr: `dig(obj, "metadata.annotations['a.b/c']") + ""`, refused: "operator + not defined on interface"},
		{expr: `dig(obj, "metadata.annotations['a.b/c']")`, want: "d"},
		{expr: `dig(obj, "$.spec.rules[0].host")`, want: "h"},
		{expr: `dig(obj, "spec.missing", "default")`, want: "default"},
		{expr: `dig(obj, "spec.null", "default")`, want: "default"},
		{expr: `dig(obj, "spec.on", "default")`, want: "true"},
		{expr: `dig(obj, "spec.null") == nil`, want: "true"},
		{expr: `dig(obj, "spec.missing")`, refused: `dig: spec.missing: no field "missing", there is none, null, num, on, replicas, rules, text, weight, ...`},
		{expr: `dig(obj, "spec.null.x")`, refused: "dig: spec.null.x: nothing there"},
		{expr: `dig(obj, "spec.rules.1.host")`, refused: "dig: spec.rules.1: the list has 1 elements"},
		{expr: `dig(obj, "spec.rules[-1].host")`, want: "h"},
		{expr: `dig(obj, "spec.rules[-2].host")`, refused: "dig: spec.rules.-2: the list has 1 elements"},
		{expr: `dig(obj, "{.metadata.annotations.a\\.b/c}")`, want: "d"},
		{expr: `dig(obj, "{.metadata.annotations['a\\.b/c']}")`, want: "d"},
		{expr: `dig(obj, "spec.rules[*].host")`, refused: `dig: path "spec.rules[*].host": [*].host can select many values, a path of a template selects one: use a loop or selectattr`},
		{expr: `dig(obj, "spec.rules[?(@.host)]")`, refused: "can select many values"},
		{expr: `dig(obj, "spec.rules[0:1]")`, refused: "can select many values"},
		{expr: `dig(obj, "spec.*")`, refused: "can select many values"},
		{expr: `dig(obj, "spec.rules.x")`, refused: "dig: spec.rules.x: a list has no field"},
		{expr: `dig(obj, "spec.replicas.x", 1)`, refused: "dig: spec.replicas.x: cannot look into a int64"},
		{expr: `dig(obj, "spec..x")`, refused: "empty"},
		{expr: `dig(obj, "a", 1, 2)`, refused: "dig: one default wanted, not 2"},
		{expr: `dig(x, "a")`, refused: "dig: a: nothing there"},
		{expr: `dig(ing, "metadata.name")`, want: "shop"},
		{expr: `dig(ing, "ObjectMeta.Name")`, want: "shop"},
		{expr: `dig(ing, "Name")`, want: "shop"},
		{expr: `dig(ing, "metadata.annotations['a.b/c']")`, want: "d"},
		{expr: `dig(ing, "spec.rules[0].http.paths[0].pathType")`, want: "Prefix"},
		{expr: `dig(ing, "spec.rules[1].http.paths", "none")`, want: "none"},
		{expr: `dig(ing, "spec.rules[1].http.paths")`, refused: "dig: spec.rules.1.http.paths: nothing there"},
		{expr: `dig(ing, "spec.ruels")`, refused: `dig: spec.ruels: v1.IngressSpec has no field "ruels", only defaultBackend, ingressClassName, rules, tls`},
		{expr: `dig(ing, "spec.ruels", "default")`, refused: `has no field "ruels"`},
		{expr: `dig(nothing, "spec")`, refused: "dig: spec: nothing there"},
		{expr: `dig(ints, "a")`, refused: "dig: a: cannot look into a map[int]string: its keys are no strings"},
		{expr: `dig(named, "Exact")`, want: "1"},
		{expr: `dig(named, "Prefix")`, refused: `dig: Prefix: no field "Prefix", there is Exact`},
		{expr: `digString(obj, "spec.missing") + digString(obj, "spec.null") + "-"`, want: "-"},
		{expr: `digString(ing, "spec.rules[0].http.paths[0].pathType")`, want: "Prefix"},
		{expr: `digString(obj, "spec.replicas")`, refused: "digString: spec.replicas is a int64, not a string"},
		{expr: `digInt(obj, "spec.replicas") + digInt(obj, "spec.missing") + digInt(obj, "spec.null") + digInt(obj, "spec.whole") + digInt(obj, "spec.num")`, want: "9"},
		{expr: `digInt(obj, "spec.weight")`, refused: "digInt: spec.weight is 1.5, not a whole number"},
		{expr: `digInt(obj, "spec.text")`, refused: "digInt: spec.text is a string, not a number"},
		{expr: `digBool(obj, "spec.on") && !digBool(obj, "spec.missing")`, want: "true"},
		{expr: `digBool(obj, "spec.text")`, refused: "digBool: spec.text is a string, not a bool"},
		{expr: `len(digList(obj, "spec.rules")) + len(digList(ing, "spec.rules")) + len(digList(obj, "spec.missing"))`, want: "3"},
		{expr: `len(digList(obj, "spec"))`, refused: "digList: spec is a map[string]interface {}, not a list"},
		{expr: `join(keys(digMap(ing, "metadata.annotations")), ",") + join(keys(digMap(obj, "spec.missing")), ",")`, want: "a.b/c"},
		{expr: `len(digMap(ing, "spec"))`, refused: "digMap: spec is a v1.IngressSpec, not a map"},
		{expr: `has(obj, "spec.rules") && has(obj, "spec.none") && !has(obj, "spec.null") && !has(obj, "spec.x.y") && has(ing, "spec.rules[0].http") && !has(ing, "spec.rules[1].http")`, want: "true"},
		{expr: `has(obj, "a..b")`, refused: "has: path"},
		{expr: `join(keys(m), ",") + join(sortedKeys(m), ",") + join(keys(named), ",") + join(keys(nil), ",")`, want: "a,ba,bExact"},
		{expr: `len(keys(ints))`, refused: "keys: a map with string keys wanted, not a map[int]string"},
		{expr: `len(keys(ing))`, refused: "keys: a map with string keys wanted, not a *v1.Ingress"},
		{expr: `to_json(merge(m, nilmap, nil, map[string]any{"b": 2, "c": nil}))`, want: `{"a":"2","b":2,"c":null}`},
		{expr: `len(merge(m, 1))`, refused: "merge: argument 2: a map with string keys wanted, not a int"},
		{expr: `coalesce("", nil, 0, nilmap, nothing, "x", "y")`, want: "x"},
		{expr: `coalesce("", nil) == nil`, want: "true"},
	})
}

func TestListFunctions(t *testing.T) {
	at := func(s int) metav1.Time { return metav1.Unix(int64(s), 0) }
	typed := []*networkingv1.Ingress{
		{ObjectMeta: metav1.ObjectMeta{Name: "b", Namespace: "y", CreationTimestamp: at(2)}},
		{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "y", CreationTimestamp: at(3), Labels: map[string]string{"w": "1"}}},
		{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "x", CreationTimestamp: at(1)}},
	}
	plain := []any{
		map[string]any{"n": "b", "w": int64(10), "on": true, "tags": []any{"t"}},
		map[string]any{"n": "a", "w": int64(9), "on": false},
		map[string]any{"n": "c", "w": 9.5},
		map[string]any{"n": "d"},
	}
	mixed := []any{map[string]any{"w": 1}, map[string]any{"w": "1"}}
	vars := map[string]any{"typed": typed, "plain": plain, "mixed": mixed, "words": []string{"b", "a", "b"},
		"later": []any{map[string]any{}, map[string]any{"w": true}, map[string]any{"w": "1"}}, "structs": []networkingv1.IngressRule{{Host: "b"}, {Host: "a"}}}
	names := func(list string) string { return `join(map_by(` + list + `, "metadata.name"), "")` }
	n := func(list string) string { return `join(map_by(` + list + `, "n"), "")` }
	expressions(t, vars, []expression{
		{expr: `join(sort(unique(words)), "") + join(reverse(words), "")`, want: "abbab"},
		{expr: names(`sort_by(typed, "metadata.name")`), want: "abc"},
		{expr: names(`sort_by(typed, "metadata.namespace", "metadata.name:desc")`), want: "cba"},
		{expr: names(`sort_by(typed, []string{"metadata.namespace:desc", "metadata.name:asc"})`), want: "abc"},
		{expr: names(`sort_by(typed, "metadata.creationTimestamp:desc")`), want: "abc"},
		{expr: names(`sort_by(typed, "Name")`), want: "abc"},
		{expr: names(`sort_by(typed, "metadata.labels.w")`), want: "abc"},
		{expr: `join(map_by(sort_by(structs, "host"), "Host"), "")`, want: "ab"},
		{expr: n(`sort_by(plain, "w")`), want: "acbd"},
		{expr: n(`sort_by(plain, "w:desc")`), want: "bcad"},
		{expr: n(`sort_by(plain, "on")`), want: "abcd"},
		{expr: n(`plain`), want: "bacd"},
		{expr: `len(sort_by(nil, "w"))`, want: "0"},
		{expr: n(`sort_by(plain, "tags")`), refused: `sort_by: "tags" of element 0: a value of type []interface {} has no text`},
		{expr: n(`sort_by(mixed, "w")`), refused: `sort_by: "w" is a number in element 0 and a text in element 1`},
		{expr: n(`sort_by(later, "w")`), refused: `sort_by: "w" is true or false in element 1 and a text in element 2`},
		{expr: n(`sort_by(plain, 1)`), refused: "sort_by: a list wanted, not a int"},
		{expr: n(`sort_by(plain, []int{1})`), refused: "sort_by: a path wanted, not a int"},
		{expr: n(`sort_by(plain, "w:dsc")`), refused: `sort_by: "w:dsc": ":dsc": only :asc and :desc can follow a path`},
		{expr: n(`sort_by(plain, "['a:b']:desc")`), want: "bacd"},
		{expr: n(`sort_by(plain)`), refused: "sort_by: nothing to sort by"},
		{expr: n(`sort_by(plain, "a..b:desc")`), refused: `sort_by: path "a..b": an element is empty`},
		{expr: n(`sort_by("ab", "w")`), refused: "sort_by: a list wanted, not a string"},
		{expr: n(`sort_by(typed, "metadata.nmae")`), refused: `sort_by: "metadata.nmae" of element 0: metadata.nmae: v1.ObjectMeta has no field "nmae"`},
		{expr: `typed[order_by(typed, "metadata.name:desc")[0]].Name`, want: "c"},
		{expr: `join(order_by(plain, "w"), "")`, want: "1203"},
		{expr: `typed[group_by(typed, "metadata.namespace")[1].At[0]].Name`, want: "b"},
		{expr: names(`unique_by(typed, "metadata.namespace")`), want: "bc"},
		{expr: names(`selectattr(typed, "metadata.labels.w")`), want: "a"},
		{expr: names(`rejectattr(typed, "metadata.labels.w")`), want: "bc"},
		{expr: names(`selectattr(typed, "metadata.namespace", "eq", "y")`), want: "ba"},
		{expr: n(`selectattr(plain, "on")`), want: "b"},
		{expr: n(`selectattr(plain, "w", "ge", 9.5)`), want: "bc"},
		{expr: n(`selectattr(plain, "w", "<", 10)`), want: "ac"},
		{expr: n(`rejectattr(plain, "w", "ne", 10)`), want: "b"},
		{expr: n(`selectattr(plain, "n", "in", []string{"a", "d"})`), want: "ad"},
		{expr: n(`selectattr(plain, "tags", "contains", "t")`), want: "b"},
		{expr: n(`selectattr(plain, "n", "gt", 1)`), refused: `selectattr: "n" of element 0: a text cannot be compared with a number`},
		{expr: n(`selectattr(plain, "n", "like", 1)`), refused: `no test "like": use eq, ne`},
		{expr: n(`selectattr(plain, "n", "eq")`), refused: "selectattr: a test is not complete: give its name and a value behind the path"},
		{expr: `len(group_by(typed, "metadata.namespace"))`, want: "2"},
		{expr: `group_by(typed, "metadata.namespace")[0].Key + group_by(typed, "metadata.namespace")[1].Key`, want: "xy"},
		{expr: names(`group_by(typed, "metadata.namespace")[1].Items`), want: "ba"},
		{expr: `group_by(plain, "w")[0].Key`},
		{expr: `to_json(count_by(typed, "metadata.namespace"))`, want: `{"x":1,"y":2}`},
		{expr: `dig(index_by(typed, "metadata.namespace"), "y.metadata.name")`, want: "b"},
		{expr: `count_by(plain, "n")["zz"]`, want: "0"},
		{expr: `len(map_by(typed, "metadata..x"))`, refused: "map_by: path"},
	})
}

func TestTimesAndNumbersSort(t *testing.T) {
	list := []any{
		map[string]any{"t": time.Unix(2, 0), "n": int64(9007199254740993)},
		map[string]any{"t": time.Unix(1, 0), "n": int64(9007199254740992)},
	}
	expressions(t, map[string]any{"list": list}, []expression{
		{expr: `join(map_by(sort_by(list, "n"), "n"), " ")`, want: "9007199254740992 9007199254740993"},
		{expr: `join(map_by(sort_by(list, "t"), "n"), " ")`, want: "9007199254740992 9007199254740993"},
	})
}
