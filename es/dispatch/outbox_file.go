package dispatch

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/cockroachdb/errors"
	"golang.org/x/sys/unix"

	"catenary/es"
)

// Files in an outbox's directory.
const (
	outboxName  = "outbox"
	refusedName = "refused.ndjson"
	lockName    = "lock"
	dirMode     = 0o700
	fileMode    = 0o600
)

// A record is: magic, length of the body, checksum, body. The body is msgpack, and all numbers are big-endian. The checksum
// covers the record's place in the file too, so that a record inside of another's body is none.
const (
	recordMagic  = "CoB1"
	recordHeader = len(recordMagic) + 4 + 4
	// maxRecordBytes bounds a body: the largest command with its headers.
	maxRecordBytes = MaxBodyBytes + 64<<10
	// maxRefusedBytes bounds the file of refused commands, which only people make smaller.
	maxRefusedBytes = 64 << 20
)

// outboxRecord is the body of a record: a command that is taken, or the number of one that is done.
type outboxRecord struct {
	Number  uint64         `json:"n"`
	Done    bool           `json:"done,omitempty"`
	Request *storedRequest `json:"request,omitempty"`
}

// storedRequest is a request on disk: its options are in the form they travel in, which is a contract already.
type storedRequest struct {
	Aggregate   string            `json:"aggregate"`
	Verb        string            `json:"verb"`
	ContentType string            `json:"content-type,omitempty"`
	Headers     map[string]string `json:"headers,omitempty"`
	Body        []byte            `json:"body"`
}

// putRecord is the record of a command that is taken, for a place in the file.
func putRecord(number uint64, r Request, at int64) ([]byte, error) {
	s := &storedRequest{Aggregate: r.Aggregate, Verb: r.Verb, ContentType: r.ContentType, Headers: map[string]string{}, Body: r.Body}
	writeOptions(r.Options, func(name, value string) { s.Headers[name] = value })
	record, err := encodeRecord(outboxRecord{Number: number, Request: s}, at)
	if err == nil && len(record) > recordHeader+maxRecordBytes {
		err = errors.Mark(errors.Newf("the command with its headers has %d bytes; the limit is %d", len(record), maxRecordBytes), ErrTooLarge)
	}
	return record, err
}

// doneRecord is the record of a command that waits no more.
func doneRecord(number uint64, at int64) ([]byte, error) {
	return encodeRecord(outboxRecord{Number: number, Done: true}, at)
}

func encodeRecord(r outboxRecord, at int64) ([]byte, error) {
	body, err := es.Msgpack{}.Marshal(r)
	if err != nil {
		return nil, err
	}
	record := append(make([]byte, 0, recordHeader+len(body)), recordMagic...)
	record = binary.BigEndian.AppendUint32(record, uint32(len(body)))
	record = binary.BigEndian.AppendUint32(record, checksum(body, at))
	return append(record, body...), nil
}

func checksum(body []byte, at int64) uint32 {
	table := crc32.MakeTable(crc32.Castagnoli)
	return crc32.Update(crc32.Checksum(binary.BigEndian.AppendUint64(nil, uint64(at)), table), table, body)
}

// decodeRecord reads the record that stands at a place of the file, where data begins. It says not ok when there is no whole
// one.
func decodeRecord(data []byte, at int64) (r outboxRecord, size int, ok bool) {
	if len(data) < recordHeader || string(data[:len(recordMagic)]) != recordMagic {
		return r, 0, false
	}
	length := binary.BigEndian.Uint32(data[len(recordMagic):])
	if length > maxRecordBytes || len(data)-recordHeader < int(length) {
		return r, 0, false
	}
	body := data[recordHeader : recordHeader+int(length)]
	if checksum(body, at) != binary.BigEndian.Uint32(data[len(recordMagic)+4:]) {
		return r, 0, false
	}
	if err := (es.Msgpack{}).Unmarshal(body, &r); err != nil || !r.Done && r.Request == nil {
		return r, 0, false
	}
	return r, recordHeader + int(length), true
}

func (s *storedRequest) request() (Request, error) {
	options, err := readOptions(func(name string) (string, error) { return s.Headers[name], nil })
	return Request{Aggregate: s.Aggregate, Verb: s.Verb, ContentType: s.ContentType, Body: s.Body, Options: options}, err
}

// outboxFile is the file of an outbox: records in the order they were written.
type outboxFile struct {
	file *os.File
	path string
	size int64
}

// openOutboxFile opens or makes the file, and gives what waits in it, and the number of the next command. It gives errors
// marked [ErrOutboxDamaged].
func openOutboxFile(path string) (*outboxFile, []outboxItem, uint64, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, fileMode)
	if err != nil {
		return nil, nil, 0, errors.Wrap(err, "open the outbox")
	}
	f := &outboxFile{file: file, path: path}
	pending, next, err := f.load()
	if err != nil {
		return nil, nil, 0, errors.CombineErrors(err, file.Close())
	}
	return f, pending, next, nil
}

// load reads all records, and cuts off what a crash has left of the last one.
func (f *outboxFile) load() (waiting []outboxItem, next uint64, err error) {
	data, err := io.ReadAll(f.file)
	if err != nil {
		return nil, 0, errors.Wrap(err, "read the outbox")
	}
	at := 0
	for at < len(data) {
		r, size, ok := decodeRecord(data[at:], int64(at))
		if !ok {
			if later := nextRecord(data, at+1); later >= 0 {
				return nil, 0, errors.Mark(errors.Newf("%s can't be read at byte %d, and goes on at byte %d: no crash leaves that behind; move the directory aside, and look which of its commands are missing",
					f.path, at, later), ErrOutboxDamaged)
			}
			break
		}
		if r.Done {
			waiting = slices.DeleteFunc(waiting, func(item outboxItem) bool { return item.number == r.Number })
		} else {
			request, err := r.Request.request()
			if err != nil {
				return nil, 0, errors.Mark(errors.Wrapf(err, "%s at byte %d", f.path, at), ErrOutboxDamaged)
			}
			waiting = append(waiting, outboxItem{number: r.Number, size: int64(size), request: request})
		}
		next = max(next, r.Number+1)
		at += size
	}
	if at < len(data) {
		if err := f.truncate(int64(at)); err != nil {
			return nil, 0, err
		}
	}
	if err := f.goTo(int64(at)); err != nil {
		return nil, 0, err
	}
	// The file's own entry must survive a power loss too.
	return waiting, next, syncDir(filepath.Dir(f.path))
}

// nextRecord finds where a whole record begins, from a place on; -1 when nowhere.
func nextRecord(data []byte, from int) int {
	for from < len(data) {
		i := bytes.Index(data[from:], []byte(recordMagic))
		if i < 0 {
			return -1
		}
		if _, _, ok := decodeRecord(data[from+i:], int64(from+i)); ok {
			return from + i
		}
		from += i + 1
	}
	return -1
}

// append writes a record at the end; synced, it is on disk when this returns.
func (f *outboxFile) append(record []byte, sync bool) error {
	if _, err := f.file.Write(record); err != nil {
		err = errors.Wrap(err, "write to the outbox")
		// A disk that is full may have taken a part. Without it the outbox is as it was.
		if undo := errors.CombineErrors(f.truncate(f.size), f.goTo(f.size)); undo != nil {
			return errors.Mark(errors.CombineErrors(err, undo), errOutboxUnsure)
		}
		return err
	}
	f.size += int64(len(record))
	if sync {
		if err := f.file.Sync(); err != nil {
			return errors.Mark(errors.Wrap(err, "sync the outbox"), errOutboxUnsure)
		}
	}
	return nil
}

// errOutboxUnsure marks failures after which it can't be told what is on disk.
var errOutboxUnsure = errors.New("what is on disk is not known")

func (f *outboxFile) goTo(at int64) error {
	_, err := f.file.Seek(at, io.SeekStart)
	f.size = at
	return errors.Wrap(err, "go to the end of the outbox")
}

// clear empties the file.
func (f *outboxFile) clear() error {
	if err := f.truncate(0); err != nil {
		return err
	}
	return f.goTo(0)
}

func (f *outboxFile) truncate(size int64) error {
	if err := f.file.Truncate(size); err != nil {
		return errors.Wrap(err, "shorten the outbox")
	}
	return errors.Wrap(f.file.Sync(), "sync the outbox")
}

// rewrite replaces the file by one with what waits: a crash leaves the old one or the new one.
func (f *outboxFile) rewrite(pending []outboxItem) error {
	file, err := os.OpenFile(f.path+".new", os.O_CREATE|os.O_TRUNC|os.O_RDWR, fileMode)
	if err != nil {
		return errors.Wrap(err, "rewrite the outbox")
	}
	fresh := &outboxFile{file: file, path: f.path}
	for _, item := range pending {
		record, err := putRecord(item.number, item.request, fresh.size)
		if err == nil {
			err = fresh.append(record, false)
		}
		if err != nil {
			return errors.CombineErrors(errors.Wrap(err, "rewrite the outbox"), file.Close())
		}
	}
	err = file.Sync()
	if err == nil {
		err = os.Rename(f.path+".new", f.path)
	}
	if err == nil {
		err = syncDir(filepath.Dir(f.path))
	}
	if err != nil {
		return errors.CombineErrors(errors.Wrap(err, "rewrite the outbox"), file.Close())
	}
	old := f.file
	f.file, f.size = file, fresh.size
	return errors.Wrap(old.Close(), "close the old outbox")
}

// refusedCommand is a line of the file of refused commands.
type refusedCommand struct {
	Aggregate   string            `json:"aggregate"`
	Verb        string            `json:"verb"`
	ContentType string            `json:"content-type,omitempty"`
	Headers     map[string]string `json:"headers"`
	Body        []byte            `json:"body"`
	Answer      es.Answer         `json:"answer"`
}

// keepRefused adds a command that nobody will take to the file that people look at. It is on disk when this returns.
func (f *outboxFile) keepRefused(r Request, a es.Answer) error {
	c := refusedCommand{Aggregate: r.Aggregate, Verb: r.Verb, ContentType: r.ContentType, Headers: map[string]string{}, Body: r.Body, Answer: a}
	writeOptions(r.Options, func(name, value string) { c.Headers[name] = value })
	text, err := json.Marshal(c)
	if err != nil {
		return errors.Wrap(err, "keep a refused command")
	}
	dir := filepath.Dir(f.path)
	file, err := os.OpenFile(filepath.Join(dir, refusedName), os.O_CREATE|os.O_APPEND|os.O_WRONLY, fileMode)
	if err != nil {
		return errors.Wrap(err, "keep a refused command")
	}
	if info, err := file.Stat(); err != nil || info.Size() > maxRefusedBytes {
		full := errors.Mark(errors.Newf("%s is over %d bytes: look at it and move it away", file.Name(), maxRefusedBytes), ErrOutboxFull)
		return errors.CombineErrors(errors.CombineErrors(err, full), file.Close())
	}
	_, err = fmt.Fprintf(file, "%s\n", text)
	if err == nil {
		err = file.Sync()
	}
	err = errors.CombineErrors(err, file.Close())
	return errors.Wrap(errors.CombineErrors(err, syncDir(dir)), "keep a refused command")
}

func (f *outboxFile) close() error { return errors.Wrap(f.file.Close(), "close the outbox") }

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return errors.Wrapf(err, "sync %s", dir)
	}
	return errors.Wrapf(errors.CombineErrors(d.Sync(), d.Close()), "sync %s", dir)
}

// outboxLock holds an outbox for the life of the process: the kernel drops it when the process ends, however it ends.
type outboxLock struct{ file *os.File }

// lockOutbox makes the directory when needed and locks it. It gives [ErrOutboxLocked].
func lockOutbox(dir string) (*outboxLock, error) {
	if err := os.MkdirAll(dir, dirMode); err != nil {
		return nil, errors.Wrap(err, "make the outbox's directory")
	}
	// The file is never removed: who waited on a removed file would hold a lock on nothing.
	file, err := os.OpenFile(filepath.Join(dir, lockName), os.O_CREATE|os.O_RDWR, fileMode)
	if err != nil {
		return nil, errors.Wrap(err, "lock the outbox")
	}
	err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		return &outboxLock{file: file}, nil
	}
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = errors.Mark(errors.Newf("the outbox %s is held by another running process: stop that one, or use another directory", dir), ErrOutboxLocked)
	}
	return nil, errors.CombineErrors(errors.Wrap(err, "lock the outbox"), file.Close())
}

func (l *outboxLock) release() error { return errors.Wrap(l.file.Close(), "release the outbox's lock") }
