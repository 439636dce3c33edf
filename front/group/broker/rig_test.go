// SPDX-License-Identifier: Apache-2.0

package broker_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/aip-gateway/aip-gateway/cli/devpki"
	"github.com/aip-gateway/aip-gateway/front/group/broker"
	"github.com/aip-gateway/aip-gateway/internal/asynctest"
	"github.com/aip-gateway/aip-gateway/internal/egress"
	"github.com/aip-gateway/aip-gateway/internal/rabbittest"
)

const (
	vhost    = "groups"
	exchange = "group-exchange"
)

// rig is a RabbitMQ with a virtual host, and an exchange of a Leader in it.
type rig struct {
	*rabbittest.Broker
	dir    string // of certificates
	aic    string // of the client certificate
	server string // the AIC of the broker's certificate
	secure *egress.Dialer
}

// rabbit is shared by the tests. It is started once.
var rabbit = sync.OnceValues(func() (*rig, error) {
	dir, err := os.MkdirTemp("", "broker-pki-")
	if err != nil {
		return nil, err
	}
	pki, err := devpki.Make(devpki.Options{Dir: dir})
	if err != nil {
		return nil, err
	}
	b, err := rabbittest.Start(rabbittest.Config{CA: pki.CA.Cert, Cert: pki.Server.Cert, Key: pki.Server.Key})
	if err != nil {
		return nil, err
	}
	root, err := os.ReadFile(pki.CA.Cert)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(root)
	pair, err2 := tls.LoadX509KeyPair(pki.Leader.Cert, pki.Leader.Key)
	r := &rig{Broker: b, dir: dir, aic: string(pki.Leader.AIC), server: string(pki.Server.AIC),
		secure: &egress.Dialer{Policy: loopback.Policy,
			TLS: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}}}}
	return r, errors.Join(err, err2, b.AddVhost(vhost), b.AddVhost("foreign"), b.AddUser("leader", "secret"),
		b.AddUser("partner", "secret:with a colon"), b.AddUser("poor", "secret"), b.AddUser(r.aic, ""),
		b.Permit("leader", vhost, ".*", ".*", ".*"), b.Permit("partner", vhost, "^queue", ".*", ".*"),
		b.Permit("poor", vhost, "^queue", "^queue", "^queue"), b.Permit(r.aic, vhost, ".*", ".*", ".*"))
})

func TestMain(m *testing.M) {
	code := m.Run()
	if b, err := rabbit(); err == nil {
		_ = b.Close()
		_ = os.RemoveAll(b.dir)
	}
	os.Exit(code)
}

// start returns the broker, a pool, and the configuration of a link.
func start(t testing.TB) (*rig, *broker.Pool, broker.Config) {
	t.Helper()
	r, err := rabbit()
	if err != nil {
		t.Fatal(err)
	}
	noLeak(t)
	r.leader(t)
	pool := broker.NewPool(0)
	t.Cleanup(pool.Close)
	return r, pool, broker.Config{Owner: "leader", Name: "agent-partner", Dialer: loopback, Exchange: exchange,
		Address: broker.Address{Host: "127.0.0.1", Port: uint16(r.Port), VHost: vhost},
		Queue:   "queue-" + strings.ReplaceAll(t.Name(), "/", "-"),
		Login:   broker.Password("partner", "secret:with a colon"), Declare: true}
}

// leader returns a channel of the Leader, and makes the exchange.
func (r *rig) leader(t testing.TB) *amqp.Channel {
	t.Helper()
	conn, err := amqp.DialConfig("amqp://"+r.Address(), amqp.Config{Vhost: vhost,
		SASL: []amqp.Authentication{&amqp.PlainAuth{Username: "leader", Password: "secret"}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	channel, err := conn.Channel()
	if err == nil {
		err = channel.ExchangeDeclare(exchange, amqp.ExchangeFanout, true, false, false, false, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return channel
}

func join(t testing.TB, pool *broker.Pool, c broker.Config) *broker.Link {
	t.Helper()
	link, err := pool.Join(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	return link
}

// receive has a link consume.
func receive(t testing.TB, link *broker.Link, deliver func(*broker.Delivery)) {
	t.Helper()
	if err := link.Receive(t.Context(), deliver); err != nil {
		t.Fatal(err)
	}
}

// fails joins, and wants an error.
func fails(t testing.TB, pool *broker.Pool, c broker.Config, kind broker.Kind, reason string) {
	t.Helper()
	_, err := pool.Join(context.Background(), c)
	var failed *broker.Error
	if !errors.As(err, &failed) || failed.Kind != kind || !strings.Contains(failed.Reason, reason) {
		t.Errorf("the error is %v, not %v: %s", err, kind, reason)
	}
}

// ends waits for the end of a link, and wants its reason.
func ends(t *testing.T, link *broker.Link, kind broker.Kind) {
	t.Helper()
	<-link.Done()
	var failed *broker.Error
	if !errors.As(link.Err(), &failed) || failed.Kind != kind {
		t.Errorf("the link has ended with %v, not %v", link.Err(), kind)
	}
}

// noConnections waits until a pool has no connection: a link of it ends without the broker's answer if that takes long.
func noConnections(t *testing.T, pool *broker.Pool) {
	t.Helper()
	asynctest.Eventually(t, "no connection is left", func() bool { return pool.Connections() == 0 })
}

func queues(t *testing.T, r *rig, of string) []string {
	t.Helper()
	all, err := r.Queues(vhost)
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(name string) bool { return !strings.Contains(name, of) })
}
