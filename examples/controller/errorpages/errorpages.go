// Package errorpages reads responses that HAProxy sends in place of its own error pages.
package errorpages

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/hapticsdk/haptic/dataplane"
)

// maxPage bounds a page in bytes. HAProxy reads it into one buffer (tune.bufsize), and
// keeps a part of that free.
const maxPage = 15_000

// maxHeaders is how many headers of a page HAProxy reads (tune.http.maxhdr).
const maxHeaders = 100

// pageCodes are the status codes for which HAProxy takes pages (errorfile).
var pageCodes = []int{400, 401, 403, 404, 405, 407, 408, 410, 413, 425, 429, 500, 501, 502, 503, 504} // constant in effect

// Read reads a folder of responses. A page that HAProxy would refuse is an error,
// because no configuration with it would be valid.
func Read(folder fs.FS) (pages []dataplane.File, err error) {
	names, err := fs.Glob(folder, "*")
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, name := range names {
		if strings.HasPrefix(name, ".") { // as in a volume of a ConfigMap
			continue
		}
		text, err := fs.ReadFile(folder, name)
		if err == nil {
			err = checkPage(name, text)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
			continue
		}
		pages = append(pages, dataplane.File{Kind: dataplane.General, Name: name, Content: text})
	}
	if len(pages) == 0 && len(errs) == 0 {
		return nil, errors.New("the folder has no page: want files such as 503.http")
	}
	return pages, errors.Join(errs...)
}

func checkPage(name string, text []byte) error {
	code, err := strconv.Atoi(strings.TrimSuffix(name, ".http"))
	switch {
	case err != nil || !strings.HasSuffix(name, ".http") || !slices.Contains(pageCodes, code):
		return fmt.Errorf("want a name such as 503.http, with one of the codes %s", strings.Trim(fmt.Sprint(pageCodes), "[]"))
	case len(text) > maxPage:
		return fmt.Errorf("it has %d bytes, more than the %d of a page: let it load images and styles from elsewhere", len(text), maxPage)
	}
	resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(text)), nil)
	if err != nil {
		return fmt.Errorf("it is no response of HTTP, which begins with a line such as \"HTTP/1.1 503 Service Unavailable\", headers and an empty line: %w", err)
	}
	defer resp.Body.Close()
	headers := 0
	for name, values := range resp.Header {
		headers += len(values)
		if strings.ContainsAny(name, " \t") {
			return fmt.Errorf("its header %q has a space in its name", name)
		}
	}
	body, err := io.ReadAll(resp.Body)
	switch {
	case headers > maxHeaders:
		return fmt.Errorf("it has %d headers, more than the %d that HAProxy reads", headers, maxHeaders)
	case err != nil:
		return fmt.Errorf("its body is shorter than its Content-Length: leave that out: %w", err)
	case resp.StatusCode != code:
		return fmt.Errorf("its status is %d: want %d, as in its name", resp.StatusCode, code)
	case len(resp.TransferEncoding) > 0:
		return errors.New("it has a Transfer-Encoding: leave that out")
	case !bytes.HasSuffix(text, body):
		return errors.New("its body is longer than its Content-Length: leave that out")
	}
	return nil
}
