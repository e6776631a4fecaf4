package haproxyctl

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMessages(t *testing.T) {
	const output = "[NOTICE]   (12) : haproxy version is 2.6.12\n" +
		"[WARNING]  (12) : config : x : \n  more\n" +
		"[ALERT] 012/010203 (12) : parsing [/a:2] : y\r\n\n" +
		"[ALERT]    (12) : config : multiple argument resolution errors:\n  parsing [/a:3] : z\n  parsing [/a:4] : z\n" +
		"Configuration file is valid\n"
	require.Equal(t, []Message{
		{"NOTICE", "haproxy version is 2.6.12"}, {"WARNING", "x : more"}, {"ALERT", "parsing [/a:2] : y"},
		{"ALERT", "parsing [/a:3] : z"}, {"ALERT", "parsing [/a:4] : z"}, {"", "Configuration file is valid"},
	}, Messages(output))
}
