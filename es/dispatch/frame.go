package dispatch

import (
	"encoding/binary"
	"hash/crc32"
	"io"

	"github.com/cockroachdb/errors"
)

// A base is written in frames: length, checksum, content. The checksum covers the frame's number too, so that none can be
// missing or stand elsewhere, and a frame without content is the end. What comes out of a frame was written so.
const (
	// frameBytes is the most that a frame holds: a few of them a millisecond.
	frameBytes       = 128 << 10
	frameHeaderBytes = 8
)

// errDamaged marks a base that is not what was written.
var errDamaged = errors.New("damaged")

type frameWriter struct {
	out    io.Writer
	buffer []byte
	number uint64
	// pace is called after each frame; an error ends the writing.
	pace func() error
}

func newFrameWriter(out io.Writer, pace func() error) *frameWriter {
	return &frameWriter{out: out, pace: pace, buffer: make([]byte, frameHeaderBytes, frameHeaderBytes+frameBytes)}
}

func (w *frameWriter) Write(p []byte) (int, error) {
	written := 0
	for len(p) > 0 {
		n := min(len(p), cap(w.buffer)-len(w.buffer))
		w.buffer = append(w.buffer, p[:n]...)
		written, p = written+n, p[n:]
		if len(w.buffer) == cap(w.buffer) {
			if err := w.flush(); err != nil {
				return written, err
			}
		}
	}
	return written, nil
}

// flush ends the frame that is being filled.
func (w *frameWriter) flush() error {
	content := w.buffer[frameHeaderBytes:]
	binary.BigEndian.PutUint32(w.buffer, uint32(len(content)))
	binary.BigEndian.PutUint32(w.buffer[4:], frameChecksum(w.number, content))
	if _, err := w.out.Write(w.buffer); err != nil {
		return err
	}
	w.number++
	w.buffer = w.buffer[:frameHeaderBytes]
	return w.pace()
}

// close ends the base. Without it, it is damaged.
func (w *frameWriter) close() error {
	if len(w.buffer) > frameHeaderBytes {
		if err := w.flush(); err != nil {
			return err
		}
	}
	return w.flush()
}

type frameReader struct {
	in     io.Reader
	buffer []byte
	rest   []byte
	number uint64
	ended  bool
	pace   func() error
}

func newFrameReader(in io.Reader, pace func() error) *frameReader {
	return &frameReader{in: in, pace: pace, buffer: make([]byte, frameBytes)}
}

// Read gives the contents of the frames, and io.EOF after the last. It gives errors marked [errDamaged].
func (r *frameReader) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		if r.ended {
			return 0, io.EOF
		}
		if err := r.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// next takes in a frame.
func (r *frameReader) next() error {
	var header [frameHeaderBytes]byte
	if _, err := io.ReadFull(r.in, header[:]); err != nil {
		return errors.Mark(errors.Wrapf(err, "frame %d", r.number), errDamaged)
	}
	size := binary.BigEndian.Uint32(header[:])
	if size > frameBytes {
		return errors.Mark(errors.Newf("frame %d has %d bytes, at most %d are written", r.number, size, frameBytes), errDamaged)
	}
	content := r.buffer[:size]
	if _, err := io.ReadFull(r.in, content); err != nil {
		return errors.Mark(errors.Wrapf(err, "frame %d", r.number), errDamaged)
	}
	if binary.BigEndian.Uint32(header[4:]) != frameChecksum(r.number, content) {
		return errors.Mark(errors.Newf("frame %d has another checksum than its content", r.number), errDamaged)
	}
	r.number++
	r.rest, r.ended = content, size == 0
	return r.pace()
}

// close demands that the base ends where it should.
func (r *frameReader) close() error {
	if n, err := r.Read(make([]byte, 1)); n > 0 || err == nil {
		return errors.Mark(errors.New("there is more in it than was read"), errDamaged)
	} else if err != io.EOF {
		return err
	}
	switch n, err := io.ReadFull(r.in, make([]byte, 1)); {
	case n > 0:
		return errors.Mark(errors.New("there is more behind its end"), errDamaged)
	case err != io.EOF:
		return errors.Mark(errors.Wrap(err, "read to the end"), errDamaged)
	}
	return nil
}

// frameChecksum is a CRC-32C, which processors compute as fast as they copy.
func frameChecksum(number uint64, content []byte) uint32 {
	table := crc32.MakeTable(crc32.Castagnoli)
	return crc32.Update(crc32.Checksum(binary.BigEndian.AppendUint64(nil, number), table), table, content)
}
