package kit

import (
	"os"
	"strconv"
	"strings"
)

// Memory returns how many bytes this process and those that it starts have: the limit of the
// container, or else the memory of the machine. It returns 0 if neither is known.
func Memory() uint64 { return memoryOf("/") }

// memoryOf reads the files of Linux below root: cgroup v2, cgroup v1, then /proc/meminfo. A
// container sees its own cgroup at the top.
func memoryOf(root string) uint64 {
	machine := uint64(0)
	if _, rest, ok := strings.Cut(readFile(root+"proc/meminfo"), "MemTotal:"); ok {
		if fields := strings.Fields(rest); len(fields) > 0 {
			kilobytes, _ := strconv.ParseUint(fields[0], 10, 54)
			machine = kilobytes << 10
		}
	}
	for _, name := range []string{"sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		limit, err := strconv.ParseUint(strings.TrimSpace(readFile(root+name)), 10, 64) // "max": no limit
		if err == nil && limit > 0 && (machine == 0 || limit < machine) {
			return limit
		}
	}
	return machine
}

func readFile(name string) string {
	text, _ := os.ReadFile(name) // a missing file says nothing
	return string(text)
}
