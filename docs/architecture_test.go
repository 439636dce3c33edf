// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	_ "github.com/caddyserver/caddy/v2/modules/standard"

	"github.com/aip-gateway/aip-gateway/internal/checkout"
)

// TestDocsArchitecture keeps docs/architecture.md from forgetting a room, and from growing into the comments of rooms.
func TestDocsArchitecture(t *testing.T) {
	text := pages(t)["docs/architecture.md"]
	for _, file := range checkout.Files(t) {
		if room, _, in := strings.Cut(file, "/"); in && !strings.HasPrefix(room, ".") &&
			!strings.Contains(text, "`"+room+"/`") {
			t.Errorf("docs/architecture.md does not mention %s/", room)
		}
	}
	if n := len(strings.Fields(text)); n > 3500 {
		t.Errorf("docs/architecture.md has %d words, want at most 3500: what one room needs stands in its doc.go", n)
	}
	for _, m := range regexp.MustCompile("`([a-z0-9/]+/doc\\.go)`").FindAllStringSubmatch(text, -1) {
		if _, err := os.Stat(m[1]); err != nil {
			t.Errorf("docs/architecture.md names %s: %v", m[1], err)
		}
	}
}

// TestDocsDependencies keeps docs/dependencies.md from forgetting a module.
func TestDocsDependencies(t *testing.T) {
	text := pages(t)["docs/dependencies.md"]
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	direct, indirect := regexp.MustCompile(`^\t(\S+) v\S+$`), regexp.MustCompile(`^\t(\S+)$`)
	found := 0
	for line := range strings.Lines(string(mod)) {
		m := direct.FindStringSubmatch(strings.TrimRight(line, "\n"))
		if m == nil {
			if m = indirect.FindStringSubmatch(strings.TrimRight(line, "\n")); m == nil {
				continue // a tool has no version, what is indirect has a remark
			}
		}
		found++
		// The table leaves the host out where all know it, and the package where the module says enough.
		name := regexp.MustCompile(`(/cmd/.*|/trace)$`).ReplaceAllString(strings.TrimPrefix(m[1], "github.com/"), "")
		if !strings.Contains(text, "`"+name+"`") {
			t.Errorf("docs/dependencies.md does not say why there is %s", m[1])
		}
	}
	if found < 15 {
		t.Errorf("only %d dependencies were found", found)
	}
}

// TestDocsRooms: the files, the tests and the names of other rooms that the comments of packages have are there, and so
// are the files and tests that these pages name.
func TestDocsRooms(t *testing.T) {
	var tests strings.Builder
	texts, sources := make(map[string]string), make(map[string]string) // the source of each package, by its name
	for _, name := range checkout.Files(t, "*.go", "docs/*.md", ":!:interop") {
		switch base := filepath.Base(name); {
		case strings.HasSuffix(base, "_test.go"):
			tests.WriteString(read(t, name))
		case base == "doc.go", strings.HasSuffix(base, ".md"):
			texts[name] = read(t, name)
		default:
			sources[filepath.Base(filepath.Dir(name))] += read(t, name)
		}
	}
	modules := read(t, "go.mod")
	file := regexp.MustCompile(`\b[a-z0-9]+(/[a-z0-9_]+)*/[a-z0-9_]+\.go\b`)
	test := regexp.MustCompile(`\b(Test|Fuzz)[A-Z]\w+`)
	exported := regexp.MustCompile(`\b([a-z]\w*)\.([A-Z]\w+)(?:\.([A-Za-z]\w+))?`)
	found := 0
	for name, text := range texts {
		for _, named := range file.FindAllString(text, -1) {
			found++
			if _, err := os.Stat(named); err != nil && !strings.Contains(modules, "-"+named) { // nats-io/nats.go is one
				t.Errorf("%s names %s: %v", name, named, err)
			}
		}
		for _, named := range test.FindAllString(text, -1) {
			found++
			if !strings.Contains(tests.String(), "func "+named+"(") {
				t.Errorf("%s names %s, which is no test", name, named)
			}
		}
		if !strings.HasSuffix(name, "doc.go") {
			continue
		}
		for _, m := range exported.FindAllStringSubmatch(text, -1) {
			source := sources[m[1]]
			if source == "" || test.MatchString(m[2]) {
				continue
			}
			found++
			is := regexp.MustCompile(`(?m)^((func|type|var|const) |\t)(\(.*\) )?` + m[2] + `\b`)
			has := regexp.MustCompile(`(?m)(\(\w* ?\*?` + m[2] + `(\[\w+\])?\) |^\t(\w+, )*)` + m[3] + `\b`)
			if !is.MatchString(source) || m[3] != "" && !has.MatchString(source) {
				t.Errorf("%s names %s, which there is not", name, m[0])
			}
		}
	}
	if found < 50 {
		t.Errorf("only %d names were found", found)
	}
}

// TestDocsWalks holds the walks of docs/architecture.md to the code: each line begins with a room, and names functions
// that some room has; "Type.method", or "function()" of the room itself.
func TestDocsWalks(t *testing.T) {
	_, text, _ := strings.Cut(pages(t)["docs/architecture.md"], "## Five walks\n")
	text, _, _ = strings.Cut(text, "\n## ")
	blocks := regexp.MustCompile("(?s)```\n(.*?)```").FindAllStringSubmatch(text, -1)
	if len(blocks) != 5 {
		t.Fatalf("there are %d walks", len(blocks))
	}
	line := regexp.MustCompile(`^ *(\S+) {2,}(.*)$`)
	method, function := regexp.MustCompile(`\b([A-Za-z]\w*)\.(\w+)\b`), regexp.MustCompile(`\b([A-Za-z]\w*)\(\)`)
	for _, block := range blocks {
		passed := make(map[string]bool)
		for _, l := range strings.Split(strings.TrimSpace(block[1]), "\n") {
			m := line.FindStringSubmatch(l)
			if m == nil {
				t.Errorf("a line of a walk is %q", l)
				continue
			}
			room := m[1]
			source := sourceOf(t, room)
			if passed[room] || source == "" {
				t.Errorf("a walk passes %s twice, or there is no such room", room)
			}
			passed[room] = true
			for _, f := range function.FindAllStringSubmatch(m[2], -1) {
				if !regexp.MustCompile(`(?m)^func ` + f[1] + `\b`).MatchString(source) {
					t.Errorf("%s has no function %s", room, f[1])
				}
			}
			for _, f := range method.FindAllStringSubmatch(m[2], -1) {
				if !regexp.MustCompile(`(?m)^func \(\w* ?\*?`+f[1]+`(\[\w+\])?\) `+f[2]+`\b`).MatchString(source) &&
					!regexp.MustCompile(`(?ms)^type `+f[1]+` interface \{.*?^\t`+f[2]+`\(`).MatchString(source) {
					t.Errorf("%s has no %s.%s", room, f[1], f[2])
				}
			}
		}
	}
}

// sourceOf returns the code of a room.
func sourceOf(t *testing.T, room string) string {
	t.Helper()
	names, err := filepath.Glob(room + "/*.go")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, name := range names {
		if !strings.HasSuffix(name, "_test.go") {
			all.WriteString(read(t, name))
		}
	}
	return all.String()
}
