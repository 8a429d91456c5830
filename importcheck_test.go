package catenary_test

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing/fstest"
)

// rules judge a tree of Go files. They are data, so that a test can plant a violation in a tree of its own.
type rules struct {
	module          string
	table           []row
	testHarnesses   []string
	apart           [][2][]string
	bus             []string
	server          []string
	impure          []string
	impureSelectors map[string][]string
	vagueNames      []string
}

// source is one parsed file.
type source struct {
	path string
	dir  string
	test bool
	ast  *ast.File
	fset *token.FileSet
}

func (s source) line(n ast.Node) int { return s.fset.Position(n.Pos()).Line }

// check returns every violation, sorted by file and line. It fails when a file can't be read or parsed: what was not
// judged must not count as clean.
func (r rules) check(fsys fs.FS) ([]string, error) {
	sources, err := parseTree(fsys)
	if err != nil {
		return nil, err
	}
	var found []string
	dirs := map[string][]source{}
	for _, s := range sources {
		dirs[s.dir] = append(dirs[s.dir], s)
	}
	for dir, files := range dirs {
		found = append(found, r.checkDir(dir, files)...)
		own, ok := r.rowOf(dir)
		if !ok {
			found = append(found, dir+": no row in importTable: add the directory with what it may import, and to docs/architecture/README.md")
			continue
		}
		for _, s := range files {
			for _, imp := range s.ast.Imports {
				if why := r.judge(own, s, importPath(imp)); why != "" {
					found = append(found, fmt.Sprintf("%s:%d: %s", s.path, s.line(imp), why))
				}
			}
			if own.pure && !s.test {
				found = append(found, r.checkPurity(s)...)
			}
		}
	}
	slices.SortFunc(found, byFileAndLine)
	return found, nil
}

func (r rules) checkDir(dir string, files []source) []string {
	var found []string
	if name := path.Base(dir); slices.Contains(r.vagueNames, name) {
		found = append(found, fmt.Sprintf("%s: %s says nothing about what belongs there: name it after what it owns", dir, name))
	}
	i := slices.IndexFunc(files, func(s source) bool { return path.Base(s.path) == "doc.go" })
	const say = "say what the package owns, what it leaves to others, and its invariants"
	switch {
	case i < 0:
		found = append(found, dir+": no doc.go: "+say)
	case strings.TrimSpace(files[i].ast.Doc.Text()) == "":
		found = append(found, files[i].path+": no package comment: "+say)
	}
	return found
}

// judge says why a file of a directory may not import a package, or nothing when it may.
func (r rules) judge(own row, s source, imported string) string {
	target, ours := r.ours(imported)
	switch {
	case ours:
		return r.judgeOurs(own, s, target)
	case within(imported, r.server):
		if !own.server {
			return fmt.Sprintf("%s may not import %s: only embedded and integration run a server", s.dir, imported)
		}
	case within(imported, r.bus):
		switch own.bus {
		case anyFile:
		case busFiles:
			if !strings.HasPrefix(path.Base(s.path), "bus") {
				return fmt.Sprintf("%s may import %s in files named bus*.go only", s.dir, imported)
			}
		case noBus:
			return fmt.Sprintf("%s may not import %s: the bus belongs to few packages (see importTable)", s.dir, imported)
		}
	}
	return ""
}

func (r rules) judgeOurs(own row, s source, target string) string {
	for _, pair := range r.apart {
		if matches(s.dir, pair[0]) && matches(target, pair[1]) || matches(s.dir, pair[1]) && matches(target, pair[0]) {
			return fmt.Sprintf("%s and %s must stay apart: the read side shows what was recorded, not what a decider thinks", s.dir, target)
		}
	}
	their, known := r.rowOf(target)
	switch {
	case !known:
		return target + " has no row in importTable"
	case s.test && (target == s.dir || matches(target, r.testHarnesses)):
		return ""
	case !s.test && their.harness && !own.harness:
		return target + " is made for tests: production files may not import it"
	case !matches(target, own.imports):
		return fmt.Sprintf("%s may not import %s (see importTable)", s.dir, target)
	}
	return ""
}

// checkPurity looks for what a pure package must not import or use. It resolves a selector by the file's own imports, so
// a renamed import does not hide a clock and a local variable named like a package is not mistaken for one.
func (r rules) checkPurity(s source) []string {
	var found []string
	say := func(n ast.Node, format string, args ...any) {
		found = append(found, fmt.Sprintf("%s:%d: %s is pure and may not ", s.path, s.line(n), s.dir)+fmt.Sprintf(format, args...))
	}
	local := map[string]string{}
	for _, imp := range s.ast.Imports {
		p := importPath(imp)
		if within(p, r.impure) {
			say(imp, "import %s", p)
		}
		if _, watched := r.impureSelectors[p]; !watched {
			continue
		}
		switch {
		case imp.Name == nil:
			local[path.Base(p)] = p
		case imp.Name.Name == ".":
			say(imp, "import %s with a dot", p)
		default:
			local[imp.Name.Name] = p
		}
	}
	ast.Inspect(s.ast, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := sel.X.(*ast.Ident); ok {
			if p := local[x.Name]; slices.Contains(r.impureSelectors[p], sel.Sel.Name) {
				say(sel, "use %s.%s: take the time as an argument", p, sel.Sel.Name)
			}
		}
		return true
	})
	return found
}

// rowOf finds a directory's row. A row that names the directory wins over one with a star.
func (r rules) rowOf(dir string) (row, bool) {
	for _, own := range r.table {
		if own.dir == dir {
			return own, true
		}
	}
	for _, own := range r.table {
		if matches(dir, []string{own.dir}) {
			return own, true
		}
	}
	return row{}, false
}

// ours turns an import path of this module into its directory.
func (r rules) ours(imported string) (string, bool) {
	if imported == r.module {
		return ".", true
	}
	return strings.CutPrefix(imported, r.module+"/")
}

// matches says whether a directory fits one of the patterns: itself, "x/*" for those directly below x, "..." for all.
func matches(dir string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		parent, star := strings.CutSuffix(p, "/*")
		return p == "..." || p == dir || star && path.Dir(dir) == parent
	})
}

// within says whether an import path is one of the given or lies below one.
func within(imported string, roots []string) bool {
	return slices.ContainsFunc(roots, func(root string) bool {
		return imported == root || strings.HasPrefix(imported, root+"/")
	})
}

func importPath(imp *ast.ImportSpec) string {
	p, err := strconv.Unquote(imp.Path.Value)
	if err != nil {
		// The parser accepts no other literal here; the raw text then matches no rule and no row.
		return imp.Path.Value
	}
	return p
}

// byFileAndLine orders "file:line: why" as an editor walks through it.
func byFileAndLine(a, b string) int {
	fileA, lineA := position(a)
	fileB, lineB := position(b)
	return cmp.Or(cmp.Compare(fileA, fileB), cmp.Compare(lineA, lineB), cmp.Compare(a, b))
}

func position(violation string) (string, int) {
	file, rest, _ := strings.Cut(violation, ":")
	number, _, _ := strings.Cut(rest, ":")
	line, err := strconv.Atoi(number)
	if err != nil {
		return file, 0
	}
	return file, line
}

// parseTree parses every Go file that belongs to the module.
func parseTree(fsys fs.FS) ([]source, error) {
	paths, err := moduleFiles(fsys)
	if err != nil {
		return nil, err
	}
	var sources []source
	for _, p := range paths {
		if path.Ext(p) != ".go" {
			continue
		}
		text, err := fs.ReadFile(fsys, p)
		if err != nil {
			return nil, err
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, p, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		sources = append(sources, source{path: p, dir: path.Dir(p), test: strings.HasSuffix(p, "_test.go"), ast: file, fset: fset})
	}
	return sources, nil
}

// moduleFiles lists the tree's files without what is no part of the project: what .gitignore names, hidden directories
// (but not .ci), and test data, which the go tool ignores too.
func moduleFiles(fsys fs.FS) ([]string, error) {
	var paths []string
	err := fs.WalkDir(fsys, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if ignoredDir(p) {
				return fs.SkipDir
			}
			return nil
		}
		if ext := path.Ext(p); ext != ".test" && ext != ".prof" {
			paths = append(paths, p)
		}
		return nil
	})
	return paths, err
}

func ignoredDir(p string) bool {
	switch name := path.Base(p); {
	case p == "." || p == ".ci":
		return false
	case p == "bin" || p == "catenary-data" || name == "testdata":
		return true
	default:
		return strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")
	}
}

// tree makes a file tree in memory from paths and texts.
func tree(files map[string]string) fs.FS {
	fsys := fstest.MapFS{}
	for p, text := range files {
		fsys[p] = &fstest.MapFile{Data: []byte(text)}
	}
	return fsys
}
