// SPDX-License-Identifier: Apache-2.0

// Package openapitest holds the requests of tests to the descriptions of real servers of their own interfaces (OpenAPI
// 3.1), so that a double of such a server refuses the same requests as the server. registry.json, ca.json and
// discovery.json are the interfaces of the reference's servers, as those describe them.
package openapitest

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

//go:embed registry.json ca.json discovery.json
var documents embed.FS

// The servers of the reference.
var (
	Registry  = sync.OnceValue(func() *Interface { return read("registry.json") })
	CA        = sync.OnceValue(func() *Interface { return read("ca.json") })
	Discovery = sync.OnceValue(func() *Interface { return read("discovery.json") })
)

// Interface is the interface of a server. It may be used by any number of goroutines at once.
type Interface struct {
	paths map[string]map[string]operation // by template and method

	mu       sync.Mutex
	compiler *jsonschema.Compiler
	name     string
}

type operation struct {
	Parameters []struct {
		Name, In string
		Required bool
	}
	RequestBody *struct {
		Required bool
		Content  map[string]struct{}
	}
}

// read reads a document of this package, known to be right.
func read(name string) *Interface {
	text, err := documents.ReadFile(name)
	if err != nil {
		panic(err)
	}
	i := &Interface{compiler: jsonschema.NewCompiler(), name: name}
	var paths struct {
		Paths map[string]map[string]operation
	}
	if err := json.Unmarshal(text, &paths); err != nil {
		panic(err)
	}
	i.paths = paths.Paths
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		panic(err)
	}
	if err := i.compiler.AddResource(name, document); err != nil {
		panic(err)
	}
	return i
}

// Knows reports whether the server has a path.
func (i *Interface) Knows(path string) bool { return i.template(path) != "" }

// Check returns the server's reason to refuse a request, given its body; nil if it takes it.
func (i *Interface) Check(r *http.Request, body []byte) error {
	template := i.template(r.URL.Path)
	if template == "" {
		return fmt.Errorf("there is no path %s", r.URL.Path)
	}
	op, ok := i.paths[template][strings.ToLower(r.Method)]
	if !ok {
		return fmt.Errorf("%s takes no %s", template, r.Method)
	}
	query := r.URL.Query()
	for name := range query {
		if !op.has(name) {
			return fmt.Errorf("%s %s has no parameter %s", r.Method, template, name)
		}
	}
	for at, p := range op.Parameters {
		values := query[p.Name]
		switch {
		case p.In != "query":
			continue
		case p.Required && len(values) == 0:
			return fmt.Errorf("%s %s needs the parameter %s", r.Method, template, p.Name)
		}
		for _, value := range values {
			schema := i.schema(template, r.Method, "parameters", strconv.Itoa(at), "schema")
			if err := validAs(schema, value); err != nil {
				return fmt.Errorf("%s %s: %s: %w", r.Method, template, p.Name, err)
			}
		}
	}
	return i.checkBody(op, template, r, body)
}

func (op *operation) has(name string) bool {
	for _, p := range op.Parameters {
		if p.In == "query" && p.Name == name {
			return true
		}
	}
	return false
}

// checkBody checks a body of JSON, or of a form. A server without a described body reads none.
func (i *Interface) checkBody(op operation, template string, r *http.Request, body []byte) error {
	if op.RequestBody == nil || len(body) == 0 && !op.RequestBody.Required {
		return nil
	}
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	json := kind == "application/json" || strings.HasSuffix(kind, "+json")
	at := kind
	if json {
		at = "application/json"
	}
	if _, ok := op.RequestBody.Content[at]; !ok {
		return fmt.Errorf("%s %s takes no %s", r.Method, template, kind)
	}
	schema := i.schema(template, r.Method, "requestBody", "content", at, "schema")
	if !json {
		form, err := url.ParseQuery(string(body))
		if err != nil {
			return err
		}
		members := make(map[string]any)
		for name, values := range form {
			members[name] = values[0]
		}
		return schema.Validate(members)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return err
	}
	return schema.Validate(value)
}

// template returns the path of the document matched by a path; empty for none. A path without parameters wins.
func (i *Interface) template(path string) (found string) {
	if _, ok := i.paths[path]; ok {
		return path
	}
	parts := strings.Split(path, "/")
	for template := range i.paths {
		if slices.EqualFunc(strings.Split(template, "/"), parts, func(t, p string) bool {
			return t == p || strings.HasPrefix(t, "{") && p != ""
		}) {
			found = max(found, template)
		}
	}
	return found
}

// schema compiles the schema at a place below a path and its method.
func (i *Interface) schema(template, method string, place ...string) *jsonschema.Schema {
	pointer := "#/paths"
	for _, part := range append([]string{template, strings.ToLower(method)}, place...) {
		pointer += "/" + url.PathEscape(strings.NewReplacer("~", "~0", "/", "~1").Replace(part))
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.compiler.MustCompile(i.name + pointer)
}

// validAs validates the text of a parameter. It may stand for a number or a truth value.
func validAs(s *jsonschema.Schema, text string) error {
	err := s.Validate(text)
	if err == nil {
		return nil
	}
	if value, bad := jsonschema.UnmarshalJSON(strings.NewReader(text)); bad == nil && s.Validate(value) == nil {
		return nil
	}
	if s.Validate([]any{text}) == nil { // a list is given by several parameters
		return nil
	}
	return err
}
