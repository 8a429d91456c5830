package es

import (
	"bytes"
	"encoding/binary"
	"reflect"
	"strings"
)

// bodyForm reads bodies of one type in the form that [Msgpack] writes them in, at a third of what the codec takes: it knows the type
// beforehand, and expects its fields in their order. It says false for a body in any other form, however right, which the codec is
// then to read. So where it says true it gives what the codec gives.
type bodyForm struct{ read valueReader }

// valueReader reads a value that begins the body, and gives the rest. It says false when it is not in the form it knows.
type valueReader func(body []byte, to reflect.Value) ([]byte, bool)

// formOf gives the form of bodies of a type, and nil for a type that holds what it does not know: maps, times, numbers with fractions,
// interfaces, and types that read themselves.
func formOf(t reflect.Type) *bodyForm {
	if t.Kind() != reflect.Struct {
		return nil
	}
	if read := readerOf(t, map[reflect.Type]bool{}); read != nil {
		return &bodyForm{read: read}
	}
	return nil
}

// decode reads a whole body. When it says false, what it has set is of no use.
func (f *bodyForm) decode(body []byte, to reflect.Value) bool {
	rest, ok := f.read(body, to)
	return ok && len(rest) == 0
}

// readerOf gives the reader of values of a type, nil for one that is not known. Above are the types that hold it.
func readerOf(t reflect.Type, above map[reflect.Type]bool) valueReader {
	if above[t] || readsItself(t) {
		return nil
	}
	switch t.Kind() {
	case reflect.String:
		return readText
	case reflect.Bool:
		return readBool
	case reflect.Int, reflect.Int64:
		return readInt
	case reflect.Uint64:
		return readUint
	case reflect.Pointer:
		return readerOfPointer(t, above)
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return readBytes
		}
		return readerOfSlice(t, above)
	case reflect.Struct:
		above[t] = true
		defer delete(above, t)
		return readerOfStruct(t, above)
	}
	return nil
}

// readsItself says whether a type has methods that a codec might call to read it.
func readsItself(t reflect.Type) bool {
	for _, name := range []string{"DecodeMsgpack", "UnmarshalMsgpack", "UnmarshalBinary", "UnmarshalText"} {
		if _, ok := reflect.PointerTo(t).MethodByName(name); ok {
			return true
		}
	}
	return false
}

// The codes of MessagePack that are read here.
const (
	codeFixMap   = 0x80
	codeFixArray = 0x90
	codeFixText  = 0xa0
	codeFalse    = 0xc2
	codeTrue     = 0xc3
	codeBytes8   = 0xc4
	codeBytes16  = 0xc5
	codeUint8    = 0xcc
	codeUint16   = 0xcd
	codeUint32   = 0xce
	codeUint64   = 0xcf
	codeText8    = 0xd9
	codeText16   = 0xda
)

// cutBytes takes so many bytes off the body, after a length of so many bytes behind the code.
func cutBytes(body []byte, lengthBytes int) (cut, rest []byte, ok bool) {
	if len(body) < 1+lengthBytes {
		return nil, nil, false
	}
	n, from := 0, 1+lengthBytes
	for _, b := range body[1:from] {
		n = n<<8 | int(b)
	}
	if len(body)-from < n {
		return nil, nil, false
	}
	return body[from : from+n], body[from+n:], true
}

func cutText(body []byte) (cut, rest []byte, ok bool) {
	switch {
	case len(body) == 0:
		return nil, nil, false
	case body[0]&0xe0 == codeFixText:
		n := 1 + int(body[0]&0x1f)
		if len(body) < n {
			return nil, nil, false
		}
		return body[1:n], body[n:], true
	case body[0] == codeText8:
		return cutBytes(body, 1)
	case body[0] == codeText16:
		return cutBytes(body, 2)
	}
	return nil, nil, false
}

func readText(body []byte, to reflect.Value) ([]byte, bool) {
	text, rest, ok := cutText(body)
	if ok {
		to.SetString(string(text))
	}
	return rest, ok
}

func readBytes(body []byte, to reflect.Value) ([]byte, bool) {
	lengthBytes := 1
	switch {
	case len(body) == 0:
		return nil, false
	case body[0] == codeBytes16:
		lengthBytes = 2
	case body[0] != codeBytes8:
		return nil, false
	}
	found, rest, ok := cutBytes(body, lengthBytes)
	if !ok || len(found) == 0 {
		return nil, false
	}
	to.SetBytes(bytes.Clone(found))
	return rest, true
}

func readBool(body []byte, to reflect.Value) ([]byte, bool) {
	if len(body) == 0 || body[0] != codeFalse && body[0] != codeTrue {
		return nil, false
	}
	to.SetBool(body[0] == codeTrue)
	return body[1:], true
}

// cutUint takes a number that is not below zero off the body.
func cutUint(body []byte) (n uint64, rest []byte, ok bool) {
	if len(body) == 0 {
		return 0, nil, false
	}
	size := 0
	switch body[0] {
	case codeUint8:
		size = 1
	case codeUint16:
		size = 2
	case codeUint32:
		size = 4
	case codeUint64:
		size = 8
	default:
		return uint64(body[0]), body[1:], body[0] < codeFixMap
	}
	if len(body) < 1+size {
		return 0, nil, false
	}
	var whole [8]byte
	copy(whole[8-size:], body[1:1+size])
	return binary.BigEndian.Uint64(whole[:]), body[1+size:], true
}

func readInt(body []byte, to reflect.Value) ([]byte, bool) {
	n, rest, ok := cutUint(body)
	if !ok || n > 1<<31-1 {
		return nil, false
	}
	to.SetInt(int64(n))
	return rest, true
}

func readUint(body []byte, to reflect.Value) ([]byte, bool) {
	n, rest, ok := cutUint(body)
	if ok {
		to.SetUint(n)
	}
	return rest, ok
}

func readerOfPointer(t reflect.Type, above map[reflect.Type]bool) valueReader {
	read := readerOf(t.Elem(), above)
	if read == nil || t.Elem().Kind() != reflect.Struct {
		return nil
	}
	return func(body []byte, to reflect.Value) ([]byte, bool) {
		p := reflect.New(t.Elem())
		rest, ok := read(body, p.Elem())
		to.Set(p)
		return rest, ok
	}
}

func readerOfSlice(t reflect.Type, above map[reflect.Type]bool) valueReader {
	read := readerOf(t.Elem(), above)
	if read == nil {
		return nil
	}
	return func(body []byte, to reflect.Value) ([]byte, bool) {
		if len(body) == 0 || body[0]&0xf0 != codeFixArray || body[0] == codeFixArray {
			return nil, false // longer ones are rare, and an empty one is left out
		}
		n := int(body[0] & 0xf)
		list := reflect.MakeSlice(t, n, n)
		rest, ok := body[1:], true
		for i := 0; i < n && ok; i++ {
			rest, ok = read(rest, list.Index(i))
		}
		to.Set(list)
		return rest, ok
	}
}

// formField is a field of a struct; those of an embedded struct are its own.
type formField struct {
	name  string
	index []int
	read  valueReader
}

func readerOfStruct(t reflect.Type, above map[reflect.Type]bool) valueReader {
	fields, ok := formFields(t, nil, above)
	if !ok {
		return nil
	}
	names := map[string]bool{}
	for _, f := range fields {
		if names[f.name] {
			return nil
		}
		names[f.name] = true
	}
	return func(body []byte, to reflect.Value) ([]byte, bool) {
		if len(body) == 0 || body[0]&0xf0 != codeFixMap {
			return nil, false
		}
		rest, at := body[1:], 0
		for range int(body[0] & 0xf) {
			name, after, ok := cutText(rest)
			if !ok {
				return nil, false
			}
			for at < len(fields) && fields[at].name != string(name) {
				at++ // it was left out
			}
			if at == len(fields) {
				return nil, false // one that is not known, or not in its place
			}
			f := &fields[at]
			field := to.Field(f.index[0])
			for _, deeper := range f.index[1:] {
				field = field.Field(deeper)
			}
			if rest, ok = f.read(after, field); !ok {
				return nil, false
			}
			at++
		}
		return rest, true
	}
}

func formFields(t reflect.Type, outer []int, above map[reflect.Type]bool) (fields []formField, ok bool) {
	for i := range t.NumField() {
		of := t.Field(i)
		index := append(outer[:len(outer):len(outer)], i)
		name, options, _ := strings.Cut(of.Tag.Get("json"), ",")
		switch {
		case of.Anonymous && name == "" && options == "" && of.Type.Kind() == reflect.Struct && !readsItself(of.Type):
			own, ok := formFields(of.Type, index, above)
			if !ok {
				return nil, false
			}
			fields = append(fields, own...)
			continue
		case of.Anonymous || !of.IsExported() || name == "" || name == "-" || strings.Contains(options, "inline"):
			return nil, false
		}
		read := readerOf(of.Type, above)
		if read == nil {
			return nil, false
		}
		fields = append(fields, formField{name: name, index: index, read: read})
	}
	return fields, true
}
