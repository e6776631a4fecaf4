package haproxyctl

import (
	"regexp"
	"strings"
)

// Message is one message in the output of haproxy, with its continuation lines.
type Message struct {
	Level string // "ALERT", "WARNING", "NOTICE", ...; "" for a line without a level
	Text  string
}

// leveled matches "[ALERT]    (12) : config : parsing [/etc/haproxy/haproxy.cfg:3] : ...".
var leveled = regexp.MustCompile(`^\[([A-Z]+)\]\s*(?:[0-9/]+ +)?(?:\(\d*\))?\s*(?:: )?(?:config : )?(.*)$`)

// Messages cuts the output of haproxy into messages.
func Messages(output string) []Message {
	var messages []Message
	last := &Message{}
	for line := range strings.Lines(output) {
		line = strings.TrimRight(line, "\r\n")
		text := strings.TrimSpace(line)
		goesOn := strings.HasPrefix(line, " ") && last.Text != "" && last.Level != "NOTICE"
		m := leveled.FindStringSubmatch(line)
		switch {
		case text == "":
			continue
		case m != nil:
			messages = append(messages, Message{m[1], strings.TrimSpace(m[2])})
		case goesOn && !strings.HasPrefix(text, "parsing ["):
			last.Text += " " + text
			continue
		case goesOn && strings.HasPrefix(last.Text, "multiple ") && strings.HasSuffix(last.Text, ":"):
			last.Text = text // each line below "multiple argument resolution errors:" is a message
			continue
		case goesOn:
			messages = append(messages, Message{last.Level, text})
		default:
			messages = append(messages, Message{"", line})
		}
		last = &messages[len(messages)-1]
	}
	return messages
}
