package kit

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMemory(t *testing.T) {
	const meminfo = "MemTotal:       2097152 kB\nMemFree:        9 kB\n"
	for name, c := range map[string]struct {
		files map[string]string
		want  uint64
	}{
		"no Linux":                       {nil, 0},
		"no container":                   {map[string]string{"proc/meminfo": meminfo}, 2 << 30},
		"no limit":                       {map[string]string{"proc/meminfo": meminfo, "sys/fs/cgroup/memory.max": "max\n"}, 2 << 30},
		"a limit":                        {map[string]string{"proc/meminfo": meminfo, "sys/fs/cgroup/memory.max": "1073741824\n"}, 1 << 30},
		"cgroup v1":                      {map[string]string{"proc/meminfo": meminfo, "sys/fs/cgroup/memory/memory.limit_in_bytes": "1073741824\n"}, 1 << 30},
		"cgroup v1 without a limit":      {map[string]string{"proc/meminfo": meminfo, "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, 2 << 30},
		"a limit, the machine not known": {map[string]string{"sys/fs/cgroup/memory.max": "5\n"}, 5},
	} {
		root := t.TempDir() + "/"
		for file, text := range c.files {
			require.NoError(t, os.MkdirAll(filepath.Dir(root+file), 0o755))
			require.NoError(t, os.WriteFile(root+file, []byte(text), 0o600))
		}
		require.Equal(t, c.want, memoryOf(root), name)
	}
	require.Positive(t, Memory())
}
