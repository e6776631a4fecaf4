package render

import (
	"context"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/templating"
)

// TestFilesAreReadAsTheirNamesSay has values in a file that HAProxy reads for
// something else than they are escaped for.
func TestFilesAreReadAsTheirNamesSay(t *testing.T) {
	const maps, general = "/srv/haproxy/maps/", "/srv/haproxy/general/"
	for line, refused := range map[string]string{
		"use_backend %[path,map_reg(" + maps + "a.map)]":                       "*_reg.map",
		"use_backend %[path,map_reg(" + maps + "a_reg.map,none)]":              "",
		"use_backend %[path,map_regm(" + maps + "a.map)]":                      "*_reg.map",
		"use_backend %[path,map_reg_int('" + maps + "a.map')]":                 "*_reg.map",
		"use_backend %[path,lower,map(" + maps + "a.map)]":                     "",
		"use_backend %[path,map_beg(" + maps + "a.map)]":                       "",
		"use_backend %[path,map_str(" + maps + "a_reg.map)]":                   "*.map",
		"use_backend %[path,map_str(" + general + "a.lst)]":                    "*.map",
		"http-request deny if { path_reg -f " + general + "a.lst }":            "*_reg.lst",
		"http-request deny if { path_reg -i -f " + general + "a_reg.lst }":     "",
		"http-request deny if { path -m reg -f " + general + "a.acl }":         "*_reg.lst",
		"http-request deny if { path_reg a } { path -f " + general + "a.lst }": "",
		"acl a path -i -f " + general + "a.http":                               "*.lst",
		"acl a path -i -f " + general + "a.lst":                                "",
		"acl a src -f /etc/blocked":                                            "",
		"http-request return lf-file " + general + "a.html":                    "*_lf.html",
		"http-request return lf-file " + general + "a_lf.html":                 "",
		"http-request return file " + general + "a.html":                       "",
		"bind :443 ssl crt-list " + general + "a.lst":                          "*.txt",
		"bind :443 ssl crt-list " + general + "a.txt":                          "",
		"# map_reg(" + maps + "a.map)":                                         "",
		"use_backend %[path,map_reg(opt@" + maps + "a.map)]":                   "*_reg.map",
		"acl a path_reg -f " + general + "a.lst -f " + general + "a_reg.lst":   "*_reg.lst",
		"acl a hdr_reg(host) -i -f " + general + "a.lst":                       "*_reg.lst",
		"acl is_reg src -f " + general + "a.lst":                               "",
		"acl a path,map_reg(" + maps + "a_reg.map) -f " + general + "a.lst":    "",
	} {
		for _, entry := range []string{"haproxy.cfg", "haproxy.d/a.cfg"} {
			texts := map[string]string{"haproxy.cfg": "global\n", entry: "frontend f\n  " + line + "\n"}
			_, err := site(t, texts, nil, &Input{}).Render(t.Context())
			if refused == "" {
				require.NoError(t, err, line)
				continue
			}
			require.ErrorContains(t, err, refused, line)
			require.Equal(t, entry, templating.Errors(err)[0].File)
		}
	}
}

// TestAValueThatLooksLikeARead quarantines its object at once, without a search: anybody can
// write it into a header.
func TestAValueThatLooksLikeARead(t *testing.T) {
	for _, each := range []bool{false, true} {
		line := "backend {{ ing.Name }}\n    http-request set-header X \"{{ ing.Annotations[\"text\"] }}\"\n"
		entries, vars := fstest.MapFS{"haproxy.cfg": {Data: []byte("global\n{% for ing in ingresses %}" + line + "{% end %}")}}, map[string]any{"ingresses": []*networkingv1.Ingress(nil)}
		if each {
			entries, vars = fstest.MapFS{"haproxy.cfg": {Data: []byte("global\n")}, "haproxy.d/i.cfg": {Data: []byte(line)}}, map[string]any{"ing": (*networkingv1.Ingress)(nil)}
		}
		renders, all := 0, ingressesOf(1, "a=x", "b=return lf-file /srv/haproxy/maps/a.map", "c=x", "d=a -f /srv/haproxy/general/a.http", "e=x")
		view := viewOf(func() []*networkingv1.Ingress { return all })
		engine, err := templating.Compile(entries, &templating.Options{Vars: vars})
		require.NoError(t, err)
		templates := &Templates{Engine: engine, Layout: dataplane.Layout{Base: "/srv/haproxy"}, Input: func(ctx context.Context) (*Input, error) {
			renders++
			kept := ingressesIn(view)
			if !each {
				return &Input{Vars: map[string]any{"ingresses": kept}}, nil
			}
			items := Each{Var: "ing"}
			for _, ing := range kept {
				items.Items = append(items.Items, ing)
			}
			return &Input{Vars: vars, Each: map[string]Each{"haproxy.d/i.cfg": items}}, nil
		}}
		loop, err := reconcile.New(reconcile.Options{Renderer: templates, View: view, Validator: refusesBad{}})
		require.NoError(t, err)
		_, err = loop.Once(t.Context())
		require.NoError(t, err)
		require.Equal(t, []string{"b", "d"}, quarantined(loop))
		require.Equal(t, 2, renders, "they are known at once")
	}
}

// TestPartsOfTheConfigurationSaySo: the rules of haproxy.cfg are for names that end in .cfg.
func TestPartsOfTheConfigurationSaySo(t *testing.T) {
	templates := site(t, map[string]string{"haproxy.cfg": "global\n", "haproxy.d/a.tmpl": "\n"}, nil, &Input{})
	require.ErrorContains(t, templates.Check(), "ends in .cfg")
}
