package dispatch

import (
	"bytes"
	"encoding/binary"
	"io"
	"slices"
	"sort"

	"github.com/cockroachdb/errors"
)

// packedPlaces holds identities with their places one after another, in order of the identities: 24 bytes each, as they
// stand in a snapshot. It never changes.
type packedPlaces []byte

const packedBytes = len(identity{}) + 8

func (s packedPlaces) len() int { return len(s) / packedBytes }

func (s packedPlaces) at(i int) (identity, place) {
	row := s[i*packedBytes : (i+1)*packedBytes]
	return identity(row[:len(identity{})]), place(binary.BigEndian.Uint64(row[len(identity{}):]))
}

// search gives the index of an identity, or where it would stand.
func (s packedPlaces) search(k identity) (int, bool) {
	i := sort.Search(s.len(), func(i int) bool { return bytes.Compare(s[i*packedBytes:i*packedBytes+len(k)], k[:]) >= 0 })
	if i == s.len() {
		return i, false
	}
	found, _ := s.at(i)
	return i, found == k
}

func (s packedPlaces) find(k identity) (place, bool) {
	i, ok := s.search(k)
	if !ok {
		return 0, false
	}
	_, p := s.at(i)
	return p, true
}

// write writes the memory: ids without a time, then those of each day. What is past the horizon should be forgotten
// before.
func (m *memory) write(out io.Writer) error {
	if err := m.forever.write(out); err != nil {
		return err
	}
	days := m.days()
	if err := writeNumber(out, uint64(len(days))); err != nil {
		return err
	}
	for _, d := range days {
		if err := writeNumber(out, uint64(d)); err != nil {
			return err
		}
		if err := m.timed[d].write(out); err != nil {
			return err
		}
	}
	return nil
}

// write writes all places in order, packed.
func (s *places) write(out io.Writer) error {
	since := make([]identity, 0, len(s.since))
	again := 0 // those since then that are in the packed list, too
	for k := range s.since {
		since = append(since, k)
		if _, ok := s.packed.search(k); ok {
			again++
		}
	}
	slices.SortFunc(since, func(a, b identity) int { return bytes.Compare(a[:], b[:]) })
	if err := writeNumber(out, uint64(s.packed.len()+len(since)-again)); err != nil {
		return err
	}
	rest := s.packed
	row := make([]byte, packedBytes)
	for _, k := range since {
		i, same := rest.search(k)
		binary.BigEndian.PutUint64(row[copy(row, k[:]):], uint64(s.since[k]))
		if _, err := out.Write(rest[:i*packedBytes]); err != nil {
			return err
		}
		if _, err := out.Write(row); err != nil {
			return err
		}
		if same {
			i++
		}
		rest = rest[i*packedBytes:]
	}
	_, err := out.Write(rest)
	return err
}

// readMemory reads what write wrote, of at most so many commands.
func readMemory(in io.Reader, most uint64) (*memory, error) {
	m := newMemory()
	var err error
	if m.forever, err = readPlaces(in, most); err != nil {
		return nil, err
	}
	days, err := readNumber(in)
	if err != nil {
		return nil, err
	}
	for range days {
		d, err := readNumber(in)
		if err != nil {
			return nil, err
		}
		if m.timed[int64(d)], err = readPlaces(in, most); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func readPlaces(in io.Reader, most uint64) (*places, error) {
	n, err := readNumber(in)
	if err != nil {
		return nil, err
	}
	if n > most {
		return nil, errors.Newf("it remembers %d commands of %d events", n, most)
	}
	s := &places{packed: make(packedPlaces, n*uint64(packedBytes))}
	_, err = io.ReadFull(in, s.packed)
	return s, errors.Wrap(err, "remembered commands")
}

func writeNumber(out io.Writer, n uint64) error {
	_, err := out.Write(binary.BigEndian.AppendUint64(nil, n))
	return err
}

func readNumber(in io.Reader) (uint64, error) {
	var b [8]byte
	_, err := io.ReadFull(in, b[:])
	return binary.BigEndian.Uint64(b[:]), errors.Wrap(err, "a number of remembered commands")
}
