package failpoint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestPointsArePassed reads the module: every point is passed in exactly one place, by the function that fits what can be made of it, and every
// bug is planted somewhere.
func TestPointsArePassed(t *testing.T) {
	t.Parallel()
	names := constants(t, "points.go")
	bugs := constants(t, "bugs.go")
	if len(names) != len(Points()) || len(bugs) != len(Bugs()) {
		t.Errorf("%d names and %d bugs are declared, %d and %d are listed", len(names), len(bugs), len(Points()), len(Bugs()))
	}
	passed, planted := map[Name][]string{}, map[Bug][]string{}
	for _, file := range sources(t) {
		set := token.NewFileSet()
		tree, err := parser.ParseFile(set, file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			function, constant, ok := ofThisPackage(call)
			if !ok {
				return true
			}
			where := set.Position(call.Pos()).String()
			switch function {
			case "Pass", "Fail":
				name := Name(names[constant])
				p, ok := known(name)
				if !ok || p.Fails != (function == "Fail") {
					t.Errorf("%s: %s(%s): the list says %+v", where, function, constant, p)
				}
				passed[name] = append(passed[name], where)
			case "Planted":
				planted[Bug(bugs[constant])] = append(planted[Bug(bugs[constant])], where)
			}
			return true
		})
	}
	for _, p := range Points() {
		if len(passed[p.Name]) != 1 {
			t.Errorf("%s is passed at %v, want one place", p.Name, passed[p.Name])
		}
	}
	for _, b := range Bugs() {
		if len(planted[b]) == 0 {
			t.Errorf("%s is planted nowhere", b)
		}
	}
}

// ofThisPackage reads failpoint.Function(failpoint.Constant).
func ofThisPackage(call *ast.CallExpr) (function, constant string, ok bool) {
	of := func(e ast.Expr) (string, bool) {
		s, ok := e.(*ast.SelectorExpr)
		if !ok {
			return "", false
		}
		x, ok := s.X.(*ast.Ident)
		return s.Sel.Name, ok && x.Name == "failpoint"
	}
	if function, ok = of(call.Fun); !ok || len(call.Args) != 1 {
		return "", "", false
	}
	constant, ok = of(call.Args[0])
	return function, constant, ok
}

// constants gives the string constants of a file of this package, by name.
func constants(t *testing.T, file string) map[string]string {
	t.Helper()
	tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, d := range tree.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		for _, s := range g.Specs {
			v := s.(*ast.ValueSpec)
			found[v.Names[0].Name] = strings.Trim(v.Values[0].(*ast.BasicLit).Value, `"`)
		}
	}
	return found
}

// sources gives the module's production files, but for this package's.
func sources(t *testing.T) []string {
	t.Helper()
	const root = "../.."
	var files []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (path == filepath.Join(root, "internal", "failpoint") || path != root && strings.HasPrefix(d.Name(), ".")):
			return fs.SkipDir
		case strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go"):
			files = append(files, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(files, func(f string) bool { return strings.HasSuffix(f, filepath.Join("cmd", "writer", "main.go")) }) {
		t.Fatal("the module's files are not found", os.Args[0])
	}
	return files
}
