package store

import (
	"context"
	"database/sql"

	"github.com/cockroachdb/errors"

	"catenary/chain"
)

// SetActor puts an entry of the actor directory into the file, or empties it there when the entry has no name: then no name of the
// person is left in the file, nor in the journal beside it; while a reader holds on to that, the state says so, and it goes when the reader
// is done. It gives the context's error and those of the file.
func (s *Store) SetActor(ctx context.Context, id string, who chain.Actor) error {
	return s.write(ctx, who.Name == "", func(ctx context.Context, w *writing) error {
		if who.Name == "" {
			return errors.Wrapf(w.eraseActor(ctx, id), "forget actor %s", id)
		}
		_, err := w.conn.ExecContext(ctx, `INSERT INTO actor VALUES (?, ?, ?) ON CONFLICT (id) DO UPDATE SET name = excluded.name, account = excluded.account`,
			id, who.Name, nullText(who.Account))
		return errors.Wrapf(err, "name of actor %s", id)
	})
}

// eraseActor takes an actor out of the file.
func (w *writing) eraseActor(ctx context.Context, id string) (err error) {
	var there bool
	if err := w.conn.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM actor WHERE id = ?)", id).Scan(&there); err != nil || !there {
		return errors.Wrap(err, "look for the actor")
	}
	rows, err := w.conn.QueryContext(ctx, "SELECT id, name, account FROM actor WHERE id <> ?", id)
	if err != nil {
		return errors.Wrap(err, "read the actors that stay")
	}
	var stay [][]any
	for rows.Next() {
		var other, name string
		var account sql.NullString
		if err := rows.Scan(&other, &name, &account); err != nil {
			return errors.CombineErrors(errors.Wrap(err, "read the actors that stay"), rows.Close())
		}
		stay = append(stay, []any{other, name, account})
	}
	if err := errors.CombineErrors(rows.Err(), rows.Close()); err != nil {
		return errors.Wrap(err, "read the actors that stay")
	}
	if err := w.eraseActors(ctx); err != nil {
		return err
	}
	back, err := w.conn.PrepareContext(ctx, "INSERT INTO actor VALUES (?, ?, ?)")
	if err != nil {
		return errors.Wrap(err, "keep the other actors")
	}
	defer func() { err = errors.CombineErrors(err, back.Close()) }()
	for _, row := range stay {
		if _, err := back.ExecContext(ctx, row...); err != nil {
			return errors.Wrap(err, "keep the other actors")
		}
	}
	return nil
}

// eraseActors takes all actors out of the file, with every page that they stood in overwritten. SQLite moves rows from page to page as a
// table grows and shrinks, and leaves copies where they stood; so a single row is not gone when it is deleted, however it is deleted.
func (w *writing) eraseActors(ctx context.Context) error {
	for _, statement := range []string{"PRAGMA secure_delete(ON)", "DELETE FROM actor", "PRAGMA " + pragmaErase} {
		if _, err := w.conn.ExecContext(ctx, statement); err != nil {
			return errors.Wrap(err, "erase the actors")
		}
	}
	return nil
}
