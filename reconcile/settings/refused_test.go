package settings

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/k8swatch/k8swatchtest"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/validate"
)

// smallFrontend is what HAProxy takes; lines of the cases follow it.
const smallFrontend = `haproxyConfig:
  template: |
    defaults
        mode http
        timeout client 5s
        timeout connect 5s
        timeout server 5s
    frontend f
        bind 127.0.0.1:9
`

// TestRefusedNamesTheSettings: whatever refuses what a template makes - the parser,
// haproxy -c, a rule of this module - the error begins with the file, the line and
// the key of the settings.
func TestRefusedNamesTheSettings(t *testing.T) {
	const inMap = `        http-request set-header a %[path,map_reg({{ path("map", "a_reg.map") }})]` + "\nmaps:\n  a_reg.map:\n    template: |\n"
	for name, c := range map[string]struct{ text, want string }{
		"the parser":              {smallFrontend + "        foo\n", `s.yaml:10: haproxyConfig.template: unknown keyword "foo"`},
		"haproxy -c":              {smallFrontend + "        http-request set-header a %[nosuch]\n", "s.yaml:10: haproxyConfig.template: error detected in frontend 'f'"},
		"a reference":             {smallFrontend + "        default_backend none\n", `s.yaml:10: haproxyConfig.template: there is no backend "none"`},
		"no line at all":          {strings.Replace(smallFrontend, "        bind 127.0.0.1:9\n", "", 1), "s.yaml:2: haproxyConfig.template: "},
		"no configuration":        {"haproxyConfig:\n  template: |\n    # none\n", "s.yaml:2: haproxyConfig.template: "},
		"a last line":             {"haproxyConfig:\n  template: |-\n    frontend f\n        bind :9", "s.yaml:4:9: haproxyConfig.template: invalid configuration: the last line does not end in a line feed"},
		"an empty text":           {"haproxyConfig:\n  template: |\n    {% if false %}x{% end %}\n  postProcessing: [{type: squeeze}]\n", "s.yaml:2:13: haproxyConfig.template: invalid configuration: the text is empty"},
		"a long line":             {smallFrontend + "        # " + strings.Repeat("x", 1<<16) + "\n", "s.yaml:10:9: haproxyConfig.template: invalid configuration: line 8: "},
		"a folded text":           {"haproxyConfig:\n  template: >\n    frontend f\n        foo\n", "s.yaml:2: haproxyConfig.template: "},
		"sections":                {smallFrontend + "haproxySections:\n  b.cfg:\n    template: |\n      backend b\n          foo\n", "s.yaml:14: haproxySections['b.cfg'].template: unknown keyword"},
		"a snippet":               {smallFrontend + "    {{ include(\"a\") }}\ntemplateSnippets:\n  a.cfg:\n    template: |\n      backend b\n          foo\n", "s.yaml:15: templateSnippets['a.cfg'].template: unknown keyword"},
		"a map":                   {smallFrontend + inMap + "      a b\n      ( b\n", "s.yaml:15: maps['a_reg.map'].template: "},
		"a file":                  {smallFrontend + "        errorfile 503 {{ path(\"general\", \"503.http\") }}\nfiles:\n  503.http:\n    template: |\n      no http\n", "s.yaml:13: files['503.http'].template: "},
		"a certificate":           {smallFrontend + "        bind 127.0.0.1:10 ssl crt {{ path(\"certificate\", \"a.pem\") }}\nsslCertificates:\n  a.pem:\n    template: |\n      no pem\n", "s.yaml:13: sslCertificates['a.pem'].template: "},
		"a path for two files":    {smallFrontend + "files:\n  a.pem:\n    template: |\n      x\ncaFiles:\n  a.pem:\n    template: |\n      y\n", "s.yaml:12:15: files['a.pem'].template: invalid configuration: "},
		"two contents":            {smallFrontend + "    {% fileRegistry.Register(\"map\", \"a.map\", \"a b\\n\") %}\nmaps:\n  a.map:\n    template: |\n      c d\n", "s.yaml:13:15: maps['a.map'].template: map \"a.map\": "},
		"post-processing":         {smallFrontend + "  postProcessing:\n    - {type: squeeze}\n    - {type: regex_replace, params: {pattern: 'mode http', replace: 'mode foo'}}\n", "s.yaml:4: haproxyConfig.template, changed by haproxyConfig.postProcessing[1]: unknown proxy mode 'foo'"},
		"post-processing a map":   {smallFrontend + inMap + "      a b\n\n\n      c b\n    postProcessing: [{type: squeeze}, {type: regex_replace, params: {pattern: c, replace: '('}}]\n", "s.yaml:17: maps['a_reg.map'].template, changed by maps['a_reg.map'].postProcessing[1]: "},
		"a case":                  {smallFrontend + "        foo\nvalidationTests:\n  - name: one\n    assertions: [{type: haproxy_valid}]\n", "s.yaml:10:9: haproxyConfig.template: unknown keyword"},
		"a case, post-processing": {smallFrontend + "  postProcessing: [{type: regex_replace, params: {pattern: 'mode http', replace: 'mode foo'}}]\nvalidationTests:\n  - name: one\n    assertions: [{type: haproxy_valid}]\n", "s.yaml:4:9: haproxyConfig.template, changed by haproxyConfig.postProcessing[0]: unknown proxy mode"},
		"a folder":                {smallFrontend + "dataplane: {mapsDir: maps}\n", "s.yaml:10:22: dataplane.mapsDir: "},
	} {
		t.Run(name, func(t *testing.T) {
			live, err := NewLive(LiveOptions{Source: k8swatchtest.NewSource(), Bus: eventbus.New(nil),
				Validator: func(l dataplane.Layout) reconcile.Validator {
					return &validate.Validator{Layout: l, User: dataplane.DefaultUser()}
				}})
			require.NoError(t, err)
			ctx, stop := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() { defer close(done); _ = live.Run(ctx) }()
			err = live.ApplyYAML(ctx, "s.yaml", []byte(c.text))
			stop()
			<-done
			require.Error(t, err)
			said := strings.TrimPrefix(strings.TrimPrefix(err.Error(), "render with the new settings: "), "validate with the new settings: ")
			require.True(t, strings.HasPrefix(said, c.want), "got  %.300s\nwant %s", said, c.want)
		})
	}
}
