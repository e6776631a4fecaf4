package errorpages

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const sorry = "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/html\r\nCache-Control: no-cache\r\n\r\n<h1>we are sorry</h1>\n"

func TestPagesAreChecked(t *testing.T) {
	t.Parallel()
	for want, files := range map[string]map[string]string{
		"the folder has no page":    {},
		"page.html: want a name":    {"page.html": "x"},
		"200.http: want a name":     {"200.http": "HTTP/1.1 200 OK\r\n\r\n"},
		"no response of HTTP":       {"503.http": "<h1>sorry</h1>"},
		"status is 500: want 503":   {"503.http": strings.Replace(sorry, "503", "500", 1)},
		"more than the 15000":       {"503.http": sorry + strings.Repeat("x", 15_000)},
		"shorter than its Content-": {"503.http": strings.Replace(sorry, "Cache-Control: no-cache", "Content-Length: 99", 1)},
		"longer than its Content-L": {"503.http": strings.Replace(sorry, "Cache-Control: no-cache", "Content-Length: 3", 1)},
		"\"A \" has a space in its": {"503.http": strings.Replace(sorry, "Cache-Control:", "A :", 1)},
		"it has 102 headers":        {"503.http": strings.Replace(sorry, "Cache-Control", strings.Repeat("A: b\r\n", 100)+"B", 1)},
		"Transfer-Encoding":         {"503.http": "HTTP/1.1 503 x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
	} {
		folder := fstest.MapFS{}
		for name, text := range files {
			folder[name] = &fstest.MapFile{Data: []byte(text)}
		}
		_, err := Read(folder)
		require.ErrorContains(t, err, want)
	}
	pages, err := Read(fstest.MapFS{"503.http": {Data: []byte(sorry)}, ".hidden": {Data: []byte("x")}})
	require.NoError(t, err)
	require.Len(t, pages, 1)
}
