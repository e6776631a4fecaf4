package place

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

var errNil = errors.New("the value is nil")

// Text returns the text of a value without escaping.
func Text(v any) (string, error) {
	text, _, err := textOf(v)
	return text, err
}

// textOf is [Text]; digits reports a text that is harmless in every place: a boolean, or an
// integer without a sign.
func textOf(v any) (text string, digits bool, err error) {
	switch v := v.(type) {
	case string:
		return v, false, nil
	case []byte:
		return string(v), false, nil
	case int:
		return strconv.Itoa(v), v >= 0, nil
	}
	rv := reflect.ValueOf(v)
	if !rv.IsValid() || rv.Kind() == reflect.Pointer && rv.IsNil() {
		return "", false, errNil
	}
	if text, ok, err := ownText(v); ok {
		return text, false, err
	}
	switch {
	case rv.Kind() == reflect.Pointer: // optional fields of Kubernetes objects
		return textOf(rv.Elem().Interface())
	case rv.Kind() == reflect.String:
		return rv.String(), false, nil
	case rv.Kind() == reflect.Bool:
		return strconv.FormatBool(rv.Bool()), true, nil
	case rv.CanInt():
		return strconv.FormatInt(rv.Int(), 10), rv.Int() >= 0, nil
	case rv.CanUint():
		return strconv.FormatUint(rv.Uint(), 10), true, nil
	case rv.CanFloat():
		return strconv.FormatFloat(rv.Float(), 'f', -1, rv.Type().Bits()), false, nil
	}
	ptr := reflect.New(rv.Type()) // a value may have the methods of its pointer
	ptr.Elem().Set(rv)
	if text, ok, err := ownText(ptr.Interface()); ok {
		return text, false, err
	}
	return "", false, fmt.Errorf("a value of type %T has no text: show its fields or elements", v)
}

// protoMessage is a protobuf message. Its String dumps all fields, and for a Secret the
// data.
type protoMessage interface {
	Marshal() ([]byte, error)
	Size() int
}

// ownText returns the text from the methods of a value; ok is false without one. JSON comes
// first, because it gives the types of Kubernetes the text of a manifest: a metav1.Time in
// UTC, a metav1.Duration as "5s".
func ownText(v any) (text string, ok bool, err error) {
	if v, is := v.(json.Marshaler); is {
		if text, ok, err := scalarText(v); ok {
			return text, true, err
		}
	}
	_, dumps := v.(protoMessage)
	switch v := v.(type) {
	case encoding.TextMarshaler:
		b, err := v.MarshalText()
		if err != nil {
			err = fmt.Errorf("the value has no text: %w", err)
		}
		return string(b), true, err
	case fmt.Stringer:
		if !dumps {
			return v.String(), true, nil
		}
	case error:
		return v.Error(), true, nil
	}
	return "", false, nil
}

// scalarText returns the text of a value's JSON; ok is false for an object or a list.
func scalarText(v json.Marshaler) (text string, ok bool, err error) {
	b, err := v.MarshalJSON()
	switch {
	case err != nil:
		return "", true, fmt.Errorf("the value has no text: %w", err)
	case len(b) == 0 || b[0] == '{' || b[0] == '[':
		return "", false, nil
	case string(b) == "null":
		return "", true, errNil
	case b[0] != '"':
		return strings.TrimSpace(string(b)), true, nil
	}
	err = json.Unmarshal(b, &text)
	return text, true, err
}

// Shorten quotes at most 40 bytes of a value for an error message: the value may be
// hostile, long or secret.
func Shorten(s string) string {
	const most = 40
	if len(s) > most {
		cut := most
		for cut > 0 && s[cut]&0xc0 == 0x80 { // not in the middle of a character
			cut--
		}
		return fmt.Sprintf("%q... (%d bytes)", s[:cut], len(s))
	}
	return fmt.Sprintf("%q", s)
}
