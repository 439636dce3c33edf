// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"reflect"
	"strings"
	"testing"
)

const modulePath = "github.com/aip-gateway/aip-gateway"

// setting is a member of a module's JSON.
type setting struct {
	path    string // the names of the members to it
	typ     reflect.Type
	field   string // of the source, such as caddymodule.Notify.Attempts
	comment string
	inner   bool // it has settings of its own
}

// commentsOfTypes are the comments of the struct types of packages, and of their fields.
type commentsOfTypes map[string]string // by package.Type, and by package.Type.Field

// read adds the comments of a package's types, once.
func (c commentsOfTypes) read(t *testing.T, pkg string) {
	t.Helper()
	if _, ok := c[pkg]; ok {
		return
	}
	c[pkg] = ""
	dir := "." + strings.TrimPrefix(pkg, modulePath)
	noTests := func(f fs.FileInfo) bool { return !strings.HasSuffix(f.Name(), "_test.go") }
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !strings.HasSuffix(e.Name(), ".go") || !noTests(info) {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), dir+"/"+e.Name(), nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			gen, ok := d.(*ast.GenDecl)
			if !ok || gen.Tok != token.TYPE {
				continue
			}
			for _, spec := range gen.Specs {
				c.readType(pkg, gen, spec.(*ast.TypeSpec))
			}
		}
	}
}

func (c commentsOfTypes) readType(pkg string, gen *ast.GenDecl, spec *ast.TypeSpec) {
	name := pkg + "." + spec.Name.Name
	if c[name] = gen.Doc.Text(); spec.Doc != nil {
		c[name] = spec.Doc.Text()
	}
	s, ok := spec.Type.(*ast.StructType)
	if !ok {
		return
	}
	for _, f := range s.Fields.List {
		for _, n := range f.Names {
			c[name+"."+n.Name] = f.Doc.Text()
		}
	}
}

// of returns the comment of a type.
func (c commentsOfTypes) of(t *testing.T, typ reflect.Type) string {
	t.Helper()
	if !strings.HasPrefix(typ.PkgPath(), modulePath) {
		return ""
	}
	c.read(t, typ.PkgPath())
	return c[typ.PkgPath()+"."+typ.Name()]
}

// settings returns the settings of a module in the order of its fields.
func (c commentsOfTypes) settings(t *testing.T, typ reflect.Type) (all []setting) {
	t.Helper()
	var walk func(path string, typ reflect.Type)
	walk = func(path string, typ reflect.Type) {
		c.of(t, typ)
		for f := range typ.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "" {
				if f.Anonymous && f.Type.Kind() == reflect.Struct {
					walk(path, f.Type)
				}
				continue
			}
			field := typ.PkgPath() + "." + typ.Name() + "." + f.Name
			s := setting{path: path + name, typ: f.Type, field: field, comment: c[field]}
			inner := bare(f.Type)
			s.inner = inner.Kind() == reflect.Struct
			if all = append(all, s); s.inner {
				walk(s.path+".", inner)
			}
		}
	}
	if typ.Kind() == reflect.Struct {
		walk("", typ)
	}
	return all
}

// bare returns the type that a pointer or a list is of.
func bare(typ reflect.Type) reflect.Type {
	for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice && typ != reflect.TypeFor[json.RawMessage]() {
		typ = typ.Elem()
	}
	return typ
}
