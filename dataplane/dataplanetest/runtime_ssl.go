package dataplanetest

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// loadedCertificate is what HAProxy tells of a certificate.
type loadedCertificate struct {
	StorageName  string     `json:"storage_name,omitempty"`
	Status       string     `json:"status,omitempty"`
	Serial       string     `json:"serial,omitempty"`
	NotBefore    *timestamp `json:"not_before,omitempty"`
	NotAfter     *timestamp `json:"not_after,omitempty"`
	Names        string     `json:"subject_alternative_names,omitempty"`
	Algorithm    string     `json:"algorithm,omitempty"`
	SHA1         string     `json:"sha1_finger_print,omitempty"`
	Subject      string     `json:"subject,omitempty"`
	Issuer       string     `json:"issuers,omitempty"`
	ChainSubject string     `json:"chain_subject,omitempty"`
	ChainIssuer  string     `json:"chain_issuer,omitempty"`
}

// timestamp is a time in the form of the API.
type timestamp time.Time

func (t timestamp) MarshalText() ([]byte, error) {
	return []byte(time.Time(t).UTC().Format("2006-01-02T15:04:05.000Z")), nil
}

func readCertificate(out string) (c loadedCertificate) {
	texts := map[string]*string{
		"Filename": &c.StorageName, "Status": &c.Status, "Serial": &c.Serial, "Subject Alternative Name": &c.Names,
		"Algorithm": &c.Algorithm, "SHA1 FingerPrint": &c.SHA1, "Subject": &c.Subject, "Issuer": &c.Issuer,
		"Chain Subject": &c.ChainSubject, "Chain Issuer": &c.ChainIssuer,
	}
	dates := map[string]**timestamp{"notBefore": &c.NotBefore, "notAfter": &c.NotAfter}
	for line := range strings.Lines(out) {
		key, value, _ := strings.Cut(strings.TrimRight(line, "\n"), ": ")
		if text := texts[key]; text != nil {
			*text = value
		}
		if date := dates[key]; date != nil {
			t, _ := time.Parse("Jan 2 15:04:05 2006 MST", value)
			*date = (*timestamp)(&t)
		}
	}
	return c
}

// showCertificate tells what HAProxy tells of a certificate or of a CA.
func (s *Server) showCertificate(object string) (answer, error) {
	out, err := s.execAs("show ssl "+object, errNotFound)
	if err == nil && out == "" {
		err = fmt.Errorf("%s %w", s.socket(), errNotFound)
	}
	return answer{status: http.StatusOK, body: readCertificate(out)}, err
}

func (s *Server) getCertificate(q *request) (answer, error) {
	return s.showCertificate("cert " + q.args[0])
}

func (s *Server) getCA(q *request) (answer, error) {
	return s.showCertificate("ca-file " + q.args[0] + ":" + q.args[1])
}

// load puts content into the running process, by a transaction of its own. The
// content ends in the line feed of the empty line that ends a payload.
func (s *Server) load(object, name, content string) error {
	err := s.expect("set ssl "+object+" "+name+" <<\n"+content, "transaction created", "transaction updated")
	if err != nil {
		return err
	}
	return s.expect("commit ssl "+object+" "+name, "success!")
}

// loadCertificate has the running process use a certificate from now on.
func (s *Server) loadCertificate(path string, content []byte, create bool) error {
	if create {
		if err := s.expect("new ssl cert "+path, "new empty certificate store"); err != nil {
			return err
		}
	}
	return s.load("cert", path, string(content)+"\n")
}

func (s *Server) deleteCertificate(q *request) (answer, error) {
	if err := s.expect("del ssl cert "+q.args[0], "deleted!"); err != nil {
		return answer{}, err
	}
	return s.did(http.StatusNoContent, nil, "del ssl cert", q.args[0])
}

// setCAFile adds no empty line, unlike loadCertificate: the content has to end
// in one.
func (s *Server) setCAFile(q *request) (answer, error) {
	_, content, err := q.uploaded()
	if err == nil {
		err = s.load("ca-file", q.args[0], string(content))
	}
	if err != nil {
		return answer{}, err
	}
	return s.did(http.StatusCreated, nil, "set ssl ca-file", q.args[0])
}

func (s *Server) getCAFile(q *request) (answer, error) {
	out, err := s.execAs("show ssl ca-file", errNotFound)
	if err != nil {
		return answer{}, err
	}
	for line := range strings.Lines(out) {
		if count, ok := strings.CutPrefix(strings.TrimSpace(line), q.args[0]+" - "); ok {
			return answer{status: http.StatusOK, body: map[string]string{"storage_name": q.args[0], "count": count}}, nil
		}
	}
	return answer{}, s.runtimeError(q.args[0], errNotFound)
}

// crtListEntry is an entry of a crt-list of the running process.
type crtListEntry struct {
	File    string   `json:"file,omitempty"`
	Options string   `json:"ssl_bind_config,omitempty"`
	Names   []string `json:"sni_filter,omitempty"`
	Line    int      `json:"line_number,omitempty"`
}

// readCrtListEntry reads "file:line [options] names", nil for another line.
func readCrtListEntry(line string) *crtListEntry {
	first, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	if first == "" || first[0] == '#' {
		return nil
	}
	e := &crtListEntry{File: first}
	if file, number, ok := strings.Cut(first, ":"); ok {
		n, err := strconv.Atoi(number)
		if err != nil {
			return nil
		}
		e.File, e.Line = file, n
	}
	if strings.HasPrefix(rest, "[") {
		e.Options, rest, _ = strings.Cut(rest[1:], "]")
	}
	e.Names = strings.Fields(rest)
	return e
}

// crtListOf is the crt-list that the query names.
func crtListOf(q *request) (string, error) {
	name := q.param("name")
	if name == "" {
		return "", invalid(codeRequired, "name in query is required")
	}
	return name, nil
}

func (s *Server) listCrtList(q *request) (answer, error) {
	name, err := crtListOf(q)
	if err != nil {
		return answer{}, err
	}
	out, err := s.execAs("show ssl crt-list -n "+name, errNotFound)
	if err == nil && (out == "" || strings.HasPrefix(out, "didn't find the specified filename")) {
		err = fmt.Errorf("%s %w", s.socket(), errNotFound)
	}
	list := []*crtListEntry{}
	for line := range strings.Lines(out) {
		if e := readCrtListEntry(line); e != nil {
			list = append(list, e)
		}
	}
	return answer{status: http.StatusOK, body: list}, err
}

// addToCrtList forgets the empty line that ends a payload, as the API does.
func (s *Server) addToCrtList(q *request) (answer, error) {
	list, err := crtListOf(q)
	if err != nil {
		return answer{}, err
	}
	var data crtListEntry
	if err := q.decode(&data); err != nil {
		return answer{}, err
	}
	if data.File == "" {
		return answer{}, s.runtimeError("Filename empty", errGeneral)
	}
	entry := data.File
	if data.Options != "" {
		entry += " [" + data.Options + "]"
	}
	if len(data.Names) > 0 {
		entry += " " + strings.Join(data.Names, " ")
	}
	command := "add ssl crt-list " + list + " "
	if entry != data.File {
		command += "<<\n"
	}
	if err := s.expect(command+entry+"\n", "success"); err != nil {
		return answer{}, err
	}
	return s.did(http.StatusCreated, nil, "add ssl crt-list", list, entry)
}

func (s *Server) dropFromCrtList(q *request) (answer, error) {
	list, err := crtListOf(q)
	if err != nil {
		return answer{}, err
	}
	entry := q.param("cert_file")
	if entry == "" {
		return answer{}, invalid(codeRequired, "cert_file in query is required")
	}
	if line := q.param("line_number"); line != "" {
		entry += ":" + line
	}
	out, err := s.execAs("del ssl crt-list "+list+" "+entry, errNotFound)
	if err == nil && !strings.Contains(out, "deleted in crtlist") {
		err = s.runtimeError(out, errGeneral)
	}
	if err != nil {
		return answer{}, err
	}
	return s.did(http.StatusNoContent, nil, "del ssl crt-list", list, entry)
}
