// SPDX-License-Identifier: Apache-2.0

package broker_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/aip-gateway/aip-gateway/front/group/broker"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/asynctest"
	"github.com/aip-gateway/aip-gateway/internal/egress"
	"github.com/aip-gateway/aip-gateway/internal/rabbittest"
)

// TestMessages publishes by one link and receives by another one.
func TestMessages(t *testing.T) {
	const messages = 1000
	r, pool, config := start(t)
	listener := r.leader(t)
	q, err := listener.QueueDeclare("", false, true, true, false, nil)
	if err == nil {
		err = listener.QueueBind(q.Name, "", exchange, false, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	heard, err := listener.Consume(q.Name, "", true, true, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	link := join(t, pool, config)
	info := link.Info()
	if info.Product != "RabbitMQ" || info.Version == "" || !strings.HasPrefix(info.ClusterName, "aip") {
		t.Errorf("the broker is %+v", info)
	}
	own := make(chan *broker.Delivery, messages)
	receive(t, link, func(d *broker.Delivery) {
		own <- d
		d.Ack()
		d.Ack()
	})

	confirms := make(chan int, messages)
	free := make(chan struct{}, broker.MaxUnconfirmed)
	for i := range messages {
		free <- struct{}{}
		err := link.Publish(broker.Message{ID: fmt.Sprint("id-", i), Body: fmt.Append(nil, i),
			Headers: map[string]string{"traceparent": "00-1"}}, func(err error) {
			if err != nil {
				t.Error(err)
			}
			<-free
			confirms <- i
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range messages {
		if n := <-confirms; n != i {
			t.Fatalf("confirm %d is that of %d", i, n)
		}
		d := <-heard
		if string(d.Body) != fmt.Sprint(i) || d.MessageId != fmt.Sprint("id-", i) || d.UserId != "partner" ||
			d.DeliveryMode != amqp.Persistent || d.ContentType != "application/json" ||
			d.Headers["traceparent"] != "00-1" {
			t.Fatalf("message %d is %+v", i, d)
		}
		o := <-own
		if string(o.Body) != fmt.Sprint(i) || o.ID != fmt.Sprint("id-", i) || o.UserID != "partner" ||
			o.Header("traceparent") != "00-1" || o.Header("other") != "" || o.Redelivered {
			t.Fatalf("own message %d is %+v", i, o)
		}
	}
	if err := link.Leave(context.Background()); err != nil {
		t.Error(err)
	}
	ends(t, link, broker.Closed)
	if left := queues(t, r, config.Queue); len(left) != 0 {
		t.Errorf("queues are left: %q", left)
	}
	noConnections(t, pool)
}

// TestRefusals joins against refusals of the broker. Nothing stays.
func TestRefusals(t *testing.T) {
	r, pool, config := start(t)
	change := func(f func(*broker.Config)) broker.Config {
		c := config
		f(&c)
		return c
	}
	valid := rabbittest.Token(map[string]any{"sub": "someone", "exp": time.Now().Add(time.Hour).Unix(),
		"scope": []string{"rabbitmq.read:other/*"}})
	expired := rabbittest.Token(map[string]any{"sub": "someone", "exp": time.Now().Add(-time.Hour).Unix(),
		"scope": []string{"rabbitmq.read:*/*"}})
	foreign := r.elsewhere(t)
	tests := map[string]struct {
		config broker.Config
		kind   broker.Kind
		reason string
	}{
		"wrong password": {change(func(c *broker.Config) { c.Login = broker.Password("partner", "wrong") }),
			broker.LoginRefused, "ACCESS_REFUSED"},
		"expired token": {change(func(c *broker.Config) { c.Login = broker.Token("partner", expired) }),
			broker.LoginRefused, "ACCESS_REFUSED"},
		"no mechanism": {change(func(c *broker.Config) { c.Login = broker.Certificate(r.aic) }),
			broker.LoginRefused, "EXTERNAL"},
		"unknown virtual host": {change(func(c *broker.Config) { c.Address.VHost = "unknown" }),
			broker.VHostRefused, "not found"},
		"foreign virtual host": {change(func(c *broker.Config) { c.Address.VHost = "foreign" }),
			broker.VHostRefused, "refused"},
		"virtual host of another token": {change(func(c *broker.Config) { c.Login = broker.Token("", valid) }),
			broker.VHostRefused, "refused"},
		"no exchange": {change(func(c *broker.Config) { c.Exchange = "unknown" }),
			broker.NoExchange, "unknown"},
		"no permission to bind": {change(func(c *broker.Config) { c.Login = broker.Password("poor", "secret") }),
			broker.PermissionDenied, "refused"},
		"no permission to declare": {change(func(c *broker.Config) { c.Queue = "other-" + t.Name() }),
			broker.PermissionDenied, "refused"},
		"no queue": {change(func(c *broker.Config) { c.Declare = false }),
			broker.QueueGone, "no queue"},
		"another host": {change(func(c *broker.Config) {
			c.Dialer, c.Address = r.secure, foreign
		}), broker.TLSFailed, "127.0.0.2"},
		"unknown authority": {change(func(c *broker.Config) {
			c.Address.TLS, c.Address.Port = true, uint16(r.TLSPort)
		}), broker.TLSFailed, "authority"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			fails(t, pool, test.config, test.kind, test.reason)
			if n := pool.Connections(); n != 0 {
				t.Errorf("%d connections are left", n)
			}
		})
	}
	if left := queues(t, r, t.Name()); len(left) != 0 {
		t.Errorf("queues are left: %q", left)
	}
}

// elsewhere returns an address of the broker missing in its certificate.
func (r *rig) elsewhere(t *testing.T) broker.Address {
	at := serverAt(t, "127.0.0.2:0", func(c net.Conn) {
		to, err := net.Dial("tcp", fmt.Sprint("127.0.0.1:", r.TLSPort))
		if err != nil {
			return
		}
		defer to.Close()
		go io.Copy(to, c)
		_, _ = io.Copy(c, to)
	})
	at.TLS, at.VHost = true, vhost
	return at
}

// TestBrokerThatIsMeant joins at a broker known by its AIC, whatever its address.
func TestBrokerThatIsMeant(t *testing.T) {
	r, pool, config := start(t)
	config.Address = r.elsewhere(t)
	meant := func(aic string) broker.Config {
		server, err := identity.ParseServer("", aic)
		if err != nil {
			t.Fatal(err)
		}
		c := config
		c.Dialer = &egress.Dialer{Policy: loopback.Policy, TLS: r.secure.TLS.Clone()}
		server.Require(c.Dialer.TLS)
		return c
	}
	fails(t, pool, meant(r.aic), broker.TLSFailed, "the server is "+r.server+", not "+r.aic)
	if err := join(t, pool, meant(r.server)).Leave(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestLogins joins with a token and with a certificate.
func TestLogins(t *testing.T) {
	r, pool, config := start(t)
	config.Login = broker.Token("", rabbittest.Token(map[string]any{"sub": "someone",
		"exp": time.Now().Add(time.Hour).Unix(), "scope": []string{"rabbitmq.read:*/*/*", "rabbitmq.write:*/*/*",
			"rabbitmq.configure:*/*/*"}}))
	token := join(t, pool, config)
	config.Login, config.Queue = broker.Certificate(r.aic), config.Queue+"-2"
	config.Dialer, config.Address.TLS, config.Address.Port = r.secure, true, uint16(r.TLSPort)
	config.Address.Host = "localhost"
	certificate := join(t, pool, config)

	users := make(chan string, 2)
	receive(t, token, func(d *broker.Delivery) {
		users <- d.UserID
		d.Ack()
	})
	for _, link := range []*broker.Link{certificate, token} {
		confirmed := make(chan error, 1)
		if err := link.Publish(broker.Message{ID: "1"}, func(err error) { confirmed <- err }); err != nil {
			t.Fatal(err)
		}
		if err := <-confirmed; err != nil {
			t.Error(err)
		}
		if user := <-users; user != link.UserID() {
			t.Errorf("the user is %q", user)
		}
	}
	if certificate.UserID() != r.aic || token.UserID() != "" {
		t.Errorf("the users are %q and %q", certificate.UserID(), token.UserID())
	}
	for _, link := range []*broker.Link{certificate, token} {
		if err := link.Leave(context.Background()); err != nil {
			t.Error(err)
		}
	}
}

// TestATokenThatExpires has the broker refuse a second link on a connection after its token has expired.
func TestATokenThatExpires(t *testing.T) {
	r, pool, config := start(t)
	var link *broker.Link
	for life := 2 * time.Second; link == nil; life *= 2 { // a slow machine may need longer than that for the first link
		config.Login = broker.Token("", rabbittest.Token(map[string]any{"sub": "someone",
			"exp": time.Now().Add(life).Unix(), "scope": []string{"rabbitmq.read:*/*/*",
				"rabbitmq.write:*/*/*", "rabbitmq.configure:*/*/*"}}))
		var err error
		if link, err = pool.Join(t.Context(), config); err != nil && life > 10*time.Second {
			t.Fatal(err)
		}
	}
	config.Declare = false
	var failed *broker.Error
	asynctest.Eventually(t, "the token has expired", func() bool {
		other, err := pool.Join(t.Context(), config)
		if err == nil {
			other.Close()
		}
		return errors.As(err, &failed) && failed.Kind != broker.NoAnswer
	})
	if failed.Kind != broker.LoginRefused {
		t.Errorf("the error is %v", failed)
	}
	link.Close()
	if _, err := r.leader(t).QueueDelete(config.Queue, false, false, false); err != nil {
		t.Error(err)
	}
}

// TestRemoval deletes the queue. This ends the link for good; a lost connection does not.
func TestRemoval(t *testing.T) {
	r, pool, config := start(t)
	link := join(t, pool, config)
	seen := make(chan *broker.Delivery, 1)
	receive(t, link, func(d *broker.Delivery) { seen <- d })
	leader := r.leader(t)
	if err := leader.Publish(exchange, "", false, false, amqp.Publishing{Body: []byte("first")}); err != nil {
		t.Fatal(err)
	}
	if d := <-seen; d.Redelivered || string(d.Body) != "first" {
		t.Errorf("the message is %+v", d)
	}
	asynctest.Eventually(t, "the broker has closed the connections of other tests", func() bool {
		names, err := r.Connections()
		if err != nil {
			t.Fatal(err)
		}
		return len(slices.DeleteFunc(names, func(name string) bool { return name != config.Name })) == 1
	})
	if n, err := r.CloseConnections(config.Name); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	ends(t, link, broker.Closed)
	if err := link.Publish(broker.Message{}, nil); !errors.Is(err, link.Err()) {
		t.Errorf("publishing by a link that has ended fails with %v", err)
	}

	config.Declare = false
	link = join(t, pool, config)
	receive(t, link, func(d *broker.Delivery) { seen <- d })
	again := <-seen
	if !again.Redelivered || string(again.Body) != "first" {
		t.Errorf("the message is %+v", again)
	}
	again.Ack()
	link.Close()

	link = join(t, pool, config)
	receive(t, link, func(d *broker.Delivery) { t.Errorf("there is a message: %+v", d) })
	if _, err := leader.QueueDelete(config.Queue, false, false, false); err != nil {
		t.Fatal(err)
	}
	ends(t, link, broker.QueueGone)
	fails(t, pool, config, broker.QueueGone, "no queue")
}

// TestSharing makes links of several owners: they share connections with those of their owner only.
func TestSharing(t *testing.T) {
	_, pool, config := start(t)
	var links []*broker.Link
	for i := range 140 {
		config.Queue = fmt.Sprint("queue-", t.Name(), i)
		config.Owner = "one"
		if i%14 == 0 {
			config.Owner = "two"
		}
		links = append(links, join(t, pool, config))
	}
	if n := pool.Connections(); n != 3 { // 130 links need two
		t.Errorf("there are %d connections", n)
	}
	var left sync.WaitGroup
	for _, link := range links {
		left.Go(func() {
			if err := link.Leave(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
	left.Wait()
	noConnections(t, pool)
}

// TestUndo undoes joins: a queue made by a join is deleted, and an earlier one stays.
func TestUndo(t *testing.T) {
	r, pool, config := start(t)
	join(t, pool, config).Undo(t.Context())
	if left := queues(t, r, config.Queue); len(left) != 0 {
		t.Errorf("queues are left: %q", left)
	}
	join(t, pool, config).Close()
	link := join(t, pool, config)
	receive(t, link, func(*broker.Delivery) {})
	link.Undo(t.Context())
	if left := queues(t, r, config.Queue); len(left) != 1 {
		t.Errorf("the queues are %q", left)
	}
	if err := join(t, pool, config).Leave(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestIdleInTime asks whether a queue is empty and does not wait for the answer. This costs no link its connection.
func TestIdleInTime(t *testing.T) {
	_, pool, config := start(t)
	link := join(t, pool, config)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for range 20 {
		_, _ = link.Idle(over)
	}
	if idle, err := link.Idle(t.Context()); !idle || err != nil {
		t.Errorf("the queue is idle: %v, %v", idle, err)
	}
	if err := link.Leave(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestQueueExpires: an unused queue does not stay for ever, also if no gateway comes back to it.
func TestQueueExpires(t *testing.T) {
	r, pool, config := start(t)
	link := join(t, pool, config)
	if args, err := r.Eval("[rabbit_misc:table_lookup(amqqueue:get_arguments(Q), <<\"x-expires\">>) || " +
		"Q <- rabbit_amqqueue:list(), amqqueue:get_name(Q) =:= rabbit_misc:r(<<\"" + vhost + "\">>, queue, <<\"" +
		config.Queue + "\">>)]"); err != nil || !strings.Contains(args, "1209600000") {
		t.Errorf("the queue expires after %s, %v", args, err)
	}
	if err := link.Leave(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestVHostWithASlash joins in a virtual host with a slash before its name.
func TestVHostWithASlash(t *testing.T) {
	_, pool, config := start(t)
	name := config.Address.VHost
	config.Address.VHost = "/" + name
	link := join(t, pool, config)
	if got := link.Info().VHost; got != name {
		t.Errorf("the virtual host is %q, want %q", got, name)
	}
	if err := link.Leave(t.Context()); err != nil {
		t.Error(err)
	}
	config.Address.VHost = "/nowhere"
	var failed *broker.Error
	if _, err := pool.Join(t.Context(), config); !errors.As(err, &failed) || failed.Kind != broker.VHostRefused ||
		!strings.Contains(failed.Reason, "/nowhere") {
		t.Errorf("a virtual host that is not there: %v", err)
	}
}

// TestReadsOnly joins a queue without an exchange: it can be read and deleted, and nothing can be published.
func TestReadsOnly(t *testing.T) {
	r, pool, config := start(t)
	join(t, pool, config).Close()
	if err := r.leader(t).Publish(exchange, "", false, false, amqp.Publishing{MessageId: "m"}); err != nil {
		t.Fatal(err)
	}
	config.Exchange, config.Declare = "", false
	link := join(t, pool, config)
	var failed *broker.Error
	if err := link.Publish(broker.Message{ID: "m"}, func(error) {}); !errors.As(err, &failed) ||
		failed.Kind != broker.NoExchange {
		t.Errorf("a message is published: %v", err)
	}
	got := make(chan string, 1)
	receive(t, link, func(d *broker.Delivery) {
		d.Ack()
		got <- d.ID
	})
	if id := <-got; id != "m" {
		t.Errorf("the message is %q", id)
	}
	if err := link.Leave(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := pool.Join(t.Context(), config); !errors.As(err, &failed) || failed.Kind != broker.QueueGone {
		t.Errorf("the queue stays: %v", err)
	}
}
