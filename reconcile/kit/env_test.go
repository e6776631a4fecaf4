package kit_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/reconcile/kit"
)

// TestFlagsFromTheEnvironment: a variable takes the place of a flag that is not given,
// and an error names what is to be changed.
func TestFlagsFromTheEnvironment(t *testing.T) {
	for name, c := range map[string]struct {
		secret, configMap string
		args              []string
		values, err       string
	}{
		"neither":            {values: "standard "},
		"the variable":       {secret: "mine", configMap: "settings", values: "mine configmap:settings"},
		"another namespace":  {secret: "edge/mine.v2", configMap: "edge/settings", values: "edge/mine.v2 configmap:edge/settings"},
		"the flag beats it":  {secret: "mine", args: []string{"-secret", "theirs"}, values: "theirs "},
		"a wrong variable":   {secret: "a b", configMap: "a/b/c", err: "$SECRET_NAME \"a b\": want [namespace/]name\nerror: $CONFIGMAP_NAME \"configmap:a/b/c\": want configmap:[namespace/]name"},
		"a wrong flag":       {args: []string{"-secret", "A"}, err: `-secret "A": want [namespace/]name`},
		"a wrong namespace":  {secret: "A/b", err: `$SECRET_NAME "A/b": want [namespace/]name`},
		"a missing name":     {secret: "a/", err: `$SECRET_NAME "a/": want [namespace/]name`},
		"a flag without one": {secret: "mine", args: []string{"-secret", ""}, err: `-secret "": a value is missing: give one, or leave the flag out`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("SECRET_NAME", c.secret)
			t.Setenv("CONFIGMAP_NAME", c.configMap)
			f := kit.NewFlags("program", kit.NewLog(&bytes.Buffer{}))
			secret, settings := f.String("secret", "standard", "which"), f.String("settings", "", "which")
			require.NoError(t, f.Parse(c.args))
			f.Env("secret", "SECRET_NAME", "")
			f.Env("settings", "CONFIGMAP_NAME", "configmap:")
			f.CheckObjects("", "secret")
			f.CheckObjects("configmap:", "settings")
			if c.err != "" {
				require.EqualError(t, f.Err(), c.err)
				return
			}
			require.NoError(t, f.Err())
			require.Equal(t, c.values, *secret+" "+*settings)
			require.Equal(t, *secret, f.Values()["secret"])
		})
	}
}
