package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/examples/controller/ingress"
	"github.com/hapticsdk/haptic/reconcile/render"
)

// TestTemplatesPage: docs/templates.md has each variable of the built-in templates.
func TestTemplatesPage(t *testing.T) {
	text, err := os.ReadFile("../../docs/templates.md")
	require.NoError(t, err)
	vars := render.Declare(new(ingress.Routes).Input(ingress.Settings{}).Vars)
	require.Greater(t, len(vars), 15)
	for name := range vars {
		require.True(t, strings.Contains(string(text), "`"+name+"`"), "the variable %s is missing", name)
	}
}
