package daemon

import (
	"fmt"
	"os/exec"
	"strings"
)

// Check makes haproxy check a configuration file. It returns the errors in the form of
// client-native's messages, "" if there are none.
func Check(binary, file string) string {
	cmd := exec.Command(binary, "-W", "-f", file, "-c")
	var printed strings.Builder
	cmd.Stderr = &printed
	err := cmd.Run()
	if err == nil {
		return ""
	}
	var lines []string
	for line := range strings.Lines(printed.String()) {
		line = alert(strings.TrimSpace(line))
		if line != "" {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return err.Error()
	}
	return strings.Join(lines, "\n")
}

// alert reads a line such as "[ALERT] (12) : config : parsing [file:3] : text". It returns ""
// for other lines and for summaries.
func alert(line string) string {
	parts := strings.Split(line, " : ")
	if !strings.HasPrefix(line, "[ALERT]") || len(parts) < 2 || strings.HasSuffix(line, "fatal errors found in configuration.") ||
		strings.Contains(line, "error(s) found in configuration file : ") {
		return ""
	}
	return fmt.Sprintf("msg=\"%s\"", strings.TrimSpace(strings.Join(parts[1:], " ")))
}
