package catenary_test

import (
	"fmt"
	"go/ast"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// maxFileLines bounds a production file. A longer one holds two concepts and is found by neither name.
const maxFileLines = 700

// skippingPackage is the one package that may skip a test: in CI it fails the test instead.
const skippingPackage = "internal/realdata"

var unfinished = regexp.MustCompile(`\b(TODO|FIXME|XXX|HACK)\b|\bfor now\b|\bnot implemented\b`)

// foreign finds what belongs to one machine or one company's network and not into the tree: home directories, and the
// hosts that packages come from (Go finds its modules by its own settings).
var foreign = regexp.MustCompile(`(^|[^\w./-])(/(work|root)/|/(home|Users)/\w+/|[A-Z]:\\Users\\)` +
	`|\b(proxy|sum)\.(golang)\.org\b|\bgoproxy\.\w+|\bregistry\.(npmjs)\.\w+|\b(pypi|crates)\.(org|io)\b`)

func TestStyle(t *testing.T) {
	t.Parallel()
	found, err := checkStyle(os.DirFS("."))
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range found {
		t.Error(v)
	}
}

func TestStyleCheckFinds(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name string
		path string
		text string
		want []string
	}{
		{name: "nothing in a clean file", path: "es/a_test.go", text: "package p\nimport \"time\"\nvar _ = time.Second\nfunc f(d decoder) { d.Skip() }\n"},
		{name: "init", path: "es/a.go", text: "package p\nfunc init() {}\n",
			want: []string{"es/a.go:2: func init: wire things in the open instead"}},
		{name: "a method called init is none", path: "es/a.go", text: "package p\nfunc (x T) init() {}\n"},
		{name: "a skipped test", path: "es/a_test.go", text: "package p\nfunc TestX(t *testing.T) {\nt.Skip()\n}\n",
			want: []string{"es/a_test.go:3: t.Skip: a test runs or it is none (real data: use internal/realdata)"}},
		{name: "a sleeping test", path: "es/a_test.go", text: "package p\nimport clock \"time\"\nfunc TestX(t *testing.T) {\nclock.Sleep(1)\n}\n",
			want: []string{"es/a_test.go:4: time.Sleep in a test: wait for a signal, or poll with a deadline"}},
		{name: "unfinished work", path: "es/a.go", text: "package p\n\n// " + "TO" + "DO: later\n",
			want: []string{"es/a.go:3: unfinished work is marked: finish it"}},
		{name: "a file too long", path: "es/a.go", text: "package p\n" + strings.Repeat("\n", maxFileLines),
			want: []string{"es/a.go: 701 lines, at most 700: one file holds one concept"}},
		{name: "a home directory", path: "docs/a.md", text: "see\n`/home/" + "ann/x`\n",
			want: []string{"docs/a.md:2: a path of one machine or a registry's host: \"`/home/" + "ann/\""}},
		{name: "a registry's host", path: ".ci/run", text: "GOPROXY=https://proxy." + "golang.org\n",
			want: []string{".ci/run:1: a path of one machine or a registry's host: \"proxy." + "golang.org\""}},
		{name: "not a home directory", path: "docs/a.md", text: "frame/wo" + "rk/x ~/home/x $HOME/ /rooted/\n"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			found, err := checkStyle(tree(map[string]string{c.path: c.text}))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, found); diff != "" {
				t.Errorf("violations (-want +found):\n%s", diff)
			}
		})
	}
}

func checkStyle(fsys fs.FS) ([]string, error) {
	sources, err := parseTree(fsys)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, s := range sources {
		found = append(found, checkCode(s)...)
	}
	paths, err := moduleFiles(fsys)
	if err != nil {
		return nil, err
	}
	for _, p := range paths {
		if p == "go.sum" {
			continue
		}
		text, err := fs.ReadFile(fsys, p)
		if err != nil {
			return nil, err
		}
		for i, line := range strings.Split(string(text), "\n") {
			if at := foreign.FindString(line); at != "" {
				found = append(found, fmt.Sprintf("%s:%d: a path of one machine or a registry's host: %q", p, i+1, at))
			}
		}
	}
	slices.SortFunc(found, byFileAndLine)
	return found, nil
}

func checkCode(s source) []string {
	var found []string
	say := func(n ast.Node, why string) {
		found = append(found, fmt.Sprintf("%s:%d: %s", s.path, s.line(n), why))
	}
	if lines := s.fset.File(s.ast.FileStart).LineCount(); !s.test && lines > maxFileLines {
		found = append(found, fmt.Sprintf("%s: %d lines, at most %d: one file holds one concept", s.path, lines, maxFileLines))
	}
	for _, group := range s.ast.Comments {
		if unfinished.MatchString(group.Text()) {
			say(group, "unfinished work is marked: finish it")
		}
	}
	clock := "time"
	for _, imp := range s.ast.Imports {
		if importPath(imp) == "time" && imp.Name != nil {
			clock = imp.Name.Name
		}
	}
	ast.Inspect(s.ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Recv == nil && n.Name.Name == "init" {
				say(n, "func init: wire things in the open instead")
			}
		case *ast.SelectorExpr:
			x, ok := n.X.(*ast.Ident)
			switch {
			case !ok:
			case s.test && x.Name == clock && n.Sel.Name == "Sleep":
				say(n, "time.Sleep in a test: wait for a signal, or poll with a deadline")
			case path.Clean(s.dir) != skippingPackage && slices.Contains([]string{"t", "b", "f", "tb"}, x.Name) && strings.HasPrefix(n.Sel.Name, "Skip"):
				say(n, x.Name+"."+n.Sel.Name+": a test runs or it is none (real data: use "+skippingPackage+")")
			}
		}
		return true
	})
	return found
}
