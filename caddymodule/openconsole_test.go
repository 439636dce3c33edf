// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"bytes"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/caddymodule/doctor"
	"github.com/aip-gateway/aip-gateway/internal/devpki"
)

// TestOpenConsoles holds of which consoles an operator is warned: those that may change something on a site that
// does not authenticate its clients. What stands in a configuration, and the handlers that are made of it, say the
// same.
func TestOpenConsoles(t *testing.T) {
	pki := makePKI(t, devpki.Options{})
	const console = "aip_console {\nallow cancel\n}\n"
	hash := "$2a$14$Zkx19XLiW6VYouLHR5NmfOFU0z2GTNmpkT/5qqR7hx4IjWJPDhjvG"
	basic := func(matcher string) string { return "basic_auth " + matcher + " {\nann " + hash + "\n}\n" }
	const forward = "forward_auth 127.0.0.1:1 {\nuri /check\n}\n"
	tls := func(auth string) string {
		return "tls " + pki.Server.Cert + " " + pki.Server.Key + " {\n" + auth + "\n}\n"
	}
	trust := "trust_pool file " + pki.CA.Cert
	required, given := tls("client_auth {\nmode require_and_verify\n"+trust+"\n}"),
		tls("client_auth {\nmode verify_if_given\n"+trust+"\n}")
	for name, c := range map[string]struct {
		sites string // PLAIN and PORT stand for addresses
		want  int
	}{
		"nothing":                      {"http://PLAIN {\n" + console + "}\n", 1},
		"it only reads":                {"http://PLAIN {\naip_console\n}\n", 0},
		"basic_auth":                   {"http://PLAIN {\n" + basic("") + console + "}\n", 0},
		"basic_auth of the console":    {"http://PLAIN {\n" + basic("/aip/*") + console + "}\n", 0},
		"basic_auth of other paths":    {"http://PLAIN {\n" + basic("/other/*") + console + "}\n", 1},
		"basic_auth of the page alone": {"http://PLAIN {\n" + basic("/aip/console/*") + console + "}\n", 1},
		"basic_auth of another handle": {"http://PLAIN {\nhandle /x/* {\n" + basic("") + "}\nhandle {\n" +
			console + "}\n}\n", 1},
		"basic_auth in the handle":       {"http://PLAIN {\nhandle /aip/* {\n" + basic("") + console + "}\n}\n", 0},
		"basic_auth behind it":           {"http://PLAIN {\nroute {\n" + console + basic("") + "}\n}\n", 1},
		"forward_auth":                   {"http://PLAIN {\n" + forward + console + "}\n", 0},
		"a proxy of other paths":         {"http://PLAIN {\nreverse_proxy /x/* 127.0.0.1:1\n" + console + "}\n", 1},
		"below a path":                   {"http://PLAIN {\nhandle_path /ops/* {\n" + console + "}\n}\n", 1},
		"certificates":                   {"https://localhost:PORT {\n" + required + console + "}\n", 0},
		"TLS alone":                      {"https://localhost:PORT {\n" + tls("") + console + "}\n", 1},
		"certificates, if there are any": {"https://localhost:PORT {\n" + given + console + "}\n", 1},
		"certificates of another site": {"https://localhost:PORT {\n" + tls("") + console + "}\n" +
			"https://a.localhost:PORT {\n" + required + "respond 404\n}\n", 1},
		"certificates of its site alone": {"https://localhost:PORT {\n" + tls("") + "respond 404\n}\n" +
			"https://*.localhost:PORT {\n" + required + console + "}\n", 0},
		"two consoles": {"http://PLAIN {\nhandle /a/* {\n" + console + "}\nhandle {\n" + console + "}\n}\n", 2},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			_, port, _ := strings.Cut(s.addr, ":")
			config, out := s.loadLogged("auto_https off\n", strings.NewReplacer("PLAIN", s.addr, "PORT", port).Replace(c.sites))
			found := 0
			for _, server := range gjson.Get(config, "apps.http.servers").Map() {
				open, err := doctor.OpenConsoles([]byte(server.Raw))
				if err != nil {
					t.Fatal(err)
				}
				found += len(open)
			}
			if found != c.want {
				t.Errorf("the configuration has %d open consoles, want %d", found, c.want)
			}
			if got := bytes.Count(out, []byte("the console may change tasks")); got != c.want {
				t.Errorf("there are %d warnings, want %d:\n%s", got, c.want, out)
			}
		})
	}
}

// TestSharedTasks holds that an operator is warned of a mount with identity off that has the tasks of another mount.
func TestSharedTasks(t *testing.T) {
	off := func(path, more string) string {
		return "aip_gateway " + path + "* http://127.0.0.1:1 {\nbase_path " + path + "\nidentity off\n" + more + "\n}\n"
	}
	const proven = "aip_gateway /b* http://127.0.0.1:1 {\nbase_path /b\nidentity optional\n}\n"
	for name, c := range map[string]struct {
		mounts string
		want   int
	}{
		"alone":              {off("/a", ""), 0},
		"beside another":     {off("/a", "") + proven, 1},
		"two beside it":      {off("/a", "") + off("/c", "") + proven, 2},
		"both are off":       {off("/a", "") + off("/c", ""), 0},
		"of another Partner": {off("/a", "aic 10001000011K912345E789ABCDEF2353") + proven, 0},
	} {
		s := newSite(t)
		_, out := s.loadLogged("", "http://"+s.addr+" {\n"+c.mounts+"respond 404\n}\n")
		if got := bytes.Count(out, []byte("has the same tasks")); got != c.want {
			t.Errorf("%s: there are %d warnings, want %d:\n%s", name, got, c.want, out)
		}
	}
}
