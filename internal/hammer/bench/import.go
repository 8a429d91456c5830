package main

import (
	"bufio"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"

	"catenary/audit"
	"catenary/es/dispatch"
	"catenary/internal/deliveries"
	"catenary/internal/ndjson"
)

const (
	// loadSet is the real history that an import is measured with, below the data folder.
	loadSet = "govuk/full-2024-01_2026-07-slim.ndjson.gz"
	// importMustReach is the rate of rows that an import must reach, or half of what 1,024 callers reach on the same disk.
	importMustReach = 10_000
	// readable bounds the wait until all that was imported can be read.
	readable = time.Minute
)

// importLines imports the load set into a chain of its own in each run, and asks the last one questions.
func (b *bencher) importLines(ctx context.Context) ([]line, error) {
	l := line{name: "import of the load set", ground: synced.String(), unit: "rows", bareName: "half of 1,024 callers", target: target{rate: importMustReach}}
	imports, queries := b.wants(l.name, synced), b.wantsQueries()
	if !imports && !queries {
		return nil, nil
	}
	file, err := b.rowsFile()
	if errors.Is(err, fs.ErrNotExist) {
		l.note = fmt.Sprintf("no %s in %s: set %s", loadSet, b.data, envData)
		return []line{l}, nil
	}
	if err != nil {
		return nil, err
	}
	runs := b.runs
	if !imports {
		runs = 1
	}
	var pairs []pair
	var lines []line
	for i := range runs {
		err := synced.onChain(ctx, b.dir, func(ctx context.Context, s server, nc *nats.Conn) error {
			f, err := importOnce(ctx, nc, file)
			if err != nil {
				return err
			}
			pairs = append(pairs, pair{ours: f})
			if i == runs-1 && queries {
				lines, err = b.queryLines(ctx, nc)
			}
			return err
		})
		if err != nil {
			return nil, errors.Wrap(err, l.name)
		}
	}
	if !imports {
		return lines, nil
	}
	l = l.summed(pairs)
	if b.durable > 0 {
		l.bare = figure{rate: b.durable / 2, processed: 1}
		l.ratio = l.ours.rate / l.bare.rate
		l.target.ratio = 1
	}
	b.sayf("%s", l)
	return append([]line{l}, lines...), nil
}

// rowsFile gives a file with as many rows of the load set as are asked for.
func (b *bencher) rowsFile() (_ string, err error) {
	source := filepath.Join(b.data, filepath.FromSlash(loadSet))
	if b.importRows == 0 {
		_, err := os.Stat(source)
		return source, err
	}
	in, err := os.Open(source)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.CombineErrors(err, in.Close()) }()
	unpacked, err := gzip.NewReader(in)
	if err != nil {
		return "", errors.Wrapf(err, "read %s", source)
	}
	out, err := os.Create(filepath.Join(b.dir, "rows.ndjson"))
	if err != nil {
		return "", errors.Wrap(err, "write the rows to import")
	}
	defer func() { err = errors.CombineErrors(err, out.Close()) }()
	lines := bufio.NewReader(unpacked)
	for range b.importRows {
		line, err := lines.ReadBytes('\n')
		if _, writing := out.Write(line); writing != nil {
			return "", errors.Wrap(writing, "write the rows to import")
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return "", errors.Wrapf(err, "read %s", source)
		}
	}
	return out.Name(), nil
}

// importOnce imports a file as `catenary import deliveries` does. The rate counts rows answered; that all of them can be read
// soon after is checked.
func importOnce(ctx context.Context, nc *nats.Conn, file string) (_ figure, err error) {
	source, err := ndjson.Open(file, nil)
	if err != nil {
		return figure{}, err
	}
	defer func() { err = errors.CombineErrors(err, source.Close()) }()
	in := deliveries.Input{Source: source}
	plan, err := deliveries.Examine(in, false, func(deliveries.Problem) {})
	if err != nil {
		return figure{}, err
	}
	pipeline, err := dispatch.NewPipeline(nc, 0)
	if err != nil {
		return figure{}, err
	}
	watch, err := startWatch()
	if err != nil {
		return figure{}, errors.CombineErrors(err, pipeline.Close())
	}
	summary, err := deliveries.Run(ctx, in, plan, deliveries.Config{Poster: pipeline})
	found, watched := watch.figure(summary.Rows, nil)
	if err = errors.CombineErrors(err, watched); err != nil {
		return figure{}, errors.CombineErrors(err, pipeline.Close())
	}
	if err := pipeline.Close(); err != nil {
		return figure{}, err
	}
	if !summary.Whole() {
		return figure{}, errors.Newf("not all rows went in: %d refused, %d broken", summary.Refused, summary.Broken)
	}
	queries := audit.NewClient(nc, nil)
	for late := time.Now().Add(readable); ; {
		p, err := queries.Position(ctx, audit.PositionQuestion{Sequence: summary.Sequence, Wait: audit.Duration(time.Second)})
		switch {
		case err != nil:
			return figure{}, err
		case p.Reached:
			return found, nil
		case time.Now().After(late):
			return figure{}, errors.Newf("event %d can't be read %s after the import", summary.Sequence, readable)
		}
	}
}
