package k8swatch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	yamlnode "go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/hapticsdk/haptic/k8swatch/internal/memapi"
)

// SourceAnnotation is set on the objects of a [Folder] to "file:line", so that a
// later error about an object can name its manifest.
const SourceAnnotation = "haptic.hapticsdk.dev/source"

// ManifestError is an error in a file of a [Folder]. The last good objects of
// that file stay in use.
type ManifestError struct {
	File string // path, as the folder was given
	Line int    // 1-based; 0 where the whole file is meant
	Err  error
}

// Error implements error.
func (e *ManifestError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %v", e.File, e.Err)
	}
	return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Err)
}

// Unwrap implements errors.Is and errors.As.
func (e *ManifestError) Unwrap() error { return e.Err }

// manifest is one object of a file.
type manifest struct {
	gvr  schema.GroupVersionResource
	obj  Object
	file string
	line int
}

func (m *manifest) where() string { return fmt.Sprintf("%s:%d", m.file, m.line) }

func (m *manifest) String() string {
	name := m.obj.GetName()
	if ns := m.obj.GetNamespace(); ns != "" {
		name = ns + "/" + name
	}
	return m.obj.GetObjectKind().GroupVersionKind().Kind + " " + name
}

// parseManifests decodes all documents of a file. Either all of it is good, or
// there is at least one error.
func parseManifests(file string, data []byte) ([]*manifest, []error) {
	var all []*manifest
	var errs []error
	for _, doc := range splitDocuments(data) {
		text := bytes.TrimSuffix(doc.text, []byte("\n"))
		d := decoder{file: file, first: doc.line, lines: bytes.Count(text, []byte("\n")) + 1}
		d.document(doc.text)
		all, errs = append(all, d.found...), append(errs, d.errs...)
	}
	return all, errs
}

type document struct {
	text []byte
	line int // of the first line of text, 1-based
}

// splitDocuments splits at the lines that begin a YAML document. Within a
// document a line cannot begin with "---" at the left margin (YAML 1.2, 9.1.2).
func splitDocuments(data []byte) []document {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	var docs []document
	start, line, first := 0, 1, 1
	for at := 0; at < len(data); {
		end := len(data)
		if n := bytes.IndexByte(data[at:], '\n'); n >= 0 {
			end = at + n + 1
		}
		if l := bytes.TrimRight(data[at:end], "\r\n"); bytes.HasPrefix(l, []byte("---")) && (len(l) == 3 || l[3] == ' ' || l[3] == '\t') {
			docs = append(docs, document{data[start:at], first})
			start, first = at, line
		}
		at = end
		line++
	}
	return append(docs, document{data[start:], first})
}

// decoder decodes one document.
type decoder struct {
	file  string
	first int // line of the document in the file
	lines int // of the document
	root  yamlnode.Node
	found []*manifest
	errs  []error
}

// fail notes an error at a line of the document, 1-based; 0 means its beginning.
func (d *decoder) fail(line int, err error) {
	d.errs = append(d.errs, &ManifestError{File: d.file, Line: d.at(line), Err: err})
}

// at turns a line of the document into one of the file. YAML counts more
// characters as line breaks than editors do, and errors may be past the end.
func (d *decoder) at(line int) int {
	return d.first + min(max(line, 1), max(d.lines, 1)) - 1
}

var yamlLine = regexp.MustCompile(`^(?:error converting YAML to JSON: )?yaml: (?:unmarshal errors:\n\s+)?line (\d+): `)

func (d *decoder) failYAML(err error) {
	text, line := err.Error(), 1
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		line, _ = strconv.Atoi(m[1])
		text = text[len(m[0]):]
	}
	d.fail(line, fmt.Errorf("not YAML: %s", strings.TrimPrefix(text, "yaml: ")))
}

func (d *decoder) document(text []byte) {
	if err := yamlnode.Unmarshal(text, &d.root); err != nil {
		d.failYAML(err)
		return
	}
	if d.root.Kind == 0 || (len(d.root.Content) == 1 && d.root.Content[0].Tag == "!!null") {
		return // nothing but comments
	}
	data, err := yaml.YAMLToJSONStrict(text) // refuses duplicate keys
	if err != nil {
		d.failYAML(err)
		return
	}
	d.object(data, d.root.Content[0])
}

// object decodes one object, or the items of a List; node is where it stands.
func (d *decoder) object(data []byte, node *yamlnode.Node) {
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct {
			Name string `json:"name"`
		} `json:"metadata"`
		Items []json.RawMessage `json:"items"`
	}
	if node.Kind != yamlnode.MappingNode {
		d.fail(node.Line, errors.New("not a Kubernetes object"))
		return
	}
	if err := json.Unmarshal(data, &head); err != nil {
		d.failJSON(data, node, err)
		return
	}
	gv, err := schema.ParseGroupVersion(head.APIVersion)
	switch {
	case head.Kind == "" || head.APIVersion == "":
		d.fail(node.Line, errors.New("not a Kubernetes object: apiVersion or kind is missing"))
	case err != nil || gv.Version == "":
		d.fail(lineOf(node, "apiVersion"), fmt.Errorf("apiVersion %q is not group/version", head.APIVersion))
	case strings.HasSuffix(head.Kind, "List") && head.Metadata.Name == "":
		for i, item := range head.Items {
			if at, ok := child(node, "items"); ok && i < len(at.Content) {
				d.item(item, at.Content[i], gv, head.Kind)
			}
		}
	default:
		d.decode(data, node, gv.WithKind(head.Kind))
	}
}

// item decodes an item of a list; those of an IngressList need not repeat what
// they are.
func (d *decoder) item(data []byte, node *yamlnode.Node, gv schema.GroupVersion, list string) {
	kind := strings.TrimSuffix(list, "List")
	if _, ok := child(node, "kind"); !ok && kind != "" && node.Kind == yamlnode.MappingNode {
		d.decode(data, node, gv.WithKind(kind))
		return
	}
	d.object(data, node)
}

func (d *decoder) decode(data []byte, node *yamlnode.Node, gvk schema.GroupVersionKind) {
	var obj runtime.Object = &unstructured.Unstructured{}
	if scheme.Scheme.Recognizes(gvk) {
		typed, err := scheme.Scheme.New(gvk)
		if err != nil {
			d.fail(node.Line, err)
			return
		}
		strict, err := kjson.UnmarshalStrict(data, typed)
		if err != nil {
			d.failJSON(data, node, err)
			return
		}
		for _, err := range strict {
			line := node.Line
			if at, ok := err.(kjson.FieldError); ok { //nolint:errorlint // never wrapped
				line = lineOf(node, at.FieldPath())
			}
			d.fail(line, fmt.Errorf("%s: %w", gvk.Kind, err))
		}
		if len(strict) > 0 {
			return
		}
		obj = typed
	} else if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &obj.(*unstructured.Unstructured).Object); err != nil {
		d.failJSON(data, node, err)
		return
	}
	obj.GetObjectKind().SetGroupVersionKind(gvk)
	d.keep(obj, node)
}

// keep completes an object as the API server would.
func (d *decoder) keep(obj runtime.Object, node *yamlnode.Node) {
	o, gvr, err := memapi.Normalize(obj)
	if err != nil {
		d.fail(node.Line, err)
		return
	}
	kind := o.GetObjectKind().GroupVersionKind().Kind
	if o.GetName() == "" {
		d.fail(node.Line, fmt.Errorf("%s: metadata.name is missing", kind))
		return
	}
	switch {
	case !memapi.Namespaced(kind):
		o.SetNamespace("")
	case o.GetNamespace() == "":
		o.SetNamespace("default")
	}
	if s, ok := o.(*corev1.Secret); ok && len(s.StringData) > 0 {
		if s.Data == nil {
			s.Data = map[string][]byte{}
		}
		for k, v := range s.StringData {
			s.Data[k] = []byte(v)
		}
		s.StringData = nil
	}
	m := &manifest{gvr: gvr, obj: o, file: d.file, line: d.at(node.Line)}
	annotations := o.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[SourceAnnotation] = m.where()
	o.SetAnnotations(annotations)
	d.found = append(d.found, m)
}
