package dispatch

import (
	"context"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go/jetstream"
)

// BucketDirectory is a [Directory] in a key-value bucket: one entry per id, one value per entry.
type BucketDirectory struct{ bucket jetstream.KeyValue }

// OpenDirectory opens the directory in a bucket that exists.
func OpenDirectory(ctx context.Context, js jetstream.JetStream, bucket string) (*BucketDirectory, error) {
	kv, err := js.KeyValue(ctx, bucket)
	return &BucketDirectory{bucket: kv}, errors.Wrapf(err, "open the actor directory %s", bucket)
}

// Load gives every entry that was not erased.
func (d *BucketDirectory) Load(ctx context.Context) (map[string]Who, error) {
	w, err := d.bucket.WatchAll(ctx, jetstream.IgnoreDeletes())
	if err != nil {
		return nil, errors.Wrap(err, "watch the actor directory")
	}
	entries, err := readEntries(ctx, w)
	return entries, errors.CombineErrors(err, errors.Wrap(w.Stop(), "stop watching the actor directory"))
}

func readEntries(ctx context.Context, w jetstream.KeyWatcher) (map[string]Who, error) {
	entries := map[string]Who{}
	for {
		select {
		case <-ctx.Done():
			return nil, errors.Wrap(ctx.Err(), "read the actor directory")
		case e, ok := <-w.Updates():
			switch {
			case !ok:
				return nil, errors.New("read the actor directory: the watch ended")
			case e == nil: // all that stood when the watch began has come
				return entries, nil
			}
			who, err := DecodeWho(e.Value())
			if err != nil {
				return nil, errors.Wrapf(err, "actor %s", e.Key())
			}
			if who.Name != "" {
				entries[e.Key()] = who
			}
		}
	}
}

// Put stores a new entry. It gives an error when the id is there already.
func (d *BucketDirectory) Put(ctx context.Context, id string, who Who) error {
	value, err := EncodeWho(who)
	if err != nil {
		return err
	}
	_, err = d.bucket.Create(ctx, id, value)
	return errors.Wrapf(err, "create actor %s", id)
}
