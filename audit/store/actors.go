package store

import (
	"context"

	"github.com/cockroachdb/errors"

	"catenary/chain"
)

// SetActor puts an entry of the actor directory into the file, or empties it there when the entry has no name: then no name of the
// person is left in the file. It returns when that is so. It gives the context's error and those of the file.
func (s *Store) SetActor(ctx context.Context, id string, who chain.Actor) error {
	return s.write(ctx, who.Name == "", func(ctx context.Context, w *writing) error {
		if who.Name == "" {
			// What is deleted is overwritten with zeros: see secure_delete of the file.
			_, err := w.conn.ExecContext(ctx, "DELETE FROM actor WHERE id = ?", id)
			return errors.Wrapf(err, "forget actor %s", id)
		}
		_, err := w.conn.ExecContext(ctx, `INSERT INTO actor VALUES (?, ?, ?) ON CONFLICT (id) DO UPDATE SET name = excluded.name, account = excluded.account`,
			id, who.Name, nullText(who.Account))
		return errors.Wrapf(err, "name of actor %s", id)
	})
}
