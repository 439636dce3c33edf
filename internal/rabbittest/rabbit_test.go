// SPDX-License-Identifier: Apache-2.0

package rabbittest

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/aip-gateway/aip-gateway/cli/devpki"
	"github.com/aip-gateway/aip-gateway/internal/asynctest"
)

// TestBroker logs in by all mechanisms in the tests of groups, and ends the node in all ways.
func TestBroker(t *testing.T) {
	pki, err := devpki.Make(devpki.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	b, err := Start(Config{CA: pki.CA.Cert, Cert: pki.Server.Cert, Key: pki.Server.Key})
	if err != nil {
		t.Fatal(err)
	}
	const vhost, user = "/of tests", "a user"
	aic := string(pki.Leader.AIC)
	do := func(errs ...error) {
		t.Helper()
		for _, err := range errs {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	do(b.AddVhost(vhost), b.AddUser(user, "another"), b.AddUser(user, "secret"), b.AddUser(aic, ""),
		b.Permit(user, vhost, ".*", ".*", ".*"), b.Permit(aic, vhost, "^q$", "^q$", "^q$"))

	plain := fmt.Sprint("amqp://", b.Address(), "/")
	dial := func(url string, config amqp.Config) *amqp.Connection {
		t.Helper()
		config.Vhost, config.Properties = vhost, amqp.Table{"connection_name": "of the test"}
		conn, err := amqp.DialConfig(url, config)
		do(err)
		return conn
	}
	password := func(user, password string) amqp.Config {
		return amqp.Config{SASL: []amqp.Authentication{&amqp.PlainAuth{Username: user, Password: password}}}
	}
	conn := dial(plain, password(user, "secret"))
	channel, err := conn.Channel()
	do(err)
	_, err = channel.QueueDeclare("q", true, false, false, false, nil)
	do(err)
	dial(plain, password("", Token(map[string]any{
		"sub": "a partner", "exp": time.Now().Add(time.Hour).Unix(), "scope": []string{"rabbitmq.read:*/*"},
	})))
	if _, err := amqp.DialConfig(plain, password(user, "another")); err == nil {
		t.Error("a wrong password is accepted")
	}
	root, err := os.ReadFile(pki.CA.Cert)
	do(err)
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(root)
	pair, err := tls.LoadX509KeyPair(pki.Leader.Cert, pki.Leader.Key)
	do(err)
	dial(fmt.Sprintf("amqps://localhost:%d", b.TLSPort), amqp.Config{
		SASL:            []amqp.Authentication{&amqp.ExternalAuth{}},
		TLSClientConfig: &tls.Config{RootCAs: trusted, Certificates: []tls.Certificate{pair}},
	})

	asynctest.Eventually(t, "the broker has three connections", func() bool { // the refused ones may end later
		names, err := b.Connections()
		do(err)
		return slices.Equal(names, slices.Repeat([]string{"of the test"}, 3))
	})
	closed := conn.NotifyClose(make(chan *amqp.Error, 1))
	if n, err := b.CloseConnections("of the test"); n != 3 || err != nil {
		t.Errorf("%d connections were closed: %v", n, err)
	}
	if err := <-closed; err == nil || err.Code != amqp.ConnectionForced {
		t.Errorf("a closed connection ended with %v", err)
	}

	queues := func() {
		t.Helper()
		if names, err := b.Queues(vhost); !slices.Equal(names, []string{"q"}) || err != nil {
			t.Errorf("the queues are %q: %v", names, err)
		}
	}
	queues()
	do(b.Stop(), b.Run())
	queues()
	do(b.Kill(), b.Run())
	queues()
	do(b.Close())
	if _, err := os.Stat(b.dir); err == nil {
		t.Error("the data stay")
	}
	asynctest.Eventually(t, "no process stays", func() bool { return processesOf(t, b.dir) == nil })
}

// processesOf returns the commands of the processes with a folder in their environment.
func processesOf(t *testing.T, dir string) (commands []string) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil || len(all) == 0 {
		t.Fatalf("no processes were found: %v", err)
	}
	for _, path := range all {
		if environ, err := os.ReadFile(path); err == nil && bytes.Contains(environ, []byte("HOME="+dir)) {
			command, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
			commands = append(commands, strings.ReplaceAll(string(command), "\x00", " "))
		}
	}
	return commands
}
