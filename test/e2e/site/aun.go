// SPDX-License-Identifier: Apache-2.0

package site

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/aip-gateway/aip-gateway/cli/devpki/devpkitest"
	"github.com/aip-gateway/aip-gateway/internal/aunpeer"
)

// The names of these tests.
const (
	AUNIssuer  = "aid.test"
	AUNGateway = "gateway.aid.test"
	AUNAgent   = "agent.aid.test"
	AUNWorker  = "worker.aid.test" // an agent that is assigned tasks
)

// AUNPKI returns the PKI of all tests with AUN.
var AUNPKI = sync.OnceValues(func() (*aunpeer.PKI, error) { return aunpeer.NewPKI(AUNIssuer) })

// AUNSite is a gateway with an AUN side, and the PKI of its callers.
type AUNSite struct {
	*Site
	PKI     *aunpeer.PKI      // of callers and of the gateway
	Foreign *aunpeer.Identity // the authentication service whose tokens it takes, too
	Port    int               // of AUN
}

// NewAUN makes the files of an AUN side, and returns its site, not started; its Config starts it.
func NewAUN(t testing.TB) *AUNSite {
	t.Helper()
	s := &AUNSite{Site: New(t), PKI: Must(AUNPKI())(t), Port: FreePort(t)}
	s.Foreign = Must(s.PKI.Issue("auth.aid.test"))(t)
	own := Must(s.PKI.Issue(AUNGateway))(t)
	s.File("aun.pem", Must(own.PEM())(t))
	s.File("roots.pem", s.PKI.Issuer.ChainPEM()[len(s.PKI.Issuer.CertPEM()):]+s.PKI.Issuer.CertPEM())
	s.File("jwt.pem", Must(s.Foreign.PublicPEM())(t))
	return s
}

// File writes a file into the directory of the site.
func (s *AUNSite) File(name, content string) {
	s.T.Helper()
	if err := os.WriteFile(filepath.Join(s.Dir, name), []byte(content), 0o600); err != nil {
		s.T.Fatal(err)
	}
}

// Config returns the configuration of an AUN side in front of an agent, which it reaches by a dialect and a URL.
func (s *AUNSite) Config(agent string, more ...string) Config {
	p := Certificates(s.T)
	settings := ""
	for _, line := range more {
		settings += "\n\t\t" + line
	}
	return Config{
		Store: fmt.Sprintf(`store pebble %s
		aun {
			aid %s
			cert %s
			roots %s
			issuer %s
			jwt_key %s %s
		}`, filepath.Join(s.Dir, "store"), AUNGateway, filepath.Join(s.Dir, "aun.pem"),
			filepath.Join(s.Dir, "roots.pem"), AUNIssuer, AUNIssuer, filepath.Join(s.Dir, "jwt.pem")),
		Handle: fmt.Sprintf(`aip_gateway %s {
		aid %s
		callers aip aun%s
	}`, agent, AUNAgent, settings),
		OtherSites: fmt.Sprintf(`https://:%d {
	tls %s %s
	aip_aun
}`, s.Port, p.Server.Cert, p.Server.Key),
	}
}

// Client returns a client of an AID.
func (s *AUNSite) Client(aid string, change ...func(*x509.Certificate)) *aunpeer.Client {
	s.T.Helper()
	return &aunpeer.Client{
		ID: Must(s.PKI.Issue(aid, change...))(s.T), PKI: s.PKI, HTTP: s.HTTP(), Device: "device-1",
		URL: fmt.Sprintf("wss://%s:%d/aun", AUNGateway, s.Port),
	}
}

// SDK returns a client of an AID that reads its inbox as the SDK for Node does.
func (s *AUNSite) SDK(aid string) *aunpeer.SDK { return &aunpeer.SDK{Client: s.Client(aid)} }

// HTTP returns an HTTP client that takes the AUN side for every host.
func (s *AUNSite) HTTP() *http.Client {
	c := aunpeer.To(fmt.Sprintf("127.0.0.1:%d", s.Port), devpkitest.KeyPair(s.T, Certificates(s.T).CA).Leaf)
	c.Transport.(*http.Transport).TLSClientConfig.ServerName = "localhost"
	s.T.Cleanup(c.CloseIdleConnections)
	return c
}

// Online connects a client, until the end of the test.
func (s *AUNSite) Online(aid string) *aunpeer.Conn {
	s.T.Helper()
	conn := Must(s.Client(aid).Online(s.Soon()))(s.T)
	s.T.Cleanup(conn.Cut)
	return conn
}

// Again connects a client, as soon as the gateway is there.
func (s *AUNSite) Again(ctx context.Context, c *aunpeer.Client) (conn *aunpeer.Conn) {
	s.T.Helper()
	Eventually(s.T, "the client is connected", func() bool {
		var err error
		conn, err = c.Online(ctx)
		return err == nil
	})
	return conn
}

// Soon returns a context for what should happen at once.
func (s *AUNSite) Soon() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	s.T.Cleanup(cancel)
	return ctx
}

// Read makes a call, and reads its result.
func (s *AUNSite) Read(conn *aunpeer.Conn, method string, params, into any) {
	s.T.Helper()
	result := Must(conn.Call(s.Soon(), method, params))(s.T)
	if err := json.Unmarshal(result, into); err != nil {
		s.T.Fatalf("%s answers %s: %v", method, result, err)
	}
}

// Fails expects an error.
func (s *AUNSite) Fails(what string, err error, want int) {
	s.T.Helper()
	if aunpeer.Code(err) != want {
		s.T.Errorf("%s: %v, want the error %d", what, err, want)
	}
}

// AUNTask returns the parameters of a method for a task.
func AUNTask(id string, more ...map[string]any) map[string]any {
	params := map[string]any{"task_id": id}
	for _, m := range more {
		for k, v := range m {
			params[k] = v
		}
	}
	return params
}

// Rests waits until a task has ended or needs input, and returns it. Its caller has not subscribed to it yet.
func (s *AUNSite) Rests(conn *aunpeer.Conn, id string) aunpeer.Task {
	s.T.Helper()
	var t aunpeer.Task
	Eventually(s.T, "the task "+id+" rests", func() bool {
		t = Must(conn.Do(s.Soon(), "task.get", AUNTask(id)))(s.T)
		return aunpeer.Ended(t.Status) || t.Status == "input_required"
	})
	return t
}

// AUNMessage is a message that a client has received.
type AUNMessage struct {
	Seq     int
	Payload aunpeer.Payload
}

// Received returns the next message of a connection.
func (s *AUNSite) Received(conn *aunpeer.Conn) (m AUNMessage) {
	s.T.Helper()
	f := Must(conn.Event(s.Soon(), func(f aunpeer.Frame) bool { return f.Method == "event/message.received" }))(s.T)
	NoError(s.T, json.Unmarshal(f.Params, &m))
	return m
}
