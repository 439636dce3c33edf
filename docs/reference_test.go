// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/google/go-cmp/cmp"
)

// The pages below docs/configuration are made of the source: the effects, limits and defaults of settings are the
// comments of their fields, the syntax is that in the comments of the parser, and which members of the JSON an option
// sets is seen by reading it. To write them anew: go test ./docs -run Reference -update

// referencePage is a page about modules of Caddy.
type referencePage struct {
	name, title string
	modules     []referenceModule
}

// referenceModule is a module with the words by which a Caddyfile has it.
type referenceModule struct{ directive, id string }

var referencePages = []referencePage{
	{"app", "The global option aip", []referenceModule{{"aip", "aip"}}},
	{"stores", "Stores", []referenceModule{{"store", "aip.stores.pebble"}, {"store pebble", "aip.stores.pebble"},
		{"store memory", "aip.stores.memory"}, {"store jetstream", "aip.stores.jetstream"}}},
	{"gateway", "The directive aip_gateway", []referenceModule{{"aip_gateway", "http.handlers.aip_gateway"}}},
	{"directives", "Smaller directives", []referenceModule{
		{"aip_identify", "http.handlers.aip_identify"}, {"aip_method", "http.matchers.aip_method"},
		{"aip_aun", "http.handlers.aip_aun"}, {"aip_callback", "http.handlers.aip_callback"},
		{"aip_jwks", "http.handlers.aip_jwks"}, {"aip_health", "http.handlers.aip_health"},
		{"aip_discovery", "http.handlers.aip_discovery"},
		{"aip_console", "http.handlers.aip_console"}, {"aip_challenge", "http.handlers.aip_challenge"},
		{"aip_sample_agent", "http.handlers.aip_sample_agent"}, {"get_certificate aip", "tls.get_certificate.aip"},
		{"trust_pool aip_file", "tls.ca_pool.source.aip_file"},
		{"verifier aip_revocation", "tls.client_auth.verifier.aip_revocation"},
	}},
}

// reference makes the pages.
type reference struct {
	t         *testing.T
	syntax    map[string]*option
	comments  commentsOfTypes
	described map[string]string // where fields are, by their names in the source: page#heading

	page     string // that is made
	heading  string
	prefix   string // before the members of the module's JSON
	id       string // of the module
	settings []setting
	out      strings.Builder
	shown    int // settings
}

func newReference(t *testing.T) *reference {
	t.Setenv("AMP_LOG_DIR", t.TempDir())
	return &reference{t: t, syntax: syntax(t), comments: make(commentsOfTypes), described: make(map[string]string)}
}

// TestReference compares the pages with the source, or writes them.
func TestReference(t *testing.T) {
	r := newReference(t)
	left := make(map[string]bool) // fields that no option sets
	for _, p := range referencePages {
		r.make(p)
		for _, m := range p.modules {
			for _, s := range r.settingsOf(m.id) {
				if !s.inner {
					left[s.field] = true
				}
			}
		}
		generated(t, "docs/configuration/"+p.name+".md", strings.TrimRight(r.out.String(), "\n")+"\n")
	}
	for field := range left {
		if r.described[field] == "" {
			t.Errorf("no option of a Caddyfile sets %s", field)
		}
	}
	t.Logf("%d settings", r.shown)
}

// generated compares a page with what the source makes of it, or writes it.
func generated(t *testing.T, file, text string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(page), text); diff != "" {
		t.Errorf("%s is not what the source says (-page +source); run go test ./docs -run %s -update:\n%s", file,
			t.Name(), diff)
	}
}

func (r *reference) settingsOf(id string) []setting {
	info, err := caddy.GetModule(id)
	if err != nil {
		r.t.Fatal(err)
	}
	return r.comments.settings(r.t, reflect.TypeOf(info.New()).Elem())
}

// make writes a page.
func (r *reference) make(p referencePage) {
	r.page = p.name + ".md"
	r.out.Reset()
	fmt.Fprintf(&r.out, "# %s\n\n", p.title)
	for _, m := range p.modules {
		info, err := caddy.GetModule(m.id)
		if err != nil {
			r.t.Fatal(err)
		}
		typ := reflect.TypeOf(info.New()).Elem()
		o := r.syntax[m.directive]
		if o == nil {
			r.t.Fatalf("no comment has the syntax of %s", m.directive)
		}
		r.id, r.settings, r.heading = m.id, r.settingsOf(m.id), m.directive
		if r.prefix = ""; p.name == "stores" {
			r.prefix = "store."
		}
		level := 1
		if len(p.modules) > 1 {
			level = 2
			fmt.Fprintf(&r.out, "## %s\n\n", m.directive)
		}
		comment := r.comments.of(r.t, typ)
		it := item{form: o.shape(), paths: r.own(o)}
		switch m.directive {
		case "store": // what all drivers have
			limits, _ := typ.FieldByName("Limits")
			comment, _, _ = strings.Cut(r.comments.of(r.t, limits.Type), "\n\n")
			it.paths = nil
		case "aip_gateway": // its block says the same
			it.paths = nil
		}
		if line := r.line(it); line != "`"+m.directive+"`" {
			r.out.WriteString(line + "\n\n")
		}
		_, text, _ := strings.Cut(strings.TrimSpace(comment), " ") // the name of the type
		r.write(strings.ToUpper(text[:1])+text[1:], level)
		r.block(o, level, "")
	}
}

// own returns the members that an option sets, and no option in its block.
func (r *reference) own(o *option) []string {
	paths := setBy(r.t, o, r.id, r.settings)
	for _, inner := range o.block {
		if inner.opens {
			continue
		}
		set := setBy(r.t, inner, r.id, r.settings)
		paths = slices.DeleteFunc(paths, func(path string) bool { return slices.Contains(set, path) })
	}
	return paths
}

// usual returns the member of the JSON with the path of an option.
func (o *option) usual() string {
	if o.parent == nil {
		return ""
	}
	_, path, _ := strings.Cut(o.path(), " ")
	if o.root() == "store jetstream" || o.root() == "store pebble" {
		_, path, _ = strings.Cut(path, " ")
	}
	if strings.HasPrefix(o.path(), "store") {
		path = "store." + path
	}
	return strings.ReplaceAll(path, " ", ".")
}

// root returns the name of the directive of an option.
func (o *option) root() string {
	for o.parent != nil {
		o = o.parent
	}
	return o.name()
}

// item is an option in a list.
type item struct {
	form  string
	paths []string // of the members of the JSON that it sets
	about string   // a member with its own settings, about which the item says something, too
	usual string   // the member with the path of the option, which is not named
}

// block writes the options of a block: those without a block of their own as a list, then the others.
func (r *reference) block(o *option, level int, about string) {
	var items []item
	var sections []*option
	for _, inner := range o.block {
		switch {
		case inner.opens && !inner.small():
			sections = append(sections, inner)
		default:
			items = append(items, r.itemsOf(inner, about)...)
		}
	}
	r.items(items)
	heading := r.heading
	for _, inner := range sections {
		r.section(inner, level+1, about)
		r.heading = heading
	}
}

// small reports whether an option with a block is described in the list around it.
func (o *option) small() bool {
	return len(o.block) <= 2 && !slices.ContainsFunc(o.block, func(o *option) bool { return o.opens })
}

// itemsOf returns the items of an option, whose block is small, if it has one.
func (r *reference) itemsOf(o *option, outer string) (items []item) {
	paths := r.own(o)
	about := r.about(o)
	if about == outer || len(o.block) == 0 && len(paths) < 2 {
		about = ""
	}
	if strings.HasPrefix(o.form, "<") { // the conditions of a quota
		for _, s := range r.settings {
			if s.inner && len(paths) == 1 && strings.HasPrefix(paths[0], s.path+".") {
				about = s.path
			}
		}
		return []item{{form: o.form, about: about}}
	}
	if len(o.block) == 0 || strings.ContainsAny(o.form, "<[") {
		items = append(items, item{form: o.form, paths: paths, about: about, usual: o.usual()})
	}
	for _, inner := range o.block {
		items = append(items, item{form: o.name() + " { " + inner.form + " }", paths: r.own(inner), usual: inner.usual()})
	}
	return items
}

// about returns the member of the JSON whose settings an option and its block set; "" for several.
func (r *reference) about(o *option) string {
	var paths []string
	for _, inner := range o.options() {
		paths = append(paths, setBy(r.t, inner, r.id, r.settings)...)
	}
	best := ""
	for _, s := range r.settings {
		outside := func(path string) bool { return !strings.HasPrefix(path, s.path+".") }
		if s.inner && len(paths) > 0 && !slices.ContainsFunc(paths, outside) {
			best = s.path
		}
	}
	return best
}

func (r *reference) setting(path string) setting {
	i := slices.IndexFunc(r.settings, func(s setting) bool { return s.path == path })
	return r.settings[i]
}

// items writes a list of options. Those that are described in another list have one line.
func (r *reference) items(items []item) {
	var lines, forms []string
	elsewhere := "" // of forms
	for _, it := range items {
		line := r.line(it)
		form, at, ok := strings.Cut(line, ": As in ")
		if !ok {
			lines, elsewhere = append(lines, line), ""
			continue
		}
		if at == elsewhere {
			forms = append(forms, form)
			lines = lines[:len(lines)-1]
		} else {
			forms, elsewhere = []string{form}, at
		}
		lines = append(lines, strings.Join(forms, ", ")+": As in "+at)
	}
	for _, line := range lines {
		r.out.WriteString("- " + line + "\n")
	}
	if len(lines) > 0 {
		r.out.WriteString("\n")
	}
}

// line describes an option. What is described before is not described again.
func (r *reference) line(it item) string {
	var texts, names []string
	elsewhere := ""
	describe := func(path string) {
		s := r.setting(path)
		at, ok := r.described[s.field]
		switch {
		case !ok:
			r.described[s.field] = r.page + "#" + r.heading
			texts = append(texts, s.comment)
		case !s.inner:
			elsewhere = at
		}
	}
	if it.about != "" {
		describe(it.about)
	}
	for _, path := range it.paths {
		names = append(names, "`"+r.prefix+path+"`")
		describe(path)
		r.shown++
	}
	if it.about != "" && len(names) == 0 {
		names = append(names, "`"+r.prefix+it.about+"`")
	}
	if it.form == it.usual+" { … }" && it.about != "" { // the heading says it
		return prose(r.t, "docs/configuration", strings.Join(texts, " "))
	}
	text := "`" + it.form + "`"
	if len(names) > 1 || len(names) == 1 && names[0] != "`"+it.usual+"`" {
		text += " (" + strings.Join(names, ", ") + ")"
	}
	if len(texts) == 0 && elsewhere != "" {
		return text + ": As in " + r.link(elsewhere) + "."
	}
	if len(texts) > 0 {
		text += ": " + withWords(prose(r.t, "docs/configuration", strings.Join(texts, " ")), it.form)
	}
	return text
}

// link returns a link to a heading of a page.
func (r *reference) link(to string) string {
	page, heading, _ := strings.Cut(to, "#")
	anchor := headings("# " + heading)[0]
	if page == r.page {
		page = ""
	}
	return fmt.Sprintf("[%s](%s#%s)", heading, page, anchor)
}

// section writes an option with a block.
func (r *reference) section(o *option, level int, outer string) {
	it := item{form: o.shape(), paths: r.own(o), about: r.about(o), usual: o.usual()}
	if it.about == outer {
		it.about = ""
	}
	if at := r.allDescribed(o); at != "" {
		fmt.Fprintf(&r.out, "- %s Its options are those in %s.\n\n", r.line(it), r.link(at))
		return
	}
	r.heading = strings.TrimSpace(r.heading + " " + o.name())
	if o.parent.parent == nil && level == 2 {
		r.heading = o.name()
	}
	fmt.Fprintf(&r.out, "%s %s\n\n%s\n\n", strings.Repeat("#", level), r.heading, r.line(it))
	below := ""
	if it.about != "" {
		_, more, _ := strings.Cut(r.comments.of(r.t, bare(r.setting(it.about).typ)), "\n\n")
		more, below, _ = strings.Cut(more, "# ")
		r.write(more, level)
	}
	r.block(o, level, r.about(o))
	if below != "" {
		r.write("# "+below, level)
	}
}

// allDescribed returns where the options of a block are described; "" if one of them is not.
func (r *reference) allDescribed(o *option) (at string) {
	for _, inner := range o.options()[1:] {
		for _, path := range setBy(r.t, inner, r.id, r.settings) {
			if at = r.described[r.setting(path).field]; at == "" {
				return ""
			}
		}
	}
	return at
}

// shape returns an option as the pages have it.
func (o *option) shape() string {
	if o.opens {
		return o.form + " { … }"
	}
	return o.form
}
