// SPDX-License-Identifier: Apache-2.0

package acs

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// judged is a document accepted or refused by the registry of ACPs 2.1.
type judged struct {
	Name   string
	Status int
	Detail string
	ACS    json.RawMessage
}

func judgements(t testing.TB) (list []judged) {
	t.Helper()
	text, err := os.ReadFile("testdata/registry.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	return list
}

// Check agrees with the registry: it refuses the same documents, at the same place, and accepts the others. But it
// refuses documents accepted against the specification as well.
func TestCheckAsTheRegistry(t *testing.T) {
	// against are the mistakes not seen by the registry.
	against := map[string]string{
		"07-acs-certificate-bad-ip": "certificate.altNames.ip[0]: it is no IP address",
		"07-acs-transport-A2A":      `endPoints[0].transport: it is "A2A"`,
	}
	refused := map[string]string{
		"07-acs-aic-absent":     "aic: it is missing",
		"07-acs-no-security":    "endPoints[0].security: it names no scheme of type mutualTLS",
		"07-acs-unknown-member": "xExtra: a registry refuses members that it does not know",
	}
	for _, j := range judgements(t) {
		want := refused[j.Name]
		if (want != "") != (j.Status == 400) {
			t.Errorf("%s: the registry has answered %d: %s", j.Name, j.Status, j.Detail)
		}
		want += against[j.Name]
		mistakes := Check(j.ACS)
		switch {
		case want == "" && len(mistakes) > 0:
			t.Errorf("%s has mistakes: %v", j.Name, mistakes)
		case want != "" && (len(mistakes) != 1 || !strings.HasPrefix(mistakes[0].String(), want)):
			t.Errorf("%s: got %v, want %s", j.Name, mistakes, want)
		}
	}
}

// The example of the registry has texts in place of values at some places, and no other mistakes.
func TestCheckExample(t *testing.T) {
	example, err := os.ReadFile("testdata/example.json")
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, m := range Check(example) {
		paths = append(paths, m.Path)
	}
	want := []string{"endPoints[0].url", "endPoints[0].security"}
	if diff := cmp.Diff(want, paths); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCheckNamesEachMistake(t *testing.T) {
	o := fullOptions()
	o.AIC, o.CAChallengeBaseURL = aicV2, ""
	valid := string(made(fullCard(), o))
	o = fullOptions()
	validV1 := string(made(fullCard(), o))
	for _, tc := range []struct{ of, old, new, want string }{
		{valid, `{"aic"`, `["aic"`, "$: it is no JSON"},
		{valid, valid, `[]`, "$: it is no JSON object; write one JSON object"},
		{valid, valid, valid + `{}`, "$: more follows the first JSON value; write one JSON object"},
		{valid, `"` + aicV2 + `"`, `""`, "aic: it is empty; write a text"},
		{valid, `"` + aicV2 + `"`, `null`, "aic: it is null; write a text"},
		{valid, `"active":true`, `"active":1`, "active: it is a number; write true or false"},
		{valid, "+08:00", "", "lastModifiedTime: it is no time with an offset; write it as 2025-03-15T16:30:00+08:00"},
		{valid, `"02.01"`, `"2.1"`, `protocolVersion: it is "2.1"; write 01.00, 02.00, 02.01 or 02.02`},
		{valid, `"organization":"BUPT",`, ``, "provider.organization: it is missing; name who provides the agent: " +
			"a CA issues no certificate without it"},
		{valid, `"countryCode":"CN"`, `"countryCode":86`, "provider.countryCode: it is a number; write a text"},
		{valid, `"securitySchemes":{`, `"securitySchemes":{"x":{"type":"tls"},`, `securitySchemes.x.type: it is "tls"; ` +
			`write mutualTLS, openIdConnect, apiKey, http, oauth2`},
		{valid, `[{"mtls":[]}]`, `[{"other":[]},{"mtls":[]}]`, "endPoints[0].security[0].other: securitySchemes has no " +
			"such scheme; define it there, or remove it"},
		{valid, `"https://public.example/tours/rpc"`, `"http://public.example"`, "endPoints[0].url: the scheme http has " +
			"no TLS, without which there is no mutualTLS; write a URL that begins with https://"},
		{valid, `"JSONRPC"`, `"AMQP"`, "endPoints[0].url: the scheme https does not fit the transport AMQP; write a URL " +
			"that begins with amqps://"},
		{valid, `"https://public.example/tours/rpc"`, `"/"`, "endPoints[0].url: it is no URL; write it with its scheme " +
			"and host"},
		{valid, `"messageQueue":[]`, `"messageQueue":["rabbit"]`, `capabilities.messageQueue[0]: it is "rabbit"; write a ` +
			`protocol and its versions, such as rabbitmq:>=3.9`},
		{validV1, `"messageQueue":[]`, `"messageQueue":["rabbitmq:4.0"]`, `capabilities.messageQueue[0]: it is ` +
			`"rabbitmq:4.0"; write one that ACS 01.00 lists, such as rabbitmq:3.11`},
		{valid, `"tags":["tour"]`, `"tags":"tour"`, "skills[0].tags: it is a text; write a list"},
		{valid, `"id":"tour.book"`, `"id":" "`, "skills[1].id: it is empty; write a text"},
		{valid, `"public.example"]`, `"public_example"]`, `certificate.altNames.dns[0]: it is "public_example"; write the ` +
			`name of a host`},
		{valid, `:90}`, `:1826}`, "certificate.requestedValidity: it is no number of days; write 1 to 1825"},
		{valid, `:90}`, `:1.5}`, "certificate.requestedValidity: it is no number of days; write 1 to 1825"},
		{validV1, `"skills"`, `"certificate":{},"skills"`, "certificate: a registry refuses members that it does not know; " +
			"remove it"},
		{validV1, aicV1, aicV2, "protocolVersion: the AIC is not of this version of ACPs; write 02.01, or use " +
			"the AIC that was assigned for 01.00"},
		{validV1, `,"license":"ICP 1"`, ``, "provider.license: it is missing; write the licence of who provides the agent"},
	} {
		body := strings.Replace(tc.of, tc.old, tc.new, 1)
		if body == tc.of {
			t.Errorf("there is no %s in %s", tc.old, body)
			continue
		}
		mistakes := Check([]byte(body))
		if len(mistakes) != 1 || !strings.HasPrefix(mistakes[0].String(), tc.want) {
			t.Errorf("%s in place of %s: got %q, want %q", tc.new, tc.old, mistakes, tc.want)
		}
	}
	if got := Check(bytes.Repeat([]byte(" "), MaxSize+1)); len(got) != 1 || !strings.Contains(got[0].Text, "more than") {
		t.Errorf("a document that is too large: %v", got)
	}
}

func TestDiff(t *testing.T) {
	o := fullOptions()
	o.AIC, o.CAChallengeBaseURL, o.Base = aicV2, "", "https://public.example/"+Placeholder
	served := string(made(fullCard(), o))
	for _, tc := range []struct {
		old, new string
		want     []string
	}{
		{`"active":true`, `"active":false`, nil},
		{`"2025-03-15T16:30:00+08:00"`, `"2026-01-01T00:00:00.123456+08:00"`, nil},
		{`"iconUrl"`, `"webAppUrl":null,"iconUrl"`, nil},
		{aicV2, strings.ToLower(aicV2), nil},
		{`"aic":"` + aicV2 + `"`, `"aic":null`, nil},
		{`"aic":"` + aicV2 + `"`, `"aic":"` + aicV1 + `"`, []string{`aic "` + aicV2 + `" "` + aicV1 + `"`}},
		{`/` + aicV2 + `/rpc"`, `/{AIC}/rpc"`, nil},
		{`"Plans tours."`, `"Plans."`, []string{`description "Plans tours." "Plans."`}},
		{`,"examples":["two days"]`, ``, []string{`skills[0].examples ["two days"] `}},
		{`"image/png"]`, `"image/png","image/gif"]`, []string{`defaultOutputModes[2]  "image/gif"`}},
		{`"requestedValidity":90`, `"requestedValidity":49`, []string{`certificate.requestedValidity 90 49`}},
	} {
		registered := strings.Replace(served, tc.old, tc.new, 1)
		if registered == served {
			t.Errorf("there is no %s in %s", tc.old, served)
		}
		found, err := Diff([]byte(served), []byte(registered))
		if err != nil {
			t.Error(err)
		}
		var got []string
		for _, d := range found {
			got = append(got, d.Path+" "+string(d.Served)+" "+string(d.Registered))
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s in place of %s (-want +got):\n%s", tc.new, tc.old, diff)
		}
	}
	for _, broken := range []string{"", "[]", `{"aic":`} {
		if _, err := Diff([]byte(served), []byte(broken)); err == nil || !strings.Contains(err.Error(), "is registered") {
			t.Errorf("registered %q: %v", broken, err)
		}
		if _, err := Diff([]byte(broken), []byte(served)); err == nil || !strings.Contains(err.Error(), "is served") {
			t.Errorf("served %q: %v", broken, err)
		}
	}
}

// TestAtMount: of the differences, the one of a Partner registered with its mount point is known.
func TestAtMount(t *testing.T) {
	o := fullOptions()
	o.AIC, o.CAChallengeBaseURL, o.Base = aicV2, "", "https://public.example/"+Placeholder
	served := made(fullCard(), o)
	for registered, want := range map[string]bool{
		"https://public.example/" + aicV2:             true,
		"https://public.example/" + aicV2 + "/":       true,
		"https://public.example/{AIC}":                true,
		"https://public.example/":                     false,
		"https://public.example/" + aicV2 + "/stream": false,
	} {
		other := bytes.Replace(served, []byte("https://public.example/"+aicV2+"/rpc"), []byte(registered), 1)
		found, err := Diff(served, other)
		if err != nil || len(found) != 1 || found[0].AtMount() != want {
			t.Errorf("%s: %v, %v", registered, found, err)
		}
	}
	found, err := Diff(served, bytes.Replace(served, []byte("Plans tours."), []byte("Plans."), 1))
	if err != nil || len(found) != 1 || found[0].AtMount() {
		t.Errorf("another description: %v, %v", found, err)
	}
}

// FuzzCheck: any text is judged, a mistake says everything needed, and a document does not differ from itself.
func FuzzCheck(f *testing.F) {
	for _, j := range judgements(f) {
		f.Add([]byte(j.ACS))
	}
	f.Add(made(fullCard(), fullOptions()))
	f.Add([]byte(`{"":{}}`))
	f.Add([]byte(`{"endPoints":[null,{"security":[{"":1}]}],"securitySchemes":{"":null}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		mistakes := Check(body)
		for _, m := range mistakes {
			if m.Path == "" || m.Text == "" || m.Advice == "" {
				t.Errorf("a mistake is incomplete: %+v", m)
			}
		}
		differences, err := Diff(body, body)
		if err != nil && (len(mistakes) != 1 || mistakes[0].Path != whole) {
			t.Errorf("it cannot be compared (%v), but has the mistakes %v", err, mistakes)
		}
		if len(differences) > 0 {
			t.Errorf("it differs from itself: %v", differences)
		}
	})
}
