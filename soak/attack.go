// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/devpki"
	"github.com/aip-gateway/aip-gateway/internal/leader"
	"github.com/aip-gateway/aip-gateway/task"
)

// attack is a second Leader, and callers without a certificate, who take as much as they can get.
type attack struct {
	site  *site
	ended chan struct{} // closed when all of it has ended

	kinds [4]tally
}

// tally counts what one kind of attack has done.
type tally struct {
	name string

	mu      sync.Mutex // guards what follows
	taken   int
	refused int
	last    error // that something was refused with
}

func (t *tally) note(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case err == nil:
		t.taken++
	case !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded): // the end of the attack
		t.refused++
		t.last = err
	}
}

// The kinds of attack.
const (
	deadWebhooks = iota
	slowReaders
	hangingStarts
	inventedSenders
)

// How hard they are: requests a second, or at once.
const (
	hooksASecond   = 30
	readers        = 100
	hanging        = 20
	sendersASecond = 20
	bigProduct     = 1 << 20
	bigMessage     = 3800 << 10
)

func newAttack(s *site) *attack {
	a := &attack{site: s, ended: make(chan struct{})}
	for i, name := range []string{
		"webhooks at dead hosts", "readers that do not read", "starts of 4 MiB that hang", "invented senders",
	} {
		a.kinds[i].name = name
	}
	return a
}

// run attacks until ctx is done.
func (a *attack) run(ctx context.Context) {
	defer close(a.ended)
	second, err := a.site.client(&a.site.pki.LeaderV1)
	if err != nil {
		a.kinds[deadWebhooks].note(err)
		return
	}
	defer second.Close()
	var group sync.WaitGroup
	group.Go(func() { a.setDeadWebhooks(ctx, second) })
	group.Go(func() { a.readSlowly(ctx, second) })
	group.Go(func() { a.startHanging(ctx, second) })
	group.Go(func() { a.inventSenders(ctx) })
	group.Wait()
}

// each calls f so many times a second, until ctx is done.
func each(ctx context.Context, aSecond int, f func(n int)) {
	ticker := time.NewTicker(time.Second / time.Duration(aSecond))
	defer ticker.Stop()
	for n := 0; ; n++ {
		select {
		case <-ticker.C:
			f(n)
		case <-ctx.Done():
			return
		}
	}
}

// setDeadWebhooks gives each of many tasks a webhook at a host of its own, where no server listens.
func (a *attack) setDeadWebhooks(ctx context.Context, c *leader.Client) {
	each(ctx, hooksASecond, func(n int) {
		id := fmt.Sprint("dead-", n)
		url := fmt.Sprintf("http://127.%d.%d.%d:9/", 1+n>>16, n>>8&255, n&255)
		err := setWebhook(ctx, c, a.site.front, id, url)
		if err == nil {
			_, err = c.Do(ctx, begin(id, "hello"))
		}
		a.kinds[deadWebhooks].note(err)
	})
}

func begin(id, text string) *task.Call {
	return &task.Call{Message: task.Message{Command: task.Start, TaskID: id, DataItems: []task.DataItem{task.Text(text)}}}
}

// readSlowly asks for the stream of a task with a big product over many connections, and reads none of them.
func (a *attack) readSlowly(ctx context.Context, c *leader.Client) {
	for {
		_, err := c.Do(ctx, begin("big", "hello "+strings.Repeat("x", bigProduct)))
		if err == nil || ctx.Err() != nil {
			break
		}
		wait(ctx, time.Second)
	}
	config, err := a.site.tls(&a.site.pki.LeaderV1)
	if err != nil {
		a.kinds[slowReaders].note(err)
		return
	}
	config.ServerName = "localhost"
	body := fmt.Sprintf(`{"jsonrpc":"2.0","method":"stream","id":1,"params":{"message":`+
		`{"senderId":%q,"command":"re-stream","taskId":"big"}}}`, c.Sender)
	request := fmt.Sprintf("POST /stream HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n"+
		"Content-Length: %d\r\n\r\n%s", a.site.front, len(body), body)
	var group sync.WaitGroup
	defer group.Wait()
	for range readers {
		group.Go(func() {
			for ctx.Err() == nil {
				a.kinds[slowReaders].note(readNothing(ctx, a.site.front, config, request))
			}
		})
	}
}

// readNothing sends a request and reads the first line of the answer. It returns when the connection is cut, or after a
// minute.
func readNothing(ctx context.Context, addr string, config *tls.Config, request string) error {
	raw, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		wait(ctx, time.Second)
		return err
	}
	defer raw.Close()
	_ = raw.(*net.TCPConn).SetReadBuffer(4096) // only makes it harder
	conn := tls.Client(raw, config)
	if err := conn.HandshakeContext(ctx); err != nil {
		wait(ctx, time.Second)
		return err
	}
	if _, err := conn.Write([]byte(request)); err != nil {
		return err
	}
	line, err := bufio.NewReaderSize(conn, 16).ReadSlice('\n')
	if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
		return err
	}
	if !strings.HasPrefix(string(line), "HTTP/1.1 200") {
		return fmt.Errorf("answered %q", line)
	}
	wait(ctx, time.Minute)
	return nil
}

// startHanging sends large messages to an agent that takes its time.
func (a *attack) startHanging(ctx context.Context, c *leader.Client) {
	var group sync.WaitGroup
	defer group.Wait()
	text := "slow 20 " + strings.Repeat("x", bigMessage)
	for i := range hanging {
		group.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				_, err := c.Do(ctx, begin(fmt.Sprintf("hanging-%d-%d", i, n), text))
				a.kinds[hangingStarts].note(err)
				wait(ctx, time.Second)
			}
		})
	}
}

// inventSenders calls without a certificate, each time under another name.
func (a *attack) inventSenders(ctx context.Context) {
	c, err := a.site.client(nil)
	if err != nil {
		a.kinds[inventedSenders].note(err)
		return
	}
	defer c.Close()
	each(ctx, sendersASecond, func(n int) {
		aic, err := identity.MakeV2(identity.FieldsV2{}, devpki.Salt)
		if err == nil {
			call := begin(fmt.Sprint("invented-", n), "slow 10")
			call.Message.SenderID = string(aic)
			call.Terms.Response = time.Millisecond
			_, err = c.Do(ctx, call)
		}
		a.kinds[inventedSenders].note(err)
	})
}

// print says what the attacks were.
func (a *attack) print() {
	fmt.Printf("\n%-34s %10s %10s  %s\n", "attacks", "taken", "refused", "such as")
	for i := range a.kinds {
		t := &a.kinds[i]
		fmt.Printf("%-34s %10d %10d", t.name, t.taken, t.refused)
		if t.last != nil {
			fmt.Printf("  %.120s", t.last)
		}
		fmt.Println()
	}
}
