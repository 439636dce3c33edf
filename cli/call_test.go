// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/cli/devpki"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/freeport"
	"github.com/aip-gateway/aip-gateway/task"
)

const leaderAIC = "10001000011K912345E789ABCDEF2353"

// partnerAt serves a Partner over mutual TLS with certificates in .pki of the working folder. answer gets the request
// and returns the member of the response beside the id.
func partnerAt(t *testing.T, answer func(request gjson.Result, leader string) string) (url string, p *devpki.PKI) {
	t.Helper()
	t.Chdir(t.TempDir())
	p, err := devpki.Make(devpki.Options{Dir: pkiDir, Leader: leaderAIC})
	if err != nil {
		t.Fatal(err)
	}
	guard := new(identity.Guard)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.URL.Path != "/agent/rpc" {
			http.NotFound(w, r)
			return
		}
		request := gjson.ParseBytes(body)
		var leader string
		peer, err := guard.Check(identity.OfConnection(r.TLS))
		if err == nil {
			leader, err = guard.Admit(peer, request.Get("params.message.senderId").Str)
		}
		member := `"error":{"code":-32009,"message":"Authorization failed"}`
		if err == nil {
			member = answer(request, leader)
		}
		io.WriteString(w, `{"jsonrpc":"2.0","id":`+request.Get("id").Raw+`,`+member+`}`)
	}))
	server.TLS = serverTLS(t, p, p.Server)
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // handshakes failing on purpose
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL + "/agent", p
}

func serverTLS(t *testing.T, p *devpki.PKI, server devpki.File) *tls.Config {
	t.Helper()
	cert, err := tls.LoadX509KeyPair(server.Cert, server.Key)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	ca, err := os.ReadFile(p.CA.Cert)
	if err != nil {
		t.Fatal(err)
	}
	pool.AppendCertsFromPEM(ca)
	return &tls.Config{Certificates: []tls.Certificate{cert}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool}
}

const (
	awaiting = `"result":{"type":"task","id":"task-1","sessionId":"session-1","status":{"state":"awaiting-completion",
"stateChangedAt":"2025-09-01T12:00:00+08:00","dataItems":[{"type":"text","text":"Done.\nLook at it."}]},"products":[
{"id":"product-1","name":"plan.pdf","description":"three days","dataItems":[
{"type":"file","name":"plan.pdf","mimeType":"application/pdf","uri":"https://example.com/plan.pdf"},
{"type":"file","name":"map.png","bytes":"AAECAwQ="},
{"type":"data","data":{"days": 3}},
{"type":"text","text":"Day 1: \u001b[31mPalace\u202e\u0007"}]}]}`
	awaitingPrinted = `task      task-1
session   session-1
state     awaiting-completion since 2025-09-01T12:00:00+08:00
says      Done.
          Look at it.
product   product-1  plan.pdf  three days
          file plan.pdf  application/pdf  https://example.com/plan.pdf
          file map.png  5 B inside
          data {"days":3}
          Day 1: ` + "\ufffd[31mPalace\ufffd\ufffd" + `
next      complete, continue or cancel, with --task task-1
`
	history = `"result":{"type":"task","id":"task-1","sessionId":"session-1","status":{"state":"failed",
"stateChangedAt":"2025-09-01T12:07:00.5+08:00","dataItems":[{"type":"text","text":"No data."}]},"products":[],
"messageHistory":[{"type":"message","id":"msg-1","sentAt":"2025-09-01T11:58:00+08:00","senderRole":"leader",
"senderId":"x","command":"start","dataItems":[{"type":"text","text":"Plan"}],"taskId":"task-1"}],
"statusHistory":[{"state":"accepted","stateChangedAt":"2025-09-01T11:59:00+08:00"},
{"state":"failed","stateChangedAt":"2025-09-01T12:07:00.5+08:00","dataItems":[{"type":"text","text":"No data."}]}]}`
	historyPrinted = `task      task-1
session   session-1
state     failed since 2025-09-01T12:07:00.5+08:00
says      No data.
was       2025-09-01T11:59:00+08:00  accepted
was       2025-09-01T12:07:00.5+08:00  failed
          No data.
received  2025-09-01T11:58:00+08:00  start  msg-1
          Plan
`
	notFound = `"error":{"code":-32001,"message":"Task not found","data":{"taskId":"task-1","details":"It may have ` +
		`ended.","max":[1,2]}}`
)

// TestMain gives all tests the same time zone.
func TestMain(m *testing.M) {
	time.Local = time.FixedZone("", 8*60*60)
	os.Exit(m.Run())
}

func taskIn(state string) string {
	return `"result":{"type":"task","id":"task-1","sessionId":"s","status":{"state":"` + state +
		`","stateChangedAt":"2025-09-01T12:00:00Z"}}`
}

func printedIn(state, next string) string {
	s := "task      task-1\nsession   s\nstate     " + state + " since 2025-09-01T20:00:00+08:00\n"
	if next != "" {
		s += "next      " + next + ", with --task task-1\n"
	}
	return s
}

func TestCall(t *testing.T) {
	var answer string
	start := []string{"start", "--task", "task-1"}
	var sent string // the command sent by the user
	url, _ := partnerAt(t, func(r gjson.Result, _ string) string {
		if r.Get("params.message.command").Str != sent {
			return notFound // start asks first whether the task exists
		}
		return answer
	})
	for _, tt := range []struct {
		name   string
		args   []string
		answer string
		want   commandResult
	}{
		{"start", []string{"start", "--task", "task-1", "Plan"}, awaiting, commandResult{0, awaitingPrinted, ""}},
		{"get", []string{"get", "--task", "task-1"}, history, commandResult{3, historyPrinted, ""}},
		{"start, failed", start, taskIn("failed"), commandResult{3, printedIn("failed", ""), ""}},
		{"start, rejected", start, taskIn("rejected"), commandResult{3, printedIn("rejected", ""), ""}},
		{"start, working", start, taskIn("working"), commandResult{0, printedIn("working", "get or cancel"), ""}},
		{"start, awaiting input", start, taskIn("awaiting-input"),
			commandResult{0, printedIn("awaiting-input", "continue or cancel"), ""}},
		{"continue, canceled", []string{"continue", "--task", "task-1"}, taskIn("canceled"),
			commandResult{3, printedIn("canceled", ""), ""}},
		{"cancel", []string{"cancel", "--task", "task-1"}, taskIn("canceled"),
			commandResult{0, printedIn("canceled", ""), ""}},
		{"cancel, too late", []string{"cancel", "--task", "task-1"}, taskIn("completed"),
			commandResult{3, printedIn("completed", ""), "Error: the task was not canceled, it is completed\n"}},
		{"complete", []string{"complete", "--task", "task-1"}, taskIn("completed"),
			commandResult{0, printedIn("completed", ""), ""}},
		{"complete, too early", []string{"complete", "--task", "task-1"}, taskIn("working"),
			commandResult{3, printedIn("working", "get or cancel"), "Error: the task was not completed, it is working\n"}},
		{"an error", []string{"get", "--task", "task-1"}, notFound, commandResult{2, "",
			"Error: the Partner answered -32001 Task not found\n" +
				"  details: It may have ended.\n  max: [1,2]\n  taskId: task-1\n"}},
		{"an error whose data is a sentence", []string{"get", "--task", "task-1"},
			`"error":{"code":-32008,"message":"A\u001b","data":"why"}`,
			commandResult{2, "", "Error: the Partner answered -32008 A\ufffd\n  data: \"why\"\n"}},
		{"a message", start,
			`"result":{"type":"message","id":"msg-9","sentAt":"2025-09-01T12:00:00Z","senderRole":"partner","senderId":"p",` +
				`"dataItems":[{"type":"text","text":"Hi"}]}`,
			commandResult{0, "message   2025-09-01T20:00:00+08:00  msg-9  p\nsays      Hi\n", ""}},
		{"an answer that makes no sense", []string{"get", "--task", "task-1"}, `"result":1`,
			commandResult{1, "", "Error: the answer is neither a task nor a message\n"}},
		{"forged senderId", []string{"get", "--task", "task-1", "--sender", "someone"}, awaiting,
			commandResult{2, "", "Error: the Partner answered -32009 Authorization failed\n"}},
		{"certificate of v01.00", []string{"start", "--task", "task-1", "--cert", ".pki/leader-v1.pem"}, awaiting,
			commandResult{0, awaitingPrinted, ""}},
		{"certificate of v01.00 and its key", []string{"start", "--task", "task-1", "--cert", ".pki/leader-v1.pem", "--key",
			".pki/leader-v1-key.pem", "--ca", ".pki/ca.pem"},
			awaiting, commandResult{0, awaitingPrinted, ""}},
	} {
		sent, answer = tt.args[0], tt.answer
		if diff := cmp.Diff(tt.want, runAIP(t, append([]string{"call", url}, tt.args...)...)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// The AIC of the intended Partner is enough, whatever the host name; so is the host name if it is asked for.
func TestCallOfThePartnerThatIsMeant(t *testing.T) {
	url, p := partnerAt(t, func(gjson.Result, string) string { return awaiting })
	aic := string(p.Server.AIC)
	nameless := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		io.WriteString(w, `{"jsonrpc":"2.0","id":`+gjson.GetBytes(body, "id").Raw+`,`+awaiting+`}`)
	}))
	nameless.TLS = serverTLS(t, p, p.LeaderV1) // its certificate has no host name
	nameless.Config.ErrorLog = log.New(io.Discard, "", 0)
	nameless.StartTLS()
	defer nameless.Close()
	v1, noName := string(p.LeaderV1.AIC), "doesn't contain any IP SANs"
	for _, tt := range []struct {
		args []string
		want string // in the error
	}{
		{[]string{url}, ""},
		{[]string{url, "--partner", strings.ToLower(aic)}, ""},
		{[]string{url, "--partner", aic, "--verify", "both"}, ""},
		{[]string{nameless.URL, "--partner", v1}, ""},
		{[]string{nameless.URL, "--partner", aic}, "the server is " + v1 + ", not " + aic},
		{[]string{nameless.URL}, noName},
		{[]string{nameless.URL, "--partner", v1, "--verify", "both"}, noName},
		{[]string{url, "--partner", "x"}, `--partner and --verify: "x" is not the AIC of a server`},
		{[]string{url, "--verify", "aic"}, "--partner and --verify: verify aic needs the AIC of the server"},
		{[]string{"http://127.0.0.1:1", "--partner", aic}, "a Partner shows its AIC only with TLS"},
	} {
		got := runAIP(t, append(append([]string{"call"}, tt.args...), "get", "--task", "task-1")...)
		if (got.Status == 0) != (tt.want == "") || !strings.Contains(got.Stderr, tt.want) {
			t.Errorf("%v: %+v, want %q", tt.args, got, tt.want)
		}
	}
}

// hostOnly makes a certificate for 127.0.0.1 without an AIC.
func hostOnly(t *testing.T, p *devpki.PKI) tls.Certificate {
	ca, err := tls.LoadX509KeyPair(p.CA.Cert, p.CA.Key)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(7), Subject: pkix.Name{CommonName: "127.0.0.1"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}, ca.Leaf, key.Public(), ca.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func TestCallJSON(t *testing.T) {
	var answer string
	url, _ := partnerAt(t, func(gjson.Result, string) string { return answer })
	for status, member := range map[int]string{0: taskIn("working"), 2: notFound, 3: taskIn("failed")} {
		answer = member
		got := runAIP(t, "call", url, "get", "--task", "task-1", "--json")
		if got.Status != status || got.Stderr != "" || !strings.HasSuffix(got.Stdout, ","+member+"}\n") {
			t.Errorf("%s: %+v", member, got)
		}
	}
}

func TestCallUsage(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("bad.pem", []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	const url = "https://127.0.0.1:1/"
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{url}, "call needs the URL or the name of a Partner and a command, such as: " +
			`call https://localhost:8443 start "hello"`},
		{[]string{url, "stop"}, `unknown command "stop"; use start, stream, re-stream, continue, get, complete, ` +
			`cancel or webhook`},
		{[]string{url, "webhook"}, "webhook needs set, get or delete"},
		{[]string{url, "webhook", "get"}, "webhook get needs --task"},
		{[]string{url, "webhook", "stop", "--task", "t"}, `unknown command "stop"; use webhook set, get or delete`},
		{[]string{url, "webhook", "set", "--task", "t", "http://x"}, "webhook set needs the webhook's URL and --token"},
		{[]string{url, "webhook", "get", "--task", "t", "x"}, "webhook get takes --task and --webhook only"},
		{[]string{url, "get", "--task", "t", "--token", "x"}, "--webhook and --token are for webhook, not for get"},
		{[]string{url, "get"}, "get needs --task, the id that start prints"},
		{[]string{url, "get", "--task", "t", "--response-timeout", "1s"},
			"get has no timeouts and no limit of products; start sets them"},
		{[]string{url, "start", "--data", "[1]"}, "--data must be a JSON object"},
		{[]string{url, "start", "--data", "null"}, "--data must be a JSON object"},
		{[]string{url, "start", "--metadata", "[1]", "hi"}, "--metadata must be a JSON object"},
		{[]string{url, "start", "--metadata", "{}"}, "--metadata is for a text, --data or --file, and there is none"},
		{[]string{url, "start", "--file", "missing"}, "open missing: no such file or directory"},
		{[]string{url, "start"},
			"there is no certificate to take the senderId from: give --cert or --sender, or make a certificate with `caddy " +
				"aip pki`"},
		{[]string{url, "start", "--key", "k"}, "--key needs --cert"},
		{[]string{url, "start", "--cert", "x.pem"},
			"reading the Leader's certificate x.pem and its key x-key.pem: open x.pem: no such file or directory"},
		{[]string{url, "start", "--sender", "x", "--ca", "bad.pem"},
			"bad.pem: it holds no certificate in PEM; name the right file"},
		{[]string{"localhost:8443", "start", "--sender", "x"}, "the URL must begin with https:// or http:// and have a host"},
	} {
		if diff := cmp.Diff(commandResult{1, "", "Error: " + tt.want + "\n"},
			runAIP(t, append([]string{"call"}, tt.args...)...)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tt.args, diff)
		}
	}
}

func TestCallExplainsWhatWentWrong(t *testing.T) {
	url, p := partnerAt(t, func(gjson.Result, string) string { return awaiting })
	elsewhere, err := devpki.Make(devpki.Options{Dir: filepath.Join(t.TempDir(), "elsewhere")})
	if err != nil {
		t.Fatal(err)
	}
	// A server with a good certificate, but not for this host.
	otherHost := httptest.NewUnstartedServer(http.NotFoundHandler())
	otherHost.TLS = serverTLS(t, p, p.LeaderV1)
	otherHost.Config.ErrorLog = log.New(io.Discard, "", 0)
	otherHost.StartTLS()
	defer otherHost.Close()
	noAIC := httptest.NewUnstartedServer(http.NotFoundHandler())
	noAIC.TLS = &tls.Config{Certificates: []tls.Certificate{hostOnly(t, p)}}
	noAIC.Config.ErrorLog = log.New(io.Discard, "", 0)
	noAIC.StartTLS()
	defer noAIC.Close()
	nameless := httptest.NewUnstartedServer(http.NotFoundHandler())
	nameless.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		return nil, errors.New("no certificate")
	}}
	nameless.Config.ErrorLog = log.New(io.Discard, "", 0)
	nameless.StartTLS()
	defer nameless.Close()
	closing := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		panic(http.ErrAbortHandler)
	}))
	defer closing.Close()
	asksNothing := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/rpc" {
			panic(http.ErrAbortHandler)
		}
		body, _ := io.ReadAll(r.Body)
		io.WriteString(w, `{"jsonrpc":"2.0","id":`+gjson.GetBytes(body, "id").Raw+
			`,"error":{"code":-32008,"message":"Authentication required"}}`)
	}))
	asksNothing.TLS = serverTLS(t, p, p.Server)
	asksNothing.TLS.ClientAuth = tls.NoClientCert
	asksNothing.Config.ErrorLog = log.New(io.Discard, "", 0)
	asksNothing.StartTLS()
	defer asksNothing.Close()
	gone := fmt.Sprint("http://127.0.0.1:", freeport.Closed(t))
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}))
	defer silent.Close()

	get := []string{"get", "--task", "task-1"}
	for _, tt := range []struct {
		name string
		args []string
		want string
	}{
		{"another place", append([]string{url + "/x"}, get...),
			"HTTP status 404 Not Found; is aip_gateway mounted at this URL?"},
		{"another root", append([]string{url, "--ca", elsewhere.CA.Cert}, get...),
			"give the root that signs the Partner's certificate with --ca"},
		{"a Leader of another root", append([]string{url, "--cert", elsewhere.Leader.Cert}, get...),
			"the Partner does not trust the root that signs the Leader's certificate"},
		{"another host", append([]string{otherHost.URL}, get...),
			"x509: cannot validate certificate for 127.0.0.1 because it doesn't contain any IP SANs"},
		{"a host without a certificate", append([]string{nameless.URL}, get...),
			"the server has no certificate for the host in the URL"},
		{"no answer without TLS", append([]string{closing.URL}, get...),
			"the server closed the connection without an answer: does its site take TLS?"},
		{"a cut by who has asked for no certificate", append([]string{asksNothing.URL}, get...),
			"the server closed the connection, and has not asked for a certificate"},
		{"another Partner", append([]string{url, "--partner", leaderAIC}, get...),
			"the server is " + string(p.Server.AIC) + ", not " + leaderAIC + "; check --partner"},
		{"a Partner that shows no AIC", append([]string{noAIC.URL, "--partner", leaderAIC}, get...),
			"is not an AIC: levels 1 to 4 of the AIC are not 1.2.156.3088. " +
				"If the Partner is known by its host name only, leave --partner out"},
		{"no gateway there", append([]string{gone}, get...), "connection refused; is the gateway running"},
		{"a port without TLS", append([]string{"https" + strings.TrimPrefix(silent.URL, "http")}, get...),
			"the server takes no TLS at this port"},
		{"no answer", append([]string{silent.URL, "--timeout", "1s"}, get...), "no answer within 1s; see --timeout"},
		{"start that may have come", []string{closing.URL, "start"}, " get --task task-"},
		{"start that nobody got", []string{gone, "start"}, "connection refused; is the gateway running"},
		{"start at another root", []string{url, "start", "--ca", elsewhere.CA.Cert}, "give the root that signs"},
		{"start of a Leader of another root", []string{url, "start", "--cert", elsewhere.Leader.Cert}, "does not trust"},
	} {
		got := runAIP(t, append([]string{"call"}, tt.args...)...)
		if got.Status != 1 || got.Stdout != "" || !strings.Contains(got.Stderr, tt.want) {
			t.Errorf("%s: %+v, want %s", tt.name, got, tt.want)
		}
		if may := strings.Contains(got.Stderr, "if the task was started"); may != (tt.name == "start that may have come") {
			t.Errorf("%s: a task that is not there is spoken of, or one that may be is not: %+v", tt.name, got)
		}
	}

	got := runAIP(t, append([]string{"call", asksNothing.URL + "/x"}, get...)...)
	if want := "but the site has not asked for it; its operator adds:\n\ttls {"; !strings.Contains(got.Stderr, want) {
		t.Errorf("refused by a site that asks for no certificate: %+v, want %s", got, want)
	}

	t.Run("no certificate", func(t *testing.T) {
		ca, err := filepath.Abs(p.CA.Cert)
		if err != nil {
			t.Fatal(err)
		}
		t.Chdir(t.TempDir())
		got := runAIP(t, "call", url, "get", "--task", "task-1", "--sender", "x", "--ca", ca)
		if want := "give the Leader's certificate with --cert"; got.Status != 1 || !strings.Contains(got.Stderr, want) {
			t.Errorf("%+v, want %s", got, want)
		}
	})
}

// Every state and command has its exit status.
func TestCallExitStatus(t *testing.T) {
	for _, c := range []task.Command{task.Start, task.Continue, task.Get} {
		for _, s := range task.States() {
			want := 0
			if s.Terminal() && s != task.Completed {
				want = exitTaskEnded
			}
			if got, err := verdict(c, s); got != want || err != nil {
				t.Errorf("%s, %s: %d, %v, want %d", c, s, got, err, want)
			}
		}
	}
	for c, want := range map[task.Command]task.State{task.Cancel: task.Canceled, task.Complete: task.Completed} {
		for _, s := range task.States() {
			if got, err := verdict(c, s); (got == 0) != (s == want) || (err == nil) != (s == want) {
				t.Errorf("%s, %s: %d, %v", c, s, got, err)
			}
		}
	}
}
