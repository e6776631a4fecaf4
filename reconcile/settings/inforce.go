package settings

import (
	"encoding/json"
	"fmt"
	"strings"
)

// InForce returns the settings in use with all defaults, as JSON has them, for people to
// see: of the templates, which may hold a secret, it has the number of lines. It is nil
// before the first settings took effect.
func (l *Live) InForce() map[string]any {
	program := l.Program()
	if program == nil {
		return nil
	}
	s := *program.settings
	if len(s.Dataplane.PodSelector.MatchLabels) > 0 && s.Credentials.Name == "" {
		s.Credentials.Namespace, s.Credentials.Name = l.secret()
	}
	var all map[string]any
	text, err := json.Marshal(&s)
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil { // not of these types
		return map[string]any{"error": err.Error()}
	}
	hideTemplates(all)
	return all
}

func hideTemplates(in map[string]any) {
	for key, value := range in {
		switch v := value.(type) {
		case map[string]any:
			hideTemplates(v)
		case string:
			if key == "template" {
				in[key] = fmt.Sprintf("(%d lines)", strings.Count(v, "\n"))
			}
		}
	}
}
