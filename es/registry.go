package es

import (
	"fmt"
	"reflect"

	"github.com/cockroachdb/errors"
)

// ErrUnknownType marks an event whose type this program does not know: it was recorded by a newer one.
var ErrUnknownType = errors.New("unknown event type")

// ErrUndecodable marks an event whose type is known but whose body can't be read.
var ErrUndecodable = errors.New("event body can't be read")

// Registry knows every event type: its stored name, the Go type it decodes to, and how an old version becomes the present
// one. Build it once, then only read it; reading is safe from many goroutines.
type Registry struct {
	codec  Codec
	byName map[string]registered
	byType map[reflect.Type]string
}

type registered struct {
	decode func([]byte) (any, error)
	typ    reflect.Type
	upcast func(any) any
}

// NewRegistry returns an empty registry that reads and writes bodies with the codec.
func NewRegistry(codec Codec) *Registry {
	return &Registry{codec: codec, byName: map[string]registered{}, byType: map[reflect.Type]string{}}
}

// Codec returns the registry's codec.
func (r *Registry) Codec() Codec { return r.codec }

// Register binds the stored name of an event type to the Go type it decodes to. It panics when either is bound already, or
// when the codec can't store the type always in the same form: a mistake in the program, found at its first start.
func Register[E any](r *Registry, name string) {
	r.bind(name, registered{typ: reflect.TypeFor[E](), decode: decoderOf[E](r.codec)})
}

// Upcast binds the stored name of an old version to the type it decodes to and to the function that makes a newer version
// of it, which may be an old one itself. Old versions are read for ever and never written.
func Upcast[Old, New any](r *Registry, name string, up func(Old) New) {
	r.bind(name, registered{typ: reflect.TypeFor[Old](), decode: decoderOf[Old](r.codec), upcast: func(v any) any { return up(v.(Old)) }})
}

func (r *Registry) bind(name string, reg registered) {
	if _, ok := r.byName[name]; ok {
		panic(fmt.Sprintf("es: event type %s is registered already", name))
	}
	if other, ok := r.byType[reg.typ]; ok {
		panic(fmt.Sprintf("es: %v is registered as %s already", reg.typ, other))
	}
	if c, ok := r.codec.(typeChecker); ok {
		if err := c.CheckType(reg.typ); err != nil {
			panic(fmt.Sprintf("es: event type %s: %v", name, err))
		}
	}
	r.byName[name], r.byType[reg.typ] = reg, name
}

// typeChecker is a codec that does not give every type always the same form.
type typeChecker interface {
	CheckType(reflect.Type) error
}

// timelessCodec is a codec that is faster on types which hold no time.
type timelessCodec interface {
	UnmarshalTimeless(data []byte, v any) error
}

// decoderOf gives what reads bodies of a type.
func decoderOf[E any](c Codec) func([]byte) (any, error) {
	unmarshal := c.Unmarshal
	if t, ok := c.(timelessCodec); ok && !holdsTime(reflect.TypeFor[E]()) {
		unmarshal = t.UnmarshalTimeless
	}
	var form *bodyForm
	if _, ok := c.(Msgpack); ok {
		form = formOf(reflect.TypeFor[E]())
	}
	return func(body []byte) (any, error) {
		if form != nil {
			var e E
			if form.decode(body, reflect.ValueOf(&e).Elem()) {
				return e, nil
			}
		}
		var e E
		err := unmarshal(body, &e)
		return e, err
	}
}

// Names lists every stored name the registry can read, old versions included.
func (r *Registry) Names() []string {
	names := make([]string, 0, len(r.byName))
	for n := range r.byName {
		names = append(names, n)
	}
	return names
}

// Zero gives the zero value of the type that a stored name decodes to, before upcasting. It gives errors marked
// [ErrUnknownType].
func (r *Registry) Zero(name string) (any, error) {
	reg, ok := r.byName[name]
	if !ok {
		return nil, errors.Mark(errors.Newf("event type %q", name), ErrUnknownType)
	}
	return reflect.Zero(reg.typ).Interface(), nil
}

// Encode gives the stored name and body of event data. It gives errors marked [ErrUnknownType].
func (r *Registry) Encode(data any) (name string, body []byte, err error) {
	name, ok := r.byType[reflect.TypeOf(data)]
	if !ok || r.byName[name].upcast != nil {
		return "", nil, errors.Mark(errors.Newf("%T is not registered as the present version of an event", data), ErrUnknownType)
	}
	body, err = r.codec.Marshal(data)
	return name, body, err
}

// Decode reads a stored message: headers, and the body upcast to its present version. For an unknown type or a body that
// can't be read it returns the event without data, beside an error marked [ErrUnknownType] or [ErrUndecodable]; for
// a message that is no event at all, one marked [ErrMalformed].
func (r *Registry) Decode(m Message) (Event, error) {
	e, err := ReadEvent(m)
	if err != nil {
		return e, err
	}
	if e.Data, err = r.DecodeBody(e.Type, e.Body); err != nil {
		return e, errors.Wrapf(err, "event %d on %s", e.Sequence, m.Subject)
	}
	return e, nil
}

// DecodeBody reads a stored body, upcast to its present version. It gives errors marked [ErrUnknownType] or
// [ErrUndecodable].
func (r *Registry) DecodeBody(name string, body []byte) (any, error) {
	reg, ok := r.byName[name]
	if !ok {
		return nil, errors.Mark(errors.Newf("the type %q is not known to this program: it was recorded by a newer version", name), ErrUnknownType)
	}
	data, err := reg.decode(body)
	if err != nil {
		return nil, errors.Mark(errors.Wrapf(err, "of type %s", name), ErrUndecodable)
	}
	for reg.upcast != nil {
		data = reg.upcast(data)
		next, ok := r.byType[reflect.TypeOf(data)]
		if !ok {
			return nil, errors.Mark(errors.Newf("upcasting %s gave %T, which is not registered", name, data), ErrUndecodable)
		}
		reg = r.byName[next]
	}
	return data, nil
}
