package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"io/fs"
	"net/url"
	"os"
	"strings"

	"github.com/cockroachdb/errors"
	"modernc.org/sqlite"

	"catenary/es"
)

const (
	// readers bounds the questions that read at once; more wait. Two cores serve no more.
	readers = 4
	// sqlReaders bounds the statements of people that run at once, apart from the others: they may take long.
	sqlReaders = 2
	// buildSuffix is the name of a file that is being built, after the name it will have.
	buildSuffix = ".building"
)

// Pragmas of the connections, each with its reason.
const (
	// A reader never waits for the writer in WAL mode, but for a moment while a file is opened first.
	pragmaPatience = "busy_timeout(10000)"
	// The last transactions may be lost with the power: they are taken in again.
	pragmaLive = "synchronous(NORMAL)"
	// What is deleted is overwritten where that costs no further page. Names of people need more: see eraseActors.
	pragmaErase = "secure_delete(FAST)"
	// A file that is being built is thrown away when building ends early, so it needs no journal and no sync.
	pragmaBuild = "synchronous(OFF)"
	// 128 MiB hold all of a hundred thousand events, whose table is read once for each of its indexes, and the inner pages of indexes over
	// millions.
	pragmaBuildCache = "cache_size(-131072)"
	// 16 MiB hold those that the writer comes back to, 4 MiB those that a reader does; the system's own cache has the others.
	pragmaCache       = "cache_size(-16384)"
	pragmaReaderCache = "cache_size(-4096)"
)

// source names a file to the driver.
func source(path string, parameters ...string) string {
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + strings.Join(parameters, "&")
}

func pragmas(values ...string) []string {
	for i, v := range values {
		values[i] = "_pragma=" + url.QueryEscape(v)
	}
	return values
}

// openFile gives a pool of connections to a file. Setup may ready each connection, or put another in its place; it may be nil.
func openFile(source string, most int, setup func(driver.Conn) (driver.Conn, error)) (*sql.DB, error) {
	connector, err := sqlite.NewConnector(source)
	if err != nil {
		return nil, errors.Wrap(err, "open the audit store")
	}
	db := sql.OpenDB(&readied{Connector: connector, setup: setup})
	db.SetMaxOpenConns(most)
	db.SetMaxIdleConns(most)
	return db, nil
}

// readied opens connections and readies them.
type readied struct {
	driver.Connector
	setup func(driver.Conn) (driver.Conn, error)
}

// Connect opens a connection.
func (r *readied) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := r.Connector.Connect(ctx)
	if err != nil || r.setup == nil {
		return c, err
	}
	ready, err := r.setup(c)
	if err != nil {
		return nil, errors.CombineErrors(err, c.Close())
	}
	return ready, nil
}

func openLive(path string) (*sql.DB, error) {
	return openFile(source(path, append(pragmas(pragmaPatience, "journal_mode(WAL)", pragmaLive, pragmaCache, pragmaErase), "mode=rw")...), 1, remember)
}

// openFound gives access to a file that may be another program's. It changes nothing in it, but undoes what a run that was killed had begun: until
// then nobody may read it, and only who may write can undo it.
func openFound(path string) (*sql.DB, error) {
	return openFile(source(path, append(pragmas(pragmaPatience, "query_only(1)", pragmaReaderCache), "mode=rw")...), 1, nil)
}

// Seen gives the last event that a file has taken in, whichever program wrote it, without changing what is in the file. It is the zero head when
// there is no file, or an empty one, and an error when the file can't be read as an audit store.
func Seen(ctx context.Context, path string) (seen es.Head, err error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode().IsRegular() && info.Size() == 0 {
		return es.Head{}, nil
	}
	db, err := openFound(path)
	if err != nil {
		return es.Head{}, err
	}
	defer func() { err = errors.CombineErrors(err, db.Close()) }()
	at, err := readPlace(ctx, db)
	return at.head, err
}

func openBuild(path string) (*sql.DB, error) {
	return openFile(source(path, pragmas("page_size(8192)", "journal_mode(OFF)", pragmaBuild, "locking_mode(EXCLUSIVE)", pragmaBuildCache, pragmaErase)...), 1, remember)
}

func openReaders(path string, most int, setup func(driver.Conn) (driver.Conn, error)) (*sql.DB, error) {
	return openFile(source(path, append(pragmas(pragmaPatience, "query_only(1)", pragmaReaderCache), "mode=ro")...), most, setup)
}
