package settings

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestKeysElsewhereAreHere: a key that an error names for one of the reference system is
// in the schema.
func TestKeysElsewhereAreHere(t *testing.T) {
	var schema map[string]any
	require.NoError(t, json.Unmarshal(Schema(), &schema))
	names, found := regexp.MustCompile(`here it is ([a-z]+\.[a-zA-Z.]+[a-zA-Z])`), 0
	for key, says := range keysElsewhere() {
		m := names.FindStringSubmatch(says)
		if m == nil {
			continue
		}
		found++
		at := schema
		for part := range strings.SplitSeq(m[1], ".") {
			properties, _ := at["properties"].(map[string]any)
			require.Contains(t, properties, part, "%s: %s", key, says)
			at = properties[part].(map[string]any)
		}
	}
	require.GreaterOrEqual(t, found, 6)
}
