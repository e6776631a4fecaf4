package e2e

import (
	"path/filepath"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestDeployFitsTogether: what selects pods by labels, and names their ports, finds them.
func TestDeployFitsTogether(t *testing.T) {
	for _, layout := range []string{"local", "fleet"} {
		folder := func(name string) *kustomized {
			return readKustomized(t, filepath.Join("../../examples/controller/deploy", name), func(folder string) string { return folder })
		}
		all := &kustomized{append(folder(layout).objects, folder("monitoring").objects...)}
		selected := 0
		for _, o := range all.objects {
			selector, _, _ := unstructured.NestedStringMap(o.Object, "spec", "selector")
			for _, field := range []string{"selector", "podSelector"} {
				if labels, ok, _ := unstructured.NestedStringMap(o.Object, "spec", field, "matchLabels"); ok {
					selector = labels
				}
			}
			if len(selector) == 0 {
				continue
			}
			selected++
			of := "Deployment"
			if o.GetKind() == "ServiceMonitor" {
				of = "Service"
			}
			ports := all.ports(of, selector)
			for _, name := range portNames(o) {
				if !slices.Contains(ports, name) {
					t.Errorf("%s: %s %s: no %s with labels %v has a port %q: there are %q", layout, o.GetKind(), o.GetName(), of, selector, name, ports)
				}
			}
			if len(ports) == 0 {
				t.Errorf("%s: %s %s selects nothing by %v", layout, o.GetKind(), o.GetName(), selector)
			}
		}
		if selected < 5 {
			t.Errorf("%s: %d selectors were found", layout, selected)
		}
	}
}

// ports are the names of those of all objects of a kind that have these labels: of pods,
// for a Deployment.
func (m *kustomized) ports(kind string, labels map[string]string) (names []string) {
	for _, o := range m.objects {
		has, ports := o.GetLabels(), []any(nil)
		if kind == "Deployment" {
			has, _, _ = unstructured.NestedStringMap(o.Object, "spec", "template", "metadata", "labels")
			containers, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
			for _, c := range containers {
				more, _, _ := unstructured.NestedSlice(c.(map[string]any), "ports")
				ports = append(ports, more...)
			}
		} else {
			ports, _, _ = unstructured.NestedSlice(o.Object, "spec", "ports")
		}
		fits := o.GetKind() == kind
		for key, value := range labels {
			fits = fits && has[key] == value
		}
		for _, p := range ports {
			if fits {
				names = append(names, p.(map[string]any)["name"].(string))
			}
		}
	}
	return names
}

// portNames are those that a Service, a NetworkPolicy or a ServiceMonitor names.
func portNames(o *unstructured.Unstructured) (names []string) {
	var lists []any
	for _, field := range []string{"ports", "endpoints"} {
		list, _, _ := unstructured.NestedSlice(o.Object, "spec", field)
		lists = append(lists, list...)
	}
	rules, _, _ := unstructured.NestedSlice(o.Object, "spec", "ingress")
	for _, rule := range rules {
		list, _, _ := unstructured.NestedSlice(rule.(map[string]any), "ports")
		lists = append(lists, list...)
	}
	for _, p := range lists {
		port := p.(map[string]any)
		if name, ok := port["targetPort"].(string); ok {
			names = append(names, name)
		} else if name, ok := port["port"].(string); ok {
			names = append(names, name)
		}
	}
	return names
}
