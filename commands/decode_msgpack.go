package commands

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"time"

	"catenary/es"
)

// readMsgpack reads a body in msgpack.
func readMsgpack(body []byte) (value, *es.Refusal) {
	p := msgpackParser{src: body}
	v := p.parse()
	if p.refusal == nil && p.at < len(body) {
		p.fail(CodeTrailingData, "the body goes on after its end at byte %d", p.at)
	}
	return v, p.refusal
}

// msgpackParser takes apart msgpack. It trusts no length it reads: nothing is allocated for items that are not there.
type msgpackParser struct {
	src     []byte
	at      int
	depth   int
	refusal *es.Refusal
}

func (p *msgpackParser) fail(code, format string, args ...any) {
	if p.refusal == nil {
		p.refusal = invalid(code, fmt.Sprintf(format, args...), "")
	}
}

// take gives the next n bytes, or nothing after a refusal.
func (p *msgpackParser) take(n int) []byte {
	if p.refusal != nil {
		return nil
	}
	if n < 0 || n > len(p.src)-p.at {
		p.fail(CodeMalformed, "the body is not msgpack: it stops in the middle, after %d bytes", len(p.src))
		return nil
	}
	b := p.src[p.at : p.at+n]
	p.at += n
	return b
}

// number gives the next n bytes as a number.
func (p *msgpackParser) number(n int) uint64 {
	var wide [8]byte
	copy(wide[8-n:], p.take(n))
	return binary.BigEndian.Uint64(wide[:])
}

// length gives the next n bytes as a length, which can't be more than what is left.
func (p *msgpackParser) length(n int) int {
	return int(min(p.number(n), math.MaxInt32))
}

func (p *msgpackParser) parse() value {
	head := p.take(1)
	if p.refusal != nil {
		return value{}
	}
	switch c := head[0]; {
	case c <= 0x7f:
		return unsigned(uint64(c))
	case c >= 0xe0:
		return signed(int64(int8(c)))
	case c <= 0x8f:
		return p.object(int(c & 0x0f))
	case c <= 0x9f:
		return p.list(int(c & 0x0f))
	case c <= 0xbf:
		return p.text(int(c & 0x1f))
	default:
		return p.wide(c)
	}
}

// wide reads what is announced by a whole byte.
func (p *msgpackParser) wide(c byte) value {
	switch c {
	case 0xc0:
		return value{kind: kindNull}
	case 0xc2, 0xc3:
		return value{kind: kindBool, yes: c == 0xc3}
	case 0xc4, 0xc5, 0xc6:
		return value{kind: kindBytes, source: p.take(p.length(1 << (c - 0xc4)))}
	case 0xc7, 0xc8, 0xc9:
		return p.time(p.length(1 << (c - 0xc7)))
	case 0xca:
		return float(float64(math.Float32frombits(uint32(p.number(4)))))
	case 0xcb:
		return float(math.Float64frombits(p.number(8)))
	case 0xcc, 0xcd, 0xce, 0xcf:
		return unsigned(p.number(1 << (c - 0xcc)))
	case 0xd0:
		return signed(int64(int8(p.number(1))))
	case 0xd1:
		return signed(int64(int16(p.number(2))))
	case 0xd2:
		return signed(int64(int32(p.number(4))))
	case 0xd3:
		return signed(int64(p.number(8)))
	case 0xd4, 0xd5, 0xd6, 0xd7, 0xd8:
		return p.time(1 << (c - 0xd4))
	case 0xd9, 0xda, 0xdb:
		return p.text(p.length(1 << (c - 0xd9)))
	case 0xdc, 0xdd:
		return p.list(p.length(2 << (c - 0xdc)))
	case 0xde, 0xdf:
		return p.object(p.length(2 << (c - 0xde)))
	}
	p.fail(CodeMalformed, "the body is not msgpack: byte 0x%02x at %d means nothing", c, p.at-1)
	return value{}
}

func unsigned(n uint64) value { return value{kind: kindNumber, text: strconv.FormatUint(n, 10)} }
func signed(n int64) value    { return value{kind: kindNumber, text: strconv.FormatInt(n, 10)} }
func float(f float64) value {
	return value{kind: kindNumber, text: strconv.FormatFloat(f, 'e', -1, 64)}
}

func (p *msgpackParser) text(n int) value {
	return value{kind: kindText, text: string(p.take(n))}
}

func (p *msgpackParser) deeper() bool {
	if p.depth++; p.depth > MaxDepth && p.refusal == nil {
		p.refusal = nested()
	}
	return p.refusal == nil
}

func (p *msgpackParser) list(n int) value {
	v := value{kind: kindList}
	if p.deeper() {
		for i := 0; i < n && p.refusal == nil; i++ {
			v.items = append(v.items, p.parse())
		}
	}
	p.depth--
	return v
}

func (p *msgpackParser) object(n int) value {
	v := value{kind: kindObject}
	if p.deeper() {
		for i := 0; i < n && p.refusal == nil; i++ {
			at := p.at
			name := p.parse()
			if name.kind != kindText {
				p.fail(CodeMalformed, "the name of a field at byte %d must be text, not %s", at, name.kind)
			}
			v.fields = append(v.fields, field{name: name.text, value: p.parse()})
		}
	}
	p.depth--
	return v
}

// timestampType is the extension type of times.
const timestampType = 0xff

// time reads an extension of n bytes, of which only the timestamp is known.
func (p *msgpackParser) time(n int) value {
	typ := p.number(1)
	b := p.take(n)
	if p.refusal != nil {
		return value{}
	}
	var seconds int64
	var nanos uint64
	switch {
	case typ == timestampType && n == 4:
		seconds = int64(binary.BigEndian.Uint32(b))
	case typ == timestampType && n == 8:
		both := binary.BigEndian.Uint64(b)
		nanos, seconds = both>>34, int64(both&(1<<34-1))
	case typ == timestampType && n == 12:
		nanos, seconds = uint64(binary.BigEndian.Uint32(b)), int64(binary.BigEndian.Uint64(b[4:]))
	default:
		p.fail(CodeMalformed, "the body has an extension of type %d and %d bytes, which means nothing here", int8(typ), n)
		return value{}
	}
	t := time.Unix(seconds, int64(nanos)).UTC()
	if nanos >= uint64(time.Second) || t.Year() < 1 || t.Year() > 9999 {
		p.fail(CodeMalformed, "the body has a time that no calendar has (%d s, %d ns)", seconds, nanos)
	}
	return value{kind: kindTime, time: t}
}
