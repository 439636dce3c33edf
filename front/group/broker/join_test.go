// SPDX-License-Identifier: Apache-2.0

package broker_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/front/group/broker"
	"github.com/aip-gateway/aip-gateway/internal/asynctest"
	"github.com/aip-gateway/aip-gateway/internal/egress"
	"github.com/aip-gateway/aip-gateway/internal/freeport"
)

// TestNotABroker joins at another server, or at a broker failing at each step of the login.
func TestNotABroker(t *testing.T) {
	tests := map[string]struct {
		serve  func(net.Conn)
		kind   broker.Kind // NoAnswer if it is then silent, for longer than the time of the join
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

// TestWhatIsNotReached joins without a possible connection.
func TestWhatIsNotReached(t *testing.T) {
	closed := server(t, silent)
	closed.Port = uint16(freeport.Closed(t))
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
		defer func() {
			if runtime.NumGoroutine() > before {
				stacks := make([]byte, 1<<20)
				t.Logf("goroutines are left:\n%s", stacks[:runtime.Stack(stacks, true)])
			}
		}()
		asynctest.Eventually(t, "no goroutine is left", func() bool { return runtime.NumGoroutine() <= before })
	})
}

// TestJoinsAtATime has many links made on one connection of a slow broker: it is asked for few of them at a time, so
// these are in time, and for no link after its join has ended.
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
			case "\x00\x14\x00\x0a": // channel.open, not answered
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

// TestConsumeInTime has a broker not answer in time when a link begins to consume. This costs no other link of its
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

// TestLateJoin repeats a join not answered in time. It does not lose its queue to the earlier one, still making it and
// then deleting it.
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

// TestStallsLate has a broker stop answering at each step after the login. When the joins have been answered, the
// connection made for them is closed.
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
			ends := sync.OnceFunc(func() { close(closed) })
			address := server(t, func(c net.Conn) {
				defer ends() // there is one connection, unless a join begins when the others have failed
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
			case <-time.After(2 * time.Minute):
				t.Error("the connection stays open")
			}
			noConnections(t, pool)
		})
	}
}
