package deliveries

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"time"
)

// idScheme begins everything that an id is made of. It never changes: with it all ids would.
const idScheme = "catenary import v1"

// identity makes a command's id of what the command comes from: a UUID of version 8, cut from a SHA-256. Writers never
// forget such an id, so an import can be repeated however long after. It gathers what is hashed, since hashing many small
// pieces costs more than all else that is done for a row.
type identity struct{ b []byte }

// usualIdentityBytes has room for what a row says.
const usualIdentityBytes = 512

// newIdentity begins an id with the source's name and what in it the command comes from.
func newIdentity(source, what string) *identity {
	i := &identity{b: make([]byte, 0, usualIdentityBytes)}
	i.text(idScheme)
	i.text(source)
	i.text(what)
	return i
}

// text adds a text with its length before it, so that no two lists of texts give the same bytes.
func (i *identity) text(s string) {
	i.number(uint64(len(s)))
	i.b = append(i.b, s...)
}

func (i *identity) optional(s *string) {
	if s == nil {
		i.number(0)
		return
	}
	i.number(1)
	i.text(*s)
}

func (i *identity) number(n uint64) { i.b = binary.BigEndian.AppendUint64(i.b, n) }

func (i *identity) time(t time.Time) { i.text(t.UTC().Format(time.RFC3339Nano)) }

func (i *identity) sum() [sha256.Size]byte { return sha256.Sum256(i.b) }

// uuid gives the first 122 bits of a digest as a UUID of version 8.
func uuid(d [sha256.Size]byte) string {
	d[6] = d[6]&0x0f | 0x80
	d[8] = d[8]&0x3f | 0x80
	var b [36]byte
	hex.Encode(b[0:8], d[0:4])
	hex.Encode(b[9:13], d[4:6])
	hex.Encode(b[14:18], d[6:8])
	hex.Encode(b[19:23], d[8:10])
	hex.Encode(b[24:36], d[10:16])
	b[8], b[13], b[18], b[23] = '-', '-', '-', '-'
	return string(b[:])
}

// nodeID and moduleID are the ids of registrations: one for each name in a source.
func nodeID(source, name string) string   { return nameID(source, "node", name) }
func moduleID(source, name string) string { return nameID(source, "module", name) }

func nameID(source, what, name string) string {
	i := newIdentity(source, what)
	i.text(name)
	return uuid(i.sum())
}

// stateID is the id of what a state file says about an app.
func stateID(source string, at time.Time, environment, app, version string) string {
	i := newIdentity(source, "state")
	i.time(at)
	i.text(environment)
	i.text(app)
	i.text(version)
	return uuid(i.sum())
}

// counter numbers equal rows, so that each is a command of its own.
type counter struct {
	source string
	seen   map[[16]byte]uint32
}

func newCounter(source string) *counter {
	return &counter{source: source, seen: map[[16]byte]uint32{}}
}

// rowID is the id of a row that comes next in its source. It depends on what the row says, not on how it is written: space,
// the order of fields and unknown fields make no difference.
func (c *counter) rowID(r Row) string {
	i := newIdentity(c.source, "row")
	i.time(r.At)
	i.text(r.Environment)
	i.text(r.App)
	i.text(string(r.Kind))
	i.text(string(r.Policy))
	i.optional(r.Old)
	i.optional(r.New)
	i.text(r.By)
	i.text(r.Commit)
	content := i.sum()
	before := c.seen[[16]byte(content[:16])]
	c.seen[[16]byte(content[:16])] = before + 1
	i.number(uint64(before))
	return uuid(i.sum())
}
