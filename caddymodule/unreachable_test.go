// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestWarnOfUnreachable loads sites in which no request gets to a handler of ours, and others.
func TestWarnOfUnreachable(t *testing.T) {
	const one, two = "aip_gateway http://127.0.0.1:1\n", "aip_gateway http://127.0.0.1:2\n"
	const at = "aip_gateway /one* http://127.0.0.1:1\n"
	for name, c := range map[string]struct {
		site string
		want []string // the handler, and the one before it
	}{
		"two at the root": {one + two, []string{"aip_gateway 127.0.0.1:2", "aip_gateway 127.0.0.1:1"}},
		"the same twice":  {one + one, []string{"aip_gateway 127.0.0.1:1", "aip_gateway 127.0.0.1:1"}},
		"two at a path": {at + "aip_gateway /one* http://127.0.0.1:2\n", []string{
			"aip_gateway one-2", "aip_gateway one"}},
		"two paths":         {at + "aip_gateway /two* http://127.0.0.1:2\n", nil},
		"one, and the rest": {at + two, nil},
		"two handles": {"handle {\n" + one + "}\nhandle {\n" + two + "}\n", []string{
			"aip_gateway 127.0.0.1:2", "aip_gateway 127.0.0.1:1"}},
		"handles of paths":   {"handle_path /a/* {\n" + one + "}\nhandle_path /b/* {\n" + two + "}\n", nil},
		"a handle in a path": {"handle_path /a/* {\n" + one + "}\nhandle {\n" + two + "}\n", nil},
		"a handle of the same path": {"handle /a/* {\n" + one + "}\nhandle /a/* {\n" + two + "}\n", []string{
			"aip_gateway 127.0.0.1:2", "aip_gateway 127.0.0.1:1"}},
		"methods":       {"@get method GET\nroute {\naip_gateway @get http://127.0.0.1:1\n" + two + "}\n", nil},
		"other callers": {one + "aip_gateway http://127.0.0.1:2 {\ncallers a2a\n}\n", nil},
		"fewer callers": {"aip_gateway http://127.0.0.1:1 {\ncallers aip aip/2 a2a\n}\n" + two, []string{
			"aip_gateway 127.0.0.1:2", "aip_gateway 127.0.0.1:1"}},
		"a console beside a Partner": {one + "aip_health\naip_console {\npublic\n}\n", nil},
		"two consoles": {one + "aip_console {\npublic\n}\naip_console {\nallow cancel\npublic\n}\n", []string{
			"aip_console", "aip_console"}},
		"two consoles, and health": {"bind 127.0.0.1\naip_health\naip_console\naip_console {\nallow cancel\n}\n" +
			"aip_health /h*\n", []string{"aip_console", "aip_console"}},
		"two of health, one public": {one + "aip_health\naip_health {\npublic\n}\n", nil},
		"two of health":             {one + "aip_health\naip_health\n", []string{"aip_health", "aip_health"}},
		"behind the sample agent": {"route {\naip_sample_agent\n" + one + "}\n", []string{
			"aip_gateway 127.0.0.1:1", "aip_sample_agent"}},
	} {
		s := newSite(t)
		_, out := s.loadLogged("", "http://"+s.addr+" {\n"+c.site+"}\n")
		var got []string
		said := regexp.MustCompile(`no request gets to a handler.*"handler":"(.*?)","before":"(.*?)"`)
		for _, m := range said.FindAllSubmatch(out, -1) {
			for _, part := range m[1:] {
				got = append(got, string(part))
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s\n%s", name, diff, out)
		}
	}
}
