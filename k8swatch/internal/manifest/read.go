package manifest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Text is the content of a file, or the error of reading it. It is zero for a deleted file.
type Text struct {
	Data []byte
	Err  error
}

// ReadFolder reads the manifests of a folder, by path, and the info of the folder. A file may
// have at most max bytes. The error says that the folder is missing, or that another folder
// took its place meanwhile. Then a missing file does not count as deleted.
func ReadFolder(dir string, max int64) (texts map[string]Text, info os.FileInfo, err error) {
	before, err := os.Stat(dir)
	if err != nil {
		return nil, nil, cause(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, cause(err)
	}
	texts = map[string]Text{}
	for _, e := range entries {
		if isManifest(e.Name()) {
			name := filepath.Join(dir, e.Name())
			data, err := readFile(name, max)
			texts[name] = Text{data, cause(err)}
		}
	}
	after, err := os.Stat(dir)
	if err == nil && !os.SameFile(before, after) {
		err = errors.New("another folder took its place while it was read")
	}
	return texts, after, cause(err)
}

// cause returns an error of a file without the name, which the message has already.
func cause(err error) error {
	var at *os.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &at):
		return at.Err
	case errors.As(err, &link):
		return link.Err
	}
	return err
}

func readFile(name string, max int64) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // do not open it: a pipe would wait for a writer
		return nil, errors.New("it is no regular file; manifests in folders below are not read")
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, max+1))
	if int64(len(data)) > max {
		return nil, fmt.Errorf("it has more than %d bytes (FolderOptions.MaxFile)", max)
	}
	return data, err
}

func isManifest(name string) bool {
	if strings.HasPrefix(name, ".") {
		return false // editors keep swap files and locks under such names
	}
	switch strings.ToLower(filepath.Ext(name)) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return false
}
