// Package manifest decodes Kubernetes manifests strictly, and finds the line of each mistake.
package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strings"

	yamlnode "go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/hapticsdk/haptic/internal/strictyaml"
	"github.com/hapticsdk/haptic/k8swatch/internal/memapi"
)

// SourceAnnotation is set to "file:line" on each object.
const SourceAnnotation = "haptic.hapticsdk.dev/source"

// Object is one object of a manifest: typed if a type is known, and completed as by the
// API server.
type Object struct {
	memapi.Object
	Resource schema.GroupVersionResource
	Line     int // 1-based
}

// Error is a mistake and its line, 1-based. It does not repeat values, which may be secret.
type Error struct {
	Line int
	Err  error
}

// Parse decodes the documents of a file. Either all of it is good, or there is at least
// one error.
func Parse(file string, data []byte, types memapi.Types) ([]Object, []Error) {
	p := parser{file: file, types: types, lines: bytes.Count(bytes.TrimSuffix(data, []byte("\n")), []byte("\n")) + 1}
	for docs := yamlnode.NewDecoder(bytes.NewReader(data)); ; {
		var doc yamlnode.Node
		if err := docs.Decode(&doc); errors.Is(err, io.EOF) {
			return p.found, p.errs
		} else if err != nil {
			line, message := strictyaml.Broken(data, err)
			p.fail(line, fmt.Errorf("not YAML: %s", message))
			return p.found, p.errs
		}
		if doc.Content[0].Tag != "!!null" {
			p.document(&doc)
		}
	}
}

// Decode decodes one manifest, or a List, at a node of another YAML file.
func Decode(file string, node *yamlnode.Node, types memapi.Types) ([]Object, []Error) {
	p := parser{file: file, types: types, lines: math.MaxInt}
	p.document(node)
	return p.found, p.errs
}

type parser struct {
	file  string
	types memapi.Types
	lines int // of the file
	found []Object
	errs  []Error
}

// fail notes an error. The line stays within the file: YAML knows more line breaks than
// editors, so its line may be past the end.
func (p *parser) fail(line int, err error) {
	p.errs = append(p.errs, Error{p.line(line), err})
}

func (p *parser) line(n int) int { return min(max(n, 1), p.lines) }

var yamlLine = regexp.MustCompile(`^(?:error converting YAML to JSON: )?yaml: (?:unmarshal errors:\n\s+)?(?:line \d+: )?`)

// yamlValue finds the value in a message of a YAML parser.
var yamlValue = regexp.MustCompile("(?s) `.*`")

func (p *parser) document(node *yamlnode.Node) {
	i := inliner{budget: maxAliased}
	plain, err := i.copy(node, false)
	if err != nil {
		p.fail(i.line, fmt.Errorf("not YAML: %w", err))
		return
	}
	// kubectl reads YAML 1.1, and this does too: an unquoted yes is a boolean.
	text, err := jsonOf(plain)
	if err != nil {
		// The position in the message refers to generated text.
		p.fail(plain.Line, fmt.Errorf("not YAML: %s", yamlValue.ReplaceAllString(yamlLine.ReplaceAllString(err.Error(), ""), "")))
		return
	}
	p.object(text, plain)
}

// object decodes one object, or the items of a List. node is its place.
func (p *parser) object(data []byte, node *yamlnode.Node) {
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct {
			Name string `json:"name"`
		} `json:"metadata"`
		Items []json.RawMessage `json:"items"`
	}
	if node.Kind != yamlnode.MappingNode {
		p.fail(node.Line, errors.New("not a Kubernetes object"))
		return
	}
	if err := json.Unmarshal(data, &head); err != nil {
		p.failJSON(data, node, err)
		return
	}
	gv, err := schema.ParseGroupVersion(head.APIVersion)
	switch {
	case head.Kind == "" || head.APIVersion == "":
		hint := ""
		if at := versionOf(head.Kind); at != "" {
			hint = fmt.Sprintf("; %s has apiVersion %s", head.Kind, at)
		}
		p.fail(node.Line, errors.New("not a Kubernetes object: apiVersion or kind is missing"+hint))
	case err != nil || gv.Version == "":
		p.fail(lineOf(node, "apiVersion"), fmt.Errorf("apiVersion %q is not group/version", head.APIVersion))
	case strings.HasSuffix(head.Kind, "List") && head.Metadata.Name == "":
		items := child(node, "items")
		for i, item := range head.Items {
			if items != nil && i < len(items.Content) {
				p.item(item, items.Content[i], gv, strings.TrimSuffix(head.Kind, "List"))
			}
		}
	default:
		p.decode(data, node, gv.WithKind(head.Kind))
	}
}

// item decodes an item of a list. Items of an IngressList need no apiVersion and kind.
func (p *parser) item(data []byte, node *yamlnode.Node, gv schema.GroupVersion, kind string) {
	if kind != "" && node.Kind == yamlnode.MappingNode && child(node, "kind") == nil {
		p.decode(data, node, gv.WithKind(kind))
		return
	}
	p.object(data, node)
}

// maxObject bounds one object, in bytes as JSON. An API server takes no larger request,
// so a folder holds only objects that a cluster can hold.
const maxObject = 3 << 20

func (p *parser) decode(data []byte, node *yamlnode.Node, gvk schema.GroupVersionKind) {
	if len(data) > maxObject {
		p.fail(node.Line, fmt.Errorf("%s: it has %d bytes as JSON, more than the %d of one object", gvk.Kind, len(data), maxObject))
		return
	}
	var obj runtime.Object
	typed, err := p.types.New(gvk)
	if err != nil {
		p.fail(node.Line, err)
		return
	}
	if typed != nil {
		strict, err := kjson.UnmarshalStrict(data, typed)
		if old := retired(typed); old != "" && (err != nil || len(strict) > 0) {
			p.fail(lineOf(node, "apiVersion"), fmt.Errorf("%s: apiVersion %s %s", gvk.Kind, gvk.GroupVersion(), old))
			return
		}
		if err != nil {
			p.failJSON(data, node, err)
			return
		}
		for _, err := range strict {
			var at kjson.FieldError
			errors.As(err, &at)
			p.fail(lineOf(node, at.FieldPath()), fmt.Errorf("%s: %w", gvk.Kind, err))
		}
		if len(strict) > 0 {
			return
		}
		obj = typed
	} else {
		u := &unstructured.Unstructured{}
		if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &u.Object); err != nil {
			p.failJSON(data, node, err)
			return
		}
		obj = u
	}
	obj.GetObjectKind().SetGroupVersionKind(gvk)
	p.keep(obj, node)
}

// keep completes an object as the API server would.
func (p *parser) keep(obj runtime.Object, node *yamlnode.Node) {
	o, gvr, err := p.types.Normalize(obj)
	if err != nil {
		p.fail(node.Line, err)
		return
	}
	kind := o.GetObjectKind().GroupVersionKind().Kind
	switch {
	case o.GetName() == "":
		p.fail(node.Line, fmt.Errorf("%s: metadata.name is missing", kind))
		return
	case !memapi.Namespaced(kind):
		o.SetNamespace("")
	case o.GetNamespace() == "":
		o.SetNamespace("default")
	}
	if s, ok := o.(*corev1.Secret); ok {
		for k, v := range s.StringData {
			if s.Data == nil {
				s.Data = map[string][]byte{}
			}
			s.Data[k] = []byte(v)
		}
		s.StringData = nil
	}
	line := p.line(node.Line)
	annotations := o.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[SourceAnnotation] = fmt.Sprintf("%s:%d", p.file, line)
	o.SetAnnotations(annotations)
	p.found = append(p.found, Object{o, gvr, line})
}
