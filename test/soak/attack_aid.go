// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/aunpeer"
)

// How hard the AID attacks: requests a second, or at once.
const (
	creatorsAtOnce = 8
	deafAtOnce     = 32
	mailASecond    = 50
	mailSize       = 32 << 10
)

// hostileAID is logged in, and uses up what it can.
func hostileAID(a *attack) []*kind {
	return []*kind{
		{name: "AID: task.create that is refused", act: a.createInVain, forbidden: true, least: 10_000},
		{name: "AID: subscribers that do not read", act: a.subscribeDeaf, least: 40},
		{name: "AID: messages to an AID that is away", act: a.fillInbox, least: 1500},
		{name: "AID: positions of many devices", act: a.leavePositions, least: 200},
	}
}

// hostileToken returns a token of the hostile AID, which logs in once.
func (a *attack) hostileToken(ctx context.Context) (string, error) {
	a.tokens.Lock()
	defer a.tokens.Unlock()
	if a.token == "" {
		token, err := a.fixture.aun(a.fixture.hostileAID, hostileAddress).Login(ctx)
		if err != nil {
			return "", err
		}
		a.token = token.Access
	}
	return a.token, nil
}

// online calls f with a connection of the hostile AID, and again with another one when f returns.
func (a *attack) online(ctx context.Context, t *tally, c *aunpeer.Client, f func(*aunpeer.Conn)) {
	var token string
	for ctx.Err() == nil {
		var err error
		if token == "" {
			token, err = a.hostileToken(ctx)
		}
		if err == nil {
			var conn *aunpeer.Conn
			if conn, _, err = c.Connect(ctx, token, nil); err == nil {
				f(conn)
			}
			if conn != nil {
				conn.Cut()
			}
		}
		if err != nil {
			t.note(err)
			wait(ctx, 5*time.Second)
		}
	}
}

// device returns the hostile AID as a device of its own.
func (a *attack) device(name string) *aunpeer.Client {
	c := a.fixture.aun(a.fixture.hostileAID, hostileAddress)
	c.Device = name
	return c
}

// createInVain creates tasks that no agent takes.
func (a *attack) createInVain(ctx context.Context, t *tally) {
	a.online(ctx, t, a.device("creator"), func(conn *aunpeer.Conn) {
		atOnce(ctx, creatorsAtOnce, 5*time.Millisecond, func(i, round int) {
			if conn.Err() != nil {
				wait(ctx, time.Second)
				return
			}
			_, err := conn.Call(ctx, "task.create", map[string]any{"to": aunAgent, "input": 7})
			t.note(err)
		})
	})
}

// subscribeDeaf has many connections that follow tasks with much news, and read nothing.
func (a *attack) subscribeDeaf(ctx context.Context, t *tally) {
	atOnce(ctx, deafAtOnce, time.Second, func(i, round int) {
		c := a.device(fmt.Sprint("deaf-", i))
		deaf := new(deafness)
		c.HTTP = a.fixture.aunHTTP(hostileAddress, deaf.wrap)
		a.online(ctx, t, c, func(conn *aunpeer.Conn) {
			defer deaf.is.Store(false)
			created, err := conn.Create(ctx, aunAgent, "stream 200 20 "+strings.Repeat("x", 4<<10))
			t.note(err)
			if err != nil {
				wait(ctx, time.Second)
				return
			}
			_, err = conn.Subscribe(ctx, created.TaskID)
			t.note(err)
			deaf.is.Store(true)
			wait(ctx, 30*time.Second)
		})
	})
}

// fillInbox sends messages to an AID that has left, which takes some of each sender.
func (a *attack) fillInbox(ctx context.Context, t *tally) {
	away, err := a.fixture.aun(a.fixture.awayAID, hostileAddress).Online(ctx)
	if err != nil {
		t.note(err)
		return
	}
	_, err = away.Call(ctx, "message.pull", map[string]any{})
	away.Cut()
	if err != nil { // otherwise it has an inbox from now on
		t.note(err)
		return
	}
	a.online(ctx, t, a.device("mail"), func(conn *aunpeer.Conn) {
		each(ctx, mailASecond, func(n int) {
			if conn.Err() != nil {
				return
			}
			_, err := conn.Call(ctx, "message.send", map[string]any{"to": a.fixture.awayAID.AID,
				"payload": map[string]any{"type": "text", "text": strings.Repeat("x", mailSize)}})
			t.note(err)
		})
	})
}

// leavePositions follows a task as ever more devices.
func (a *attack) leavePositions(ctx context.Context, t *tally) {
	for n := 0; ctx.Err() == nil; n++ {
		once, cancel := context.WithCancel(ctx)
		a.online(once, t, a.device(fmt.Sprint("device-", n)), func(conn *aunpeer.Conn) {
			defer cancel()
			created, err := conn.Create(once, aunAgent, "hello")
			if err == nil {
				_, err = conn.Subscribe(once, created.TaskID)
			}
			t.note(err)
		})
		cancel()
		wait(ctx, 100*time.Millisecond)
	}
}

// deafness makes connections that read nothing more while it is on.
type deafness struct{ is atomic.Bool }

func (d *deafness) wrap(c net.Conn) net.Conn {
	return &deafConn{Conn: c, deafness: d, closed: make(chan struct{})}
}

type deafConn struct {
	net.Conn
	*deafness
	once   sync.Once
	closed chan struct{}
}

// Read implements net.Conn.
func (c *deafConn) Read(p []byte) (int, error) {
	if c.is.Load() {
		<-c.closed
		return 0, net.ErrClosed
	}
	return c.Conn.Read(p)
}

// Close implements net.Conn.
func (c *deafConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}
