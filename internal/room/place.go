package room

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sys/unix"

	"catenary/internal/topology"
)

// Level says how much room is left.
type Level string

const (
	// Ample is room enough.
	Ample Level = "ample"
	// Scarce is the time to do something: at least 80 % is used, or a disk has less than 1 GiB left above the reserve.
	Scarce Level = "scarce"
	// Full means that what needs room is refused.
	Full Level = "full"
)

// Kind says what a place is.
type Kind string

const (
	// Stream is the event stream, or another that is no bucket.
	Stream Kind = "stream"
	// Bucket is a key-value or object bucket.
	Bucket Kind = "bucket"
	// Account is all that an account may store.
	Account Kind = "account"
	// Disk is where the server keeps it.
	Disk Kind = "disk"
)

const (
	// scarceShare is the used share from which room is scarce: at a steady pace a quarter of the time so far is left to do something.
	scarceShare = 0.80
	// ampleShare is the used share below which it is ample again.
	ampleShare = 0.75
	// scarceDiskBytes is what is left of a disk, above the reserve, when its room is scarce whoever uses it: others may fill it in minutes while
	// the streams hold next to nothing. It is ample again from ampleDiskBytes on.
	scarceDiskBytes = 1 << 30
	ampleDiskBytes  = 5 << 28
	// leastBytes is what must be left of a stream so that any event fits.
	leastBytes = topology.MaxEventBytes
	// ReserveBytes is what nothing is appended into on the disk: the server's own files, the audit store and what is in flight need it.
	ReserveBytes = 64 << 20
)

// Place is something that has a limit.
type Place struct {
	Kind Kind `json:"kind"`
	// Name is the stream's, the bucket's or the account's, or the disk's directory.
	Name string `json:"name"`
	// Used and Limit are in bytes. Of a disk, Used is what the streams hold, and Limit what they could hold there in all.
	Used  int64 `json:"used"`
	Limit int64 `json:"limit"`
	Level Level `json:"level"`
}

// Share is the used part of the limit.
func (p Place) Share() float64 {
	if p.Limit <= 0 {
		return 1
	}
	return float64(p.Used) / float64(p.Limit)
}

// String names the place with its figures.
func (p Place) String() string {
	if p.Kind == Disk && p.Limit == 0 {
		return fmt.Sprintf("%s %s: nothing is left of it but the reserve, or less; %d bytes are stored there", p.Kind, p.Name, p.Used)
	}
	return fmt.Sprintf("%s %s: %d of %d bytes (%.0f %%)", p.Kind, p.Name, p.Used, p.Limit, 100*p.Share())
}

// Advice says what to do about a place that is scarce or full.
func (p Place) Advice() string {
	switch p.Kind {
	case Disk:
		return "free some of the disk, or move the store to a larger one; commands are taken again as soon as there is room"
	case Account:
		return "raise the account's max_file in the server's configuration and reload it"
	case Stream, Bucket:
		return "raise the limit (--event-store-bytes or --bucket-bytes of the processes, max_store_bytes in limits.json of catenary up) and start again, or: nats stream edit --max-bytes"
	}
	return ""
}

// level judges a place that was at another level before.
func (p Place) level(before Level) Level {
	share, left := p.Share(), p.Limit-p.Used
	switch {
	case left <= 0, p.Kind != Disk && left < min(leastBytes, p.Limit/16):
		return Full
	case share >= scarceShare, p.Kind == Disk && left < scarceDiskBytes:
		return Scarce
	case before == Ample, before == "":
		return Ample
	case share >= ampleShare, p.Kind == Disk && left < ampleDiskBytes:
		return Scarce
	}
	return Ample
}

// State is how full all places are.
type State struct {
	// At is when it was looked at, in UTC. Zero means not yet.
	At time.Time `json:"at,omitzero"`
	// Level is that of the fullest place.
	Level  Level   `json:"level"`
	Places []Place `json:"places"`
	// Problem says why it could not be looked at since; empty when it could.
	Problem string `json:"problem,omitempty"`
}

// Not gives the places that are not ample, the fullest first.
func (s State) Not() []Place {
	return slices.DeleteFunc(slices.Clone(s.Places), func(p Place) bool { return p.Level == Ample })
}

// ofStream gives the place that a stream is; false for one that drops its oldest, or has no limit, and for a generation of a bucket that
// readers have left: its limit was set to what it holds.
func ofStream(info *jetstream.StreamInfo) (Place, bool) {
	c := info.Config
	if c.Discard != jetstream.DiscardNew || c.MaxBytes <= 0 {
		return Place{}, false
	}
	kind, name := Stream, c.Name
	for _, prefix := range []string{topology.BucketStream(""), topology.ObjectsStream("")} {
		if len(name) > len(prefix) && name[:len(prefix)] == prefix {
			kind, name = Bucket, name[len(prefix):]
		}
	}
	if kind == Bucket && info.State.Bytes >= uint64(c.MaxBytes) {
		return Place{}, false
	}
	return Place{Kind: kind, Name: name, Used: int64(min(info.State.Bytes, 1<<62)), Limit: c.MaxBytes}, true
}

// FreeBytes is what may still be written to the disk of a directory.
func FreeBytes(dir string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, errors.Wrapf(err, "measure the free space of %s", dir)
	}
	return int64(min(st.Bavail, 1<<62/uint64(st.Bsize))) * int64(st.Bsize), nil
}

// ofDisk gives the place that a disk is, for streams that hold so many bytes on it while so many are free.
func ofDisk(dir string, stored, free int64) Place {
	return Place{Kind: Disk, Name: dir, Used: stored, Limit: max(stored+free-ReserveBytes, 0)}
}

// ofAccount gives the place that an account is; false for one without a limit of its own.
func ofAccount(name string, info *jetstream.AccountInfo) (Place, bool) {
	if info.Limits.MaxStore <= 0 {
		return Place{}, false
	}
	return Place{Kind: Account, Name: name, Used: int64(min(info.Store, 1<<62)), Limit: info.Limits.MaxStore}, true
}

// sorted puts the fullest first.
func sorted(places []Place) []Place {
	slices.SortStableFunc(places, func(a, b Place) int {
		return cmp.Or(cmp.Compare(b.Share(), a.Share()), cmp.Compare(a.Name, b.Name))
	})
	return places
}
