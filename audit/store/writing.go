package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"hash/maphash"
	"strconv"

	"github.com/cockroachdb/errors"

	"catenary/es"
	"catenary/es/project"
	"catenary/internal/failpoint"
)

// writing is the one connection that writes a file, and what is not in the file yet. One goroutine uses it at a time.
type writing struct {
	db   *sql.DB
	conn *sql.Conn

	kinds map[string][]kind // by aggregate
	heads map[headKey]*head
	// had counts the hashes that heads hold, which seed makes.
	had  int
	seed maphash.Seed
	// addedTo are the keys to whose history this transaction has added.
	addedTo map[int64]*head
	// control is what people have decided about the store. Parked and left are what is not folded for it, altered says that they are not
	// as they were told last.
	control *project.Control
	parked  map[es.Ref]*parked
	left    map[uint64]leftOut
	altered bool
	// lists are those of manifests that are in the file.
	lists map[int64]bool

	events, keys, records, pasts, carriers, carrieds *inserter
	words, cut, turned, meta                         *statement
	cutting                                          [5]driver.NamedValue

	// whole says that every key of the file is at hand: so it is in a new file, which is never read while it is built, until there are
	// too many or something is added to a history.
	whole bool
	place place
	// unclean says that the journal beside the file holds what was erased.
	unclean bool
	// in is set while a transaction is open.
	in                  bool
	nextKey, nextRecord int64
	// pending are the rows of record that are not in the file yet, spoken the words of events.
	pending []*fact
	spoken  []spoken
}

// spoken are the words of an event.
type spoken struct {
	sequence uint64
	words    string
}

// place is how far a file has come.
type place struct {
	head es.Head
	// recorded is when the last event was recorded; known is the newest such time, for a writer's clock may be set back.
	recorded, known instant
	// refused is the last refused command that was taken in.
	refused uint64
	// missing counts the instances that are parked and the events that are left out.
	missing int
}

// Names of the table meta.
const (
	metaSchema   = "schema"
	metaPosition = "position"
	metaHash     = "hash"
	metaRecorded = "recorded"
	metaKnown    = "known"
	metaRefused  = "refused"
	metaMissing  = "missing"
)

// wordBytes bounds what the index of words gathers before it writes: more than the words of a transaction, so that each writes once
// and what is written need not be merged again and again.
const wordBytes = 64 << 20

// create makes the tables in an empty file.
func create(ctx context.Context, c *sql.Conn) error {
	for _, t := range tables() {
		if _, err := c.ExecContext(ctx, t.ddl()); err != nil {
			return errors.Wrapf(err, "make the table %s", t.name)
		}
	}
	if _, err := c.ExecContext(ctx, "INSERT INTO word (word, rank) VALUES ('hashsize', ?)", wordBytes); err != nil {
		return errors.Wrap(err, "bound what the index of words gathers")
	}
	_, err := c.ExecContext(ctx, "INSERT INTO meta VALUES (?, ?)", metaSchema, schemaMark())
	return errors.Wrap(err, "mark the schema")
}

// lookUp readies a new file for being read while it is built. What is not written yet is written first.
func (w *writing) lookUp(ctx context.Context) error {
	if err := w.flush(ctx); err != nil || !w.whole {
		return err
	}
	w.whole = false
	return makeIndexes(ctx, w.conn, func(i index) bool { return i.folds })
}

func makeIndexes(ctx context.Context, c *sql.Conn, which func(index) bool) error {
	for _, i := range indexes() {
		if !which(i) {
			continue
		}
		if _, err := c.ExecContext(ctx, i.ddl()); err != nil {
			return errors.Wrapf(err, "make the index %s", i.name)
		}
	}
	return nil
}

// finish makes the other indexes, and the views.
func finish(ctx context.Context, c *sql.Conn) error {
	if err := makeIndexes(ctx, c, func(index) bool { return true }); err != nil {
		return err
	}
	for _, v := range views() {
		if _, err := c.ExecContext(ctx, v.ddl()); err != nil {
			return errors.Wrapf(err, "make the view %s", v.name)
		}
	}
	return nil
}

// newWriting takes up a file that has its tables.
func newWriting(ctx context.Context, db *sql.DB, control *project.Control, fresh bool) (*writing, error) {
	var conn *sql.Conn
	all, err := kinds()
	if err == nil {
		conn, err = db.Conn(ctx)
	}
	if err != nil {
		return nil, errors.CombineErrors(errors.Wrap(err, "connect to the audit store"), db.Close())
	}
	w := &writing{
		db: db, conn: conn, kinds: map[string][]kind{}, heads: map[headKey]*head{}, seed: maphash.MakeSeed(), addedTo: map[int64]*head{},
		control: control, parked: map[es.Ref]*parked{}, left: map[uint64]leftOut{}, lists: map[int64]bool{}, whole: fresh,
	}
	for _, k := range all {
		for _, a := range k.aggregates() {
			w.kinds[a] = append(w.kinds[a], k)
		}
	}
	if fresh {
		err = create(ctx, conn)
	}
	if err == nil {
		err = w.prepare(ctx)
	}
	if err == nil {
		err = w.loadPolicy(ctx)
	}
	if err == nil {
		w.place, err = readPlace(ctx, conn)
	}
	if err == nil {
		err = conn.QueryRowContext(ctx, `SELECT (SELECT ifnull(max(id), 0) FROM record), (SELECT ifnull(max(id), 0) FROM "key")`).Scan(&w.nextRecord, &w.nextKey)
	}
	if err != nil {
		return nil, errors.CombineErrors(err, w.close())
	}
	return w, nil
}

func (w *writing) prepare(ctx context.Context) error {
	for _, p := range []struct {
		name string
		in   **inserter
	}{{"event", &w.events}, {"key", &w.keys}, {"record", &w.records}, {"past", &w.pasts}, {"carrier", &w.carriers}, {"carried", &w.carrieds}} {
		var err error
		if *p.in, err = tableInserter(ctx, w.conn, p.name); err != nil {
			return err
		}
	}
	var err error
	if w.words, err = newStatement(ctx, w.conn, "insert into word", "INSERT INTO word (rowid, words) VALUES (?, ?)"); err != nil {
		return err
	}
	if w.cut, err = newStatement(ctx, w.conn, "end a record", "UPDATE record SET valid_to = ?, outlook_from = ?, outlook_to = ?, outlook_known = ? WHERE id = ?"); err != nil {
		return err
	}
	if w.turned, err = newStatement(ctx, w.conn, "note what a record changed", "UPDATE record SET turn = ? WHERE id = ?"); err != nil {
		return err
	}
	w.meta, err = newStatement(ctx, w.conn, "note the position", "INSERT INTO meta VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value")
	return err
}

// close lets go of the file. Statements go first: with one left, SQLite would keep the file open, and locked.
func (w *writing) close() error {
	var failure error
	for _, in := range []*inserter{w.events, w.keys, w.records, w.pasts, w.carriers, w.carrieds} {
		if in != nil {
			failure = errors.CombineErrors(failure, in.close())
		}
	}
	for _, st := range []*statement{w.words, w.cut, w.turned, w.meta} {
		if st != nil {
			failure = errors.CombineErrors(failure, st.close())
		}
	}
	failure = errors.CombineErrors(failure, errors.CombineErrors(w.conn.Close(), w.db.Close()))
	return errors.Wrap(failure, "close the audit store")
}

// queryer is a connection or a transaction.
type queryer interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// readMeta gives what a file says of itself.
func readMeta(ctx context.Context, q queryer) (found map[string]string, err error) {
	rows, err := q.QueryContext(ctx, "SELECT name, value FROM meta")
	if err != nil {
		return nil, errors.Wrap(err, "read what the audit store says of itself")
	}
	defer func() { err = errors.CombineErrors(err, rows.Close()) }()
	found = map[string]string{}
	for rows.Next() {
		var name, value string
		if err := rows.Scan(&name, &value); err != nil {
			return nil, errors.Wrap(err, "read what the audit store says of itself")
		}
		found[name] = value
	}
	return found, errors.Wrap(rows.Err(), "read what the audit store says of itself")
}

// errNowhere means that a file does not say how far it has come.
var errNowhere = errors.New("the file does not say how far it has come")

// readPlace gives how far a file has come. It gives an error marked errNowhere when what it says there makes no sense.
func readPlace(ctx context.Context, q queryer) (place, error) {
	found, err := readMeta(ctx, q)
	if err != nil {
		return place{}, err
	}
	var p place
	var failure error
	number := func(name string) int64 {
		if found[name] == "" {
			return 0
		}
		n, err := strconv.ParseInt(found[name], 10, 64)
		failure = errors.CombineErrors(failure, errors.Wrapf(err, "%s of the audit store", name))
		return n
	}
	p.head.Sequence = uint64(number(metaPosition))
	p.recorded, p.known = instant(number(metaRecorded)), instant(number(metaKnown))
	p.refused, p.missing = uint64(number(metaRefused)), int(number(metaMissing))
	if p.head.Sequence > 0 {
		p.head.Hash, err = es.ParseHash(found[metaHash])
		failure = errors.CombineErrors(failure, err)
	}
	if failure != nil {
		return place{}, errors.Mark(failure, errNowhere)
	}
	return p, nil
}

func (w *writing) notePlace(ctx context.Context) error {
	for name, value := range map[string]any{
		metaPosition: int64(w.place.head.Sequence), metaHash: w.place.head.Hash.String(), metaRecorded: int64(w.place.recorded),
		metaKnown: int64(w.place.known), metaRefused: int64(w.place.refused), metaMissing: int64(len(w.parked) + len(w.left)),
	} {
		if err := w.meta.exec(ctx, []driver.NamedValue{{Ordinal: 1, Value: name}, {Ordinal: 2, Value: value}}); err != nil {
			return err
		}
	}
	return nil
}

// begin opens a transaction if none is open.
func (w *writing) begin(ctx context.Context) error {
	if w.in {
		return nil
	}
	_, err := w.conn.ExecContext(ctx, "BEGIN IMMEDIATE")
	w.in = err == nil
	return errors.Wrap(err, "begin to take in events")
}

// commit writes what was taken in, and how far that is.
func (w *writing) commit(ctx context.Context) error {
	if !w.in {
		return nil
	}
	if err := w.flush(ctx); err != nil {
		return err
	}
	if err := w.recount(ctx); err != nil {
		return err
	}
	if err := w.noteParked(ctx); err != nil {
		return err
	}
	if err := w.notePlace(ctx); err != nil {
		return err
	}
	if err := w.speak(ctx); err != nil {
		return err
	}
	failpoint.Pass(failpoint.AuditBeforeCommit)
	_, err := w.conn.ExecContext(ctx, "COMMIT")
	failpoint.Pass(failpoint.AuditAfterCommit)
	w.in = err != nil
	return errors.Wrap(err, "take in events")
}

// speak puts the words of events into their index. They come last, and each in a statement of its own: before any statement for many
// rows the index writes what it has gathered, and then has to merge what it wrote.
func (w *writing) speak(ctx context.Context) error {
	values := [...]driver.NamedValue{{Ordinal: 1}, {Ordinal: 2}}
	for _, s := range w.spoken {
		values[0].Value, values[1].Value = int64(s.sequence), s.words
		if err := w.words.exec(ctx, values[:]); err != nil {
			return err
		}
	}
	clear(w.spoken)
	w.spoken = w.spoken[:0]
	return nil
}

// flush writes the rows that are not in the file yet.
func (w *writing) flush(ctx context.Context) error {
	for _, f := range w.pending {
		if err := w.records.add(ctx, f.row()...); err != nil {
			return err
		}
		f.stored = true
	}
	w.pending = w.pending[:0]
	for _, in := range []*inserter{w.keys, w.records, w.pasts, w.carriers, w.carrieds, w.events} {
		if err := in.flush(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (f *fact) row() []any {
	var pkg, version any
	if f.reference.Package != nil {
		pkg, version = f.reference.Package.Name, f.reference.Package.Version
	}
	var outlookFrom, outlookTo, outlookKnown any
	if f.outlook != (outlook{}) {
		outlookFrom, outlookTo, outlookKnown = int64(f.outlook.from), int64(f.outlook.to), int64(f.outlook.known)
	}
	var healthy, value any
	if f.healthy != nil {
		healthy = number(*f.healthy)
	}
	if len(f.value) > 0 {
		value = string(f.value)
	}
	return []any{
		f.id, f.key, int64(f.sequence), int64(f.from), int64(f.to), int64(f.known), outlookFrom, outlookTo, outlookKnown, number(f.stands), nullTurn(f.turn), nullText(f.state),
		nullText(f.reference.Artifact), pkg, version, nullText(f.build), nullText(f.commit), nullText(f.rollout),
		nullText(f.requiredBy), nullInstant(f.assigned), int64(f.since), nullInstant(f.reported), healthy, nullText(f.drift), value,
	}
}
