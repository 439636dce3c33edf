// SPDX-License-Identifier: Apache-2.0

package broker_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/egress"
	"github.com/aip-gateway/aip-gateway/group/broker"
)

// loopback lets tests connect to this host.
var loopback = &egress.Dialer{Policy: egress.Policy{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}}

// server listens and has each connection served; it returns its address. All connections are closed at the end.
func server(t *testing.T, serve func(net.Conn)) broker.Address {
	t.Helper()
	return serverAt(t, "127.0.0.1:0", serve)
}

func serverAt(t *testing.T, address string, serve func(net.Conn)) broker.Address {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	var connections sync.WaitGroup
	connections.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			connections.Go(func() {
				defer conn.Close()
				serve(conn)
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		connections.Wait()
	})
	at := listener.Addr().(*net.TCPAddr)
	return broker.Address{Host: at.IP.String(), Port: uint16(at.Port), VHost: "/"}
}

// frame is a frame of a method on channel 0.
func frame(payload string) string {
	n := len(payload)
	return "\x01\x00\x00" + string([]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}) + payload + "\xce"
}

// begin is connection.start with the properties given, which offers PLAIN; tune is connection.tune.
func begin(properties string) string {
	n := len(properties)
	return frame("\x00\x0a\x00\x0a\x00\x09" + string([]byte{0, 0, byte(n >> 8), byte(n)}) + properties +
		"\x00\x00\x00\x05PLAIN\x00\x00\x00\x05en_US")
}

const (
	tune   = "\x00\x0a\x00\x1e\x00\x10\x00\x02\x00\x00\x00\x0a"
	closes = "\x00\x0a\x00\x32" // connection.close: a code, a text, a class and a method follow
)

// saysWhy is a table: capabilities of a server that says why it refuses a login.
const saysWhy = "\x0ccapabilitiesF\x00\x00\x00\x1f\x1cauthentication_failure_closet\x01"

// greet reads the client's greeting, and says what is given.
func greet(conn net.Conn, says string) {
	_, _ = io.ReadFull(conn, make([]byte, 8))
	_, _ = io.WriteString(conn, says)
}

// answer reads n frames of the client, and says what is given.
func answer(conn net.Conn, n int, says string) {
	for range n {
		head := make([]byte, 7)
		if _, err := io.ReadFull(conn, head); err != nil {
			return
		}
		size := int64(head[3])<<24 | int64(head[4])<<16 | int64(head[5])<<8 | int64(head[6])
		_, _ = io.CopyN(io.Discard, conn, size+1)
	}
	_, _ = io.WriteString(conn, says)
}

func silent(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }

// TestNotABroker joins what is no broker, or one that fails at each step of the login.
func TestNotABroker(t *testing.T) {
	tests := map[string]struct {
		serve  func(net.Conn)
		kind   broker.Kind // NoAnswer if it is silent after that, for longer than the join may take
		reason string
	}{
		"silent": {func(net.Conn) {}, broker.NoAnswer, "in time"},
		"closes": {func(net.Conn) {}, broker.NotAMQP, "closed"},
		"HTTP": {func(c net.Conn) { greet(c, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n") },
			broker.NotAMQP, "not AMQP"},
		"SSH": {func(c net.Conn) {
			_, _ = io.WriteString(c, "SSH-2.0-OpenSSH_9.2p1\r\n")
			silent(c)
		}, broker.NotAMQP, "not AMQP"},
		"AMQP 1.0": {func(c net.Conn) { greet(c, "AMQP\x00\x01\x00\x00") }, broker.NotAMQP, "not AMQP"},
		"silent after start": {func(c net.Conn) {
			greet(c, begin(""))
			answer(c, 1, "")
		}, broker.NoAnswer, "login"},
		"closes after the login": {func(c net.Conn) {
			greet(c, begin(""))
			answer(c, 1, "")
		}, broker.LoginRefused, "at the login"},
		"closes after the login, and would say why": {func(c net.Conn) {
			greet(c, begin(saysWhy))
			answer(c, 1, "")
		}, broker.Closed, "lost"},
		"refuses the login": {func(c net.Conn) {
			greet(c, begin(saysWhy))
			answer(c, 1, frame(closes+"\x01\x93\x0eACCESS_REFUSED\x00\x00\x00\x00"))
			silent(c)
		}, broker.LoginRefused, "ACCESS_REFUSED"},
		"closes after tune": {func(c net.Conn) {
			greet(c, begin(""))
			answer(c, 1, frame(tune))
			answer(c, 2, "")
		}, broker.Closed, "lost"},
		"silent after tune": {func(c net.Conn) {
			greet(c, begin(""))
			answer(c, 1, frame(tune))
			answer(c, 2, "")
		}, broker.NoAnswer, "login"},
		"refuses the virtual host": {func(c net.Conn) {
			greet(c, begin(""))
			answer(c, 1, frame(tune))
			answer(c, 2, frame(closes+"\x02\x12\x0bNOT_ALLOWED\x00\x0a\x00\x28"))
			silent(c)
		}, broker.VHostRefused, "NOT_ALLOWED"},
		"silent after open": {func(c net.Conn) {
			greet(c, begin(""))
			answer(c, 1, frame(tune))
			answer(c, 2, frame("\x00\x0a\x00\x29\x00"))
			answer(c, 1, "")
		}, broker.NoAnswer, "in time"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			noLeak(t)
			pool := broker.NewPool(0)
			defer pool.Close()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			address := server(t, func(c net.Conn) {
				if test.serve(c); test.kind == broker.NoAnswer {
					cancel()
					silent(c)
				}
			})
			_, err := pool.Join(ctx, broker.Config{Address: address, Dialer: loopback,
				Login: broker.Password("user", "secret"), Exchange: "group", Queue: "own", Declare: true})
			var failed *broker.Error
			if !errors.As(err, &failed) || failed.Kind != test.kind || !strings.Contains(failed.Reason, test.reason) {
				t.Fatalf("the error is %v, not %v: %s", err, test.kind, test.reason)
			}
			if failed.Host != address.Host || failed.Port != address.Port || strings.Contains(err.Error(), "secret") {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

// TestWhatIsNotReached joins where no connection is made.
func TestWhatIsNotReached(t *testing.T) {
	closed := server(t, silent)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Port = uint16(listener.Addr().(*net.TCPAddr).Port)
	_ = listener.Close()
	plain := server(t, func(c net.Conn) {
		_, _ = io.WriteString(c, begin(""))
		silent(c)
	})
	metadata := broker.Address{Host: "169.254.169.254", Port: 5672}
	public := broker.Address{Host: "192.0.3.1", Port: 5672}
	secure := plain
	secure.TLS = true
	tests := map[string]struct {
		address broker.Address
		dialer  *egress.Dialer
		kind    broker.Kind
		reason  string
	}{
		"refused":        {closed, loopback, broker.Unreachable, "connection refused"},
		"private":        {plain, &egress.Dialer{}, broker.AddressRefused, "not public"},
		"metadata":       {metadata, &egress.Dialer{}, broker.AddressRefused, "not public"},
		"public, no TLS": {public, &egress.Dialer{}, broker.AddressRefused, "must use TLS"},
		"not TLS":        {secure, loopback, broker.TLSFailed, "TLS"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			noLeak(t)
			pool := broker.NewPool(0)
			defer pool.Close()
			_, err := pool.Join(context.Background(), broker.Config{Address: test.address, Dialer: test.dialer,
				Login: broker.Password("user", "secret"), Exchange: "group", Queue: "own"})
			var failed *broker.Error
			if !errors.As(err, &failed) || failed.Kind != test.kind || !strings.Contains(failed.Reason, test.reason) {
				t.Errorf("the error is %v, not %v: %s", err, test.kind, test.reason)
			}
		})
	}
}

// noLeak fails the test if goroutines of it are left after it, its servers included.
func noLeak(t testing.TB) {
	t.Helper()
	before := runtime.NumGoroutine()
	t.Cleanup(func() {
		end := time.Now().Add(10 * time.Second)
		for runtime.NumGoroutine() > before {
			if time.Now().After(end) {
				stacks := make([]byte, 1<<20)
				t.Fatalf("goroutines are left:\n%s", stacks[:runtime.Stack(stacks, true)])
			}
			runtime.Gosched()
		}
	})
}

// TestJoinsAtATime has many links made on one connection of a broker that is slow: it is asked for few of them at a
// time, so that these are in time, and for no link whose join has ended meanwhile.
func TestJoinsAtATime(t *testing.T) {
	noLeak(t)
	const joins, atATime = 50, 16
	opened := make(chan struct{}, joins)
	address := server(t, func(c net.Conn) {
		greet(c, begin(""))
		answer(c, 1, frame(strings.Replace(tune, "\x00\x10", "\x07\xff", 1))) // as many channels as RabbitMQ
		answer(c, 2, frame("\x00\x0a\x00\x29\x00"))
		for {
			switch _, method, _ := readMethod(c); method {
			case "\x00\x14\x00\x0a": // channel.open, which is not answered
				opened <- struct{}{}
			case closes, "":
				return
			}
		}
	})
	pool := broker.NewPool(0)
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, joins)
	for i := range joins {
		go func() {
			_, err := pool.Join(ctx, broker.Config{Address: address, Dialer: loopback,
				Login: broker.Password("user", "secret"), Exchange: "group", Queue: fmt.Sprint("queue", i)})
			failed <- err
		}()
	}
	for range atATime {
		<-opened
	}
	cancel()
	for range joins {
		if err := <-failed; !errors.Is(err, context.Canceled) {
			t.Errorf("a join that is canceled fails with %v", err)
		}
	}
	pool.Close()
	if n := len(opened); n > 0 {
		t.Errorf("the broker is asked for %d links more than %d", n, atATime)
	}
}

// TestConsumeInTime has a broker not answer in time when a link begins to consume, which costs no other link of its
// connection anything.
func TestConsumeInTime(t *testing.T) {
	noLeak(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	consumers, returned := 0, make(chan struct{})
	address := linked(t, func(method, _ string) string {
		if method == "\x00\x3c\x00\x14" { // basic.consume
			if consumers++; consumers == 2 {
				cancel()
				<-returned
			}
		}
		return answers[method]
	})
	pool := broker.NewPool(0)
	defer pool.Close()
	config := broker.Config{Address: address, Dialer: loopback, Login: broker.Password("user", "secret"),
		Exchange: "group", Queue: "own"}
	first, second := join(t, pool, config), join(t, pool, config)
	receive(t, first, func(*broker.Delivery) {})
	if err := second.Receive(ctx, func(*broker.Delivery) {}); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	close(returned)
	second.Close()
	if idle, err := first.Idle(t.Context()); !idle || err != nil {
		t.Errorf("the queue of another link is idle: %v, %v", idle, err)
	}
	join(t, pool, config).Close()
	if n := pool.Connections(); n != 1 {
		t.Errorf("there are %d connections", n)
	}
}

// TestCloseInTime has a broker not answer when a link is closed, or while it begins to consume. The link ends in time,
// and no other link of its connection suffers.
func TestCloseInTime(t *testing.T) {
	const consume, closeChannel = "\x00\x3c\x00\x14", "\x00\x14\x00\x28"
	for name, silentAt := range map[string]string{"closing": closeChannel, "consuming": consume} {
		t.Run(name, func(t *testing.T) {
			noLeak(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			silent, ended := new(atomic.Bool), make(chan struct{})
			address := linked(t, func(method, _ string) string {
				if method == silentAt && silent.CompareAndSwap(true, false) {
					cancel()
					<-ended
				}
				return answers[method]
			})
			pool := broker.NewPool(0)
			defer pool.Close()
			config := broker.Config{Address: address, Dialer: loopback, Login: broker.Password("user", "secret"),
				Exchange: "group", Queue: "own"}
			first, second := join(t, pool, config), join(t, pool, config)
			receive(t, first, func(*broker.Delivery) {})
			silent.Store(true)
			if silentAt == consume {
				_ = second.Receive(ctx, func(*broker.Delivery) {})
			}
			second.Close()
			close(ended)
			if idle, err := first.Idle(t.Context()); !idle || err != nil {
				t.Errorf("the queue of another link is idle: %v, %v", idle, err)
			}
			if err := first.Err(); err != nil {
				t.Errorf("another link has ended: %v", err)
			}
		})
	}
}

// TestLateJoin repeats a join that was not answered in time. It does not lose the queue that the one before still
// makes, and then deletes.
func TestLateJoin(t *testing.T) {
	noLeak(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	repeated := make(chan struct{})
	happened := make(chan string, 8) // to the queue
	exists := false
	address := linked(t, func(method, rest string) string {
		switch {
		case method == "\x00\x32\x00\x28": // queue.delete
			exists = false
			happened <- "deleted"
		case method != "\x00\x32\x00\x0a": // queue.declare
		case rest[6]&1 == 0:
			exists = true
			happened <- "made"
			cancel()
			<-repeated
		case exists:
			happened <- "found"
		default: // not found: channel.close
			return "\x00\x14\x00\x28\x01\x94\x09NOT_FOUND\x00\x32\x00\x0a"
		}
		return answers[method]
	})
	pool := broker.NewPool(0)
	defer pool.Close()
	config := broker.Config{Address: address, Dialer: loopback, Login: broker.Password("user", "secret"),
		Exchange: "group", Queue: "own", Declare: true}
	if _, err := pool.Join(ctx, config); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	var failed *broker.Error
	if _, err := pool.Join(ctx, config); !errors.As(err, &failed) || !strings.Contains(failed.Reason, "earlier join") {
		t.Errorf("a join beside it fails with %v", err)
	}
	joined := make(chan error)
	go func() {
		_, err := pool.Join(t.Context(), config)
		joined <- err
	}()
	close(repeated)
	if err := <-joined; err != nil {
		t.Error(err)
	}
	for _, want := range []string{"made", "deleted", "made"} {
		if got := <-happened; got != want {
			t.Errorf("the queue was %s, want %s", got, want)
		}
	}
}

// linked starts a broker that answers each method of a link with what reply returns, or not at all if that is empty.
func linked(t *testing.T, reply func(method, rest string) string) broker.Address {
	return server(t, func(c net.Conn) {
		greet(c, begin(""))
		answer(c, 1, frame(tune))
		answer(c, 2, frame("\x00\x0a\x00\x29\x00"))
		for channel, method, rest := readMethod(c); method != "" && method != closes; channel, method, rest = readMethod(c) {
			if payload := reply(method, rest); payload != "" {
				_, _ = io.WriteString(c, onChannel(channel, payload))
			}
		}
	})
}

// answers are the answers of a broker to the methods of a link.
var answers = map[string]string{
	"\x00\x14\x00\x0a": "\x00\x14\x00\x0b\x00\x00\x00\x00",                        // channel.open
	"\x00\x14\x00\x28": "\x00\x14\x00\x29",                                        // channel.close
	"\x00\x28\x00\x0a": "\x00\x28\x00\x0b",                                        // exchange.declare
	"\x00\x32\x00\x0a": "\x00\x32\x00\x0b\x03own\x00\x00\x00\x00\x00\x00\x00\x00", // queue.declare
	"\x00\x32\x00\x28": "\x00\x32\x00\x29\x00\x00\x00\x00",                        // queue.delete
	"\x00\x32\x00\x14": "\x00\x32\x00\x15",                                        // queue.bind
	"\x00\x55\x00\x0a": "\x00\x55\x00\x0b",                                        // confirm.select
	"\x00\x3c\x00\x0a": "\x00\x3c\x00\x0b",                                        // basic.qos
	"\x00\x3c\x00\x14": "\x00\x3c\x00\x15\x01x",                                   // basic.consume
}

// onChannel is a frame of a method on a channel.
func onChannel(channel uint16, payload string) string {
	f := []byte(frame(payload))
	binary.BigEndian.PutUint16(f[1:], channel)
	return string(f)
}

// readMethod reads a frame, and returns its channel, which method it has, and the method's arguments. The method is
// empty at the end of the connection.
func readMethod(conn net.Conn) (channel uint16, method, arguments string) {
	head := make([]byte, 7)
	if _, err := io.ReadFull(conn, head); err != nil {
		return 0, "", ""
	}
	payload := make([]byte, binary.BigEndian.Uint32(head[3:])+1)
	if _, err := io.ReadFull(conn, payload); err != nil {
		return 0, "", ""
	}
	if head[0] != 1 { // a heartbeat
		return readMethod(conn)
	}
	return binary.BigEndian.Uint16(head[1:]), string(payload[:4]), string(payload[4:])
}

// TestStallsLate has a broker stop answering at each step after the login. When the joins have been answered, the
// connection that was made for them is closed.
func TestStallsLate(t *testing.T) {
	const declare = "\x00\x32\x00\x0a"
	steps := map[string]string{"connection": "", "channel": "\x00\x14\x00\x0a", "exchange": "\x00\x28\x00\x0a",
		"queue": declare, "binding": "\x00\x32\x00\x14", "confirms": "\x00\x55\x00\x0a", "prefetch": "\x00\x3c\x00\x0a"}
	for name, stallsAt := range steps {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const joins = 3
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var stalled atomic.Int32
			closed := make(chan struct{})
			address := server(t, func(c net.Conn) {
				defer close(closed) // there is one connection
				greet(c, begin(""))
				answer(c, 1, frame(tune))
				if stallsAt == "" {
					answer(c, 2, "")
					cancel()
					silent(c)
					return
				}
				answer(c, 2, frame("\x00\x0a\x00\x29\x00"))
				for {
					channel, method, rest := readMethod(c)
					switch {
					case method == "":
						return
					case method == declare && rest[3+rest[2]]&1 != 0: // it is not there: channel.close
						_, _ = io.WriteString(c, onChannel(channel, "\x00\x14\x00\x28\x01\x94\x09NOT_FOUND\x00\x32\x00\x0a"))
					case method == stallsAt:
						if stalled.Add(1) == joins {
							cancel()
						}
					case answers[method] != "":
						_, _ = io.WriteString(c, onChannel(channel, answers[method]))
					}
				}
			})
			pool := broker.NewPool(time.Hour)
			defer pool.Close()
			failed := make(chan error, joins)
			for i := range joins {
				go func() {
					_, err := pool.Join(ctx, broker.Config{Address: address, Dialer: loopback,
						Login: broker.Password("user", "secret"), Exchange: "group", Queue: fmt.Sprint("own", i), Declare: true})
					failed <- err
				}()
			}
			for range joins {
				if err := <-failed; !errors.Is(err, context.Canceled) && stallsAt != "" || err == nil {
					t.Errorf("the error is %v", err)
				}
			}
			select {
			case <-closed:
			case <-time.After(30 * time.Second):
				t.Error("the connection stays open")
			}
			if n := pool.Connections(); n != 0 {
				t.Errorf("there are %d connections", n)
			}
		})
	}
}
