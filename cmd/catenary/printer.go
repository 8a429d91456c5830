package main

import (
	"bufio"
	"strings"

	"github.com/cockroachdb/errors"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// line is one record, ready for any format.
type line struct {
	// name identifies it; give it back to the tool to see it again.
	name string
	// names are those that make the record's key.
	names []string
	// json is the record as stored.
	json []byte
	// cells are its columns for people. They are asked for in tables only.
	cells func() []string
	// shade colours the whole line on a terminal.
	shade colour
}

// printer writes records to standard output, one after another. JSON, YAML and names are written as they come, so that
// a list needs no memory of its own; only a table has to know all before the first line.
type printer struct {
	format  format
	columns []string
	colours bool
	out     *bufio.Writer
	table   table.Writer
	count   int
	// bare leaves out the brackets of a list: records follow one another, as in a stream without an end.
	bare bool
}

func (a *app) newPrinter(f format, columns ...string) *printer {
	p := &printer{format: f, columns: columns, colours: a.colours(a.Stdout), out: bufio.NewWriterSize(a.Stdout, 64<<10)}
	if f == formatTable {
		p.table = newTable(columns)
	}
	return p
}

// add writes one record.
func (p *printer) add(l line) error {
	p.count++
	switch p.format {
	case formatTable:
		cells := l.cells()
		row := make(table.Row, len(cells))
		for i, c := range cells {
			row[i] = paintIf(p.colours && l.shade != "", l.shade, printable(c))
		}
		p.table.AppendRow(row)
		return nil
	case formatJSON:
		switch {
		case p.bare:
		case p.count == 1:
			p.text("[")
		default:
			p.text(",\n ")
		}
		p.text(string(l.json))
		if p.bare {
			p.text("\n")
		}
	case formatYAML:
		item, err := yamlItem(l.json)
		if err != nil {
			return errors.Wrapf(err, "%s as YAML", l.name)
		}
		p.text(string(item))
	case formatName:
		p.text(l.name + "\n")
	}
	// A failed write is kept by the writer and given by flush.
	return nil
}

func (p *printer) text(s string) { _, _ = p.out.WriteString(s) }

// end completes a list.
func (p *printer) end() error {
	switch p.format {
	case formatTable:
		if p.count > 0 {
			p.text(render(p.table))
		}
	case formatJSON:
		switch {
		case p.bare:
		case p.count == 0:
			p.text("[]\n")
		default:
			p.text("]\n")
		}
	case formatYAML:
		if p.count == 0 && !p.bare {
			p.text("[]\n")
		}
	case formatName:
	}
	return p.flush()
}

func (p *printer) flush() error { return errors.Wrap(p.out.Flush(), "write the output") }

// printOne writes a single record, without the brackets of a list.
func (a *app) printOne(f format, columns []string, l line) error {
	p := a.newPrinter(f, columns...)
	switch f {
	case formatTable, formatName:
		if err := p.add(l); err != nil {
			return err
		}
		return p.end()
	case formatJSON:
		p.text(string(l.json) + "\n")
	case formatYAML:
		doc, err := yamlDocument(l.json)
		if err != nil {
			return errors.Wrapf(err, "%s as YAML", l.name)
		}
		p.text(string(doc))
	}
	return p.flush()
}

// newTable has no frames: columns that a person reads, and that cut and awk read too.
func newTable(columns []string) table.Writer {
	t := table.NewWriter()
	style := table.StyleDefault
	style.Box = table.BoxStyle{PaddingRight: "  "}
	style.Options = table.OptionsNoBordersAndSeparators
	style.Format = table.FormatOptions{Header: text.FormatDefault, Row: text.FormatDefault, Footer: text.FormatDefault}
	t.SetStyle(style)
	header := make(table.Row, len(columns))
	for i, c := range columns {
		header[i] = c
	}
	t.AppendHeader(header)
	return t
}

// render gives a table without the spaces that fill up its last column.
func render(t table.Writer) string {
	var b strings.Builder
	for l := range strings.Lines(t.Render() + "\n") {
		b.WriteString(strings.TrimRight(l, " \n"))
		b.WriteByte('\n')
	}
	return b.String()
}
