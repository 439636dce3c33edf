// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// partnersOf returns the Partners of a configuration with one server.
func partnersOf(t *testing.T, server string) []mounted {
	t.Helper()
	c := new(configuration)
	if err := json.Unmarshal([]byte(`{"apps":{"http":{"servers":{"one":`+server+`}}}}`), c); err != nil {
		t.Fatal(err)
	}
	return c.partners()
}

// oneOf returns the only Partner of a configuration with one server.
func oneOf(t *testing.T, server string) *mounted {
	t.Helper()
	all := partnersOf(t, server)
	if len(all) != 1 {
		t.Fatalf("%s has %d Partners", server, len(all))
	}
	return &all[0]
}

// gatewayAt returns a handler aip_gateway with some settings.
func gatewayAt(settings string) string {
	return `{"handler":"aip_gateway","name":"p",` + settings + `}`
}

// routeFor returns a route with matchers, which may be empty, and handlers.
func routeFor(match, handle string) string {
	if match == "" {
		return `{"handle":[` + handle + `]}`
	}
	return `{"match":[` + match + `],"handle":[` + handle + `]}`
}

// handlePath returns the routes of a directive handle_path.
func handlePath(path, handle string) string {
	return routeFor(`{"path":["`+path+`/*"]}`, `{"handler":"subroute","routes":[`+
		routeFor("", `{"handler":"rewrite","strip_path_prefix":"`+path+`"}`)+`,`+routeFor("", handle)+`]}`)
}

// texts returns what findings say, each with its status.
func texts(all []Finding) (said []string) {
	for _, f := range all {
		said = append(said, f.Check+" "+string(f.Status)+" "+f.Subject+": "+f.Text)
	}
	return said
}

// only returns the list of one text, or of none.
func only(text string) []string {
	if text == "" {
		return nil
	}
	return []string{text}
}

// TestBasePaths: a Partner whose route takes no path that it serves is found, and what mends that is said. Where it is
// not certain, nothing is said.
func TestBasePaths(t *testing.T) {
	unreached := func(base, takes, mend string) string {
		return `base_path error p: no call reaches the Partner, because its base_path is "` + base +
			`" and its route takes only ` + takes + `; ` + mend
	}
	at := func(base string) string { return gatewayAt(`"base_path":"` + base + `"`) }
	path := func(patterns, handle string) string { return routeFor(`{"path":[`+patterns+`]}`, handle) }
	for routes, want := range map[string]string{
		routeFor("", at("")):               "",
		path(`"/a/*"`, at("/a")):           "",
		path(`"/a*"`, at("/a/")):           "",
		path(`"/b/*","/A/*"`, at("/a")):    "",
		path(`"/a/rpc"`, at("/a")):         "",
		path(`"/a"`, at("/a")):             "",
		path(`"*/a"`, at("/b")):            "",
		path(`"/{env.PLACE}/*"`, at("/b")): "",
		path(`"/a/*"`, at("")):             unreached("", "/a/*", `set base_path to "/a"`),
		path(`"/a/*","/b/*"`, at("/c")):    unreached("/c", "/a/* /b/*", `set base_path to "/a"`),
		path(`"/a"`, at("/b/")):            unreached("/b", "/a", `set base_path to "/a"`),
		path(`"/*/a/b"`, at("/c")):         "",
		path(`"/a/tasks"`, at("/a")):       unreached("/a", "/a/tasks", `set base_path to "/a/tasks"`),
		path(`"/a/v1/*"`, gatewayAt(`"base_path":"/a","callers":["a2a/1.0"]`)): "",
		path(`"/a/v1/*"`, gatewayAt(`"base_path":"/a","callers":["aip/2"]`)): unreached("/a", "/a/v1/*",
			`set base_path to "/a/v1"`),
		// A route without a path takes all of them, also beside one with a path.
		routeFor(`{"path":["/a/*"]},{"host":["a.example"]}`, at("/b")): "",
		// handle_path removes the path.
		handlePath("/a", at("")): "",
		handlePath("/a", at("/a")): "base_path warning p: handle_path removes /a from the path, so that the Partner is at " +
			"/a/a; remove base_path, or use handle",
		handlePath("/a", `{"handler":"subroute","routes":[`+path(`"/b/*"`, at("/c"))+`]}`): unreached("/c", "/b/*",
			`set base_path to "/b"`),
	} {
		found := oneOf(t, `{"routes":[`+routes+`]}`).examineBasePath()
		if diff := cmp.Diff(only(want), texts(found)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", routes, diff)
		}
	}
	invoked := oneOf(t, `{"named_routes":{"a":`+path(`"/a/*"`, at("/b"))+`}}`)
	if found := invoked.examineBasePath(); found != nil {
		t.Errorf("of a Partner in a named route is said %+v", found)
	}
}

// TestTimeouts: Caddy's own bound on answers cuts streams.
func TestTimeouts(t *testing.T) {
	const routes = `"routes":[{"handle":[{"handler":"aip_gateway","name":"p"}]}]`
	for timeout, want := range map[string]string{
		"0": "", "-1": "",
		"90000000000": "timeouts warning p: Caddy cuts each stream of the site after 1m30s, and each answer that takes " +
			"longer; remove write from the timeouts of servers: write_timeout of aip_gateway bounds each write",
	} {
		found := oneOf(t, `{"write_timeout":`+timeout+`,`+routes+`}`).examineTimeouts()
		if diff := cmp.Diff(only(want), texts(found)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", timeout, diff)
		}
	}
}

// TestAddresses: callers name no server for an IP address, so that Caddy refuses them, or asks for no certificate.
func TestAddresses(t *testing.T) {
	const asked = `"client_authentication":{"mode":"require_and_verify"}`
	site := func(host, policies, more string) string {
		return `{"tls_connection_policies":[` + policies + `]` + more + `,"routes":[` +
			routeFor(`{"host":["`+host+`"]}`, gatewayAt(`"aic":"a"`)) + `]}`
	}
	named := func(name string) string { return `{"match":{"sni":["` + name + `"]},` + asked + `}` }
	const loose = `,"strict_sni_host":false`
	const advice = "give the site a host name, since callers send no name of the server for an IP address; or write " +
		"default_sni 192.0.2.1 and servers { strict_sni_host insecure_off } as global options, if all sites of this port " +
		"have the same client_auth"
	for server, want := range map[string]string{
		site("a.example", named("a.example"), ""): "",
		site("192.0.2.1", `{}`, ""):               "",
		site("192.0.2.1", named("192.0.2.1"), ""): "client_auth error p: the name of the site is the IP address " +
			"192.0.2.1, so that Caddy answers every request with 421; " + advice,
		site("192.0.2.1", `{`+asked+`}`, loose): "",
		site("192.0.2.1", named("192.0.2.1"), loose): "client_auth error p: the name of the site is the IP address " +
			"192.0.2.1, for which callers send no name of the server, so that they are asked for no certificate; " + advice,
		site("192.0.2.1", named("b.example")+`,{}`, loose): "",
	} {
		if diff := cmp.Diff(only(want), texts(oneOf(t, server).examineAddress())); diff != "" {
			t.Errorf("%s (-want +got):\n%s", server, diff)
		}
	}
}

// TestPublic: a Partner that is not at the path with its AIC in its public URL is found.
func TestPublic(t *testing.T) {
	const begin = "base_path warning p: public_url has {AIC} in its path, but the Partner is at "
	const why = ": no call there reaches it, unless a proxy before the site removes the AIC; leave {AIC} out"
	of := func(public, aic, base string) string {
		return gatewayAt(`"public_url":"` + public + `","aic":"` + aic + `","base_path":"` + base + `"`)
	}
	const url = "https://a.example/agents/{AIC}"
	for routes, want := range map[string]string{
		routeFor("", of("https://a.example/agents", "1.2", "/b")):     "",
		routeFor("", of("https://{AIC}.example/agents", "1.2", "/b")): "",
		routeFor("", of(url+"/", "A.2", "/agents/a.2/")):              "",
		handlePath("/agents/1.2", of(url, "1.2", "")):                 "",
		handlePath("/agents", of(url, "1.2", "/1.2")):                 "",
		handlePath("/agents", of(url, "1.2", "/1.3")):                 begin + `"/agents/1.3/"` + why,
		routeFor("", of(url, "1.2", "")): begin + `"/"` + why +
			`, or set base_path to "/agents/1.2"`,
		routeFor("", of(url, "registered", "/b")): begin + `"/b/"` + why + ", or mount it there once the registry has " +
			"assigned the AIC",
		routeFor("", of("https://a.example/%/{AIC}", "1.2", "")): "",
	} {
		if diff := cmp.Diff(only(want), texts(oneOf(t, `{"routes":[`+routes+`]}`).examinePublic())); diff != "" {
			t.Errorf("%s (-want +got):\n%s", routes, diff)
		}
	}
}

// TestPartners: the Partners of a configuration, each with what the routes around it say.
func TestPartners(t *testing.T) {
	partner := func(name string) string { return `{"handler":"aip_gateway","aic":"` + name + `"}` }
	strip := `{"handler":"rewrite","strip_path_prefix":"/c/"}`
	all := partnersOf(t, `{"listen":[":443"],"logs":{"should_log_credentials":true},"named_routes":{"n":`+
		routeFor("", partner("named"))+`},"routes":[`+
		routeFor(`{"host":["a.example"]}`, `{"handler":"subroute","routes":[`+
			routeFor(`{"host":["b.example"]}`, partner("inner"))+`]}`)+`,`+
		routeFor(`{"path":["/d"]}`, strip)+`,`+
		routeFor("", partner("before")+","+strip+","+partner("after"))+`,`+
		routeFor("", `7,{"handler":"other","routes":[`+routeFor("", partner("hidden"))+`]},`+partner("last"))+`]}`)
	type place struct {
		Name, Stripped string
		Hosts          []string
		Invoked        bool
	}
	var got []place
	for i := range all {
		p := &all[i]
		got = append(got, place{p.settings.name(), p.stripped, p.names(), p.invoked})
		if !p.LogsAccess || !p.LogsCredentials || !p.strict || len(p.Served) != 1 {
			t.Errorf("%s: what its server says is %+v", p.settings.name(), p.Partner)
		}
	}
	want := []place{{"inner", "", []string{"a.example", "b.example"}, false}, {"before", "", []string{""}, false},
		{"after", "/c", []string{""}, false}, {"last", "/c", []string{""}, false}, {"named", "", []string{""}, true}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
