// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/aip-gateway/aip-gateway/task"
)

// How hard the Leader attacks: requests a second, or at once.
const (
	hooksASecond = 30
	readers      = 100
	hanging      = 20
	lists        = 8
	bigProduct   = 1 << 20
	bigMessage   = 3800 << 10
)

// hostileLeader has a certificate, and uses up what it can.
func hostileLeader(a *attack) []*kind {
	return []*kind{
		{name: "Leader: webhooks at dead hosts", act: a.as("", a.setDeadWebhooks), least: 900},
		{name: "Leader: readers that do not read", act: a.as("", a.readSlowly), least: 90},
		{name: "Leader: starts of 4 MiB that hang", act: a.as("", a.startHanging), least: 15},
		{name: "Leader: lists", act: a.as("", a.list), least: 1500},
		{name: "Leader: tasks of others", act: a.as("", a.readForeignTasks), forbidden: true, least: 600},
	}
}

// setDeadWebhooks gives each of many tasks a webhook at a host of its own, where no server listens.
func (a *attack) setDeadWebhooks(ctx context.Context, c *culprit, t *tally) {
	each(ctx, hooksASecond, func(n int) {
		id := fmt.Sprint("dead-", n)
		url := fmt.Sprintf("http://127.%d.%d.%d:9/", 1+n>>16, n>>8&255, n&255)
		err := setWebhook(ctx, c.Client, a.fixture.Front, id, url)
		if err == nil {
			_, err = c.Do(ctx, begin(id, "hello"))
		}
		t.note(err)
	})
}

// readSlowly asks for the stream of a task with a big product over many connections, and reads none of them.
func (a *attack) readSlowly(ctx context.Context, c *culprit, t *tally) {
	for {
		_, err := c.Do(ctx, begin("big", "hello "+strings.Repeat("x", bigProduct)))
		if err == nil || ctx.Err() != nil {
			break
		}
		wait(ctx, time.Second)
	}
	config, err := a.fixture.tls(c.file)
	if err != nil {
		t.note(err)
		return
	}
	config.ServerName = "localhost"
	body := fmt.Sprintf(`{"jsonrpc":"2.0","method":"stream","id":1,"params":{"message":`+
		`{"senderId":%q,"command":"re-stream","taskId":"big"}}}`, c.Sender)
	request := fmt.Sprintf("POST /stream HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n"+
		"Content-Length: %d\r\n\r\n%s", a.fixture.Front, len(body), body)
	atOnce(ctx, readers, 0, func(int, int) { t.note(readNothing(ctx, a.fixture.Front, config, request)) })
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
func (a *attack) startHanging(ctx context.Context, c *culprit, t *tally) {
	text := "slow 20 " + strings.Repeat("x", bigMessage)
	atOnce(ctx, hanging, time.Second, func(i, round int) {
		_, err := c.Do(ctx, begin(fmt.Sprintf("hanging-%d-%d", i, round), text))
		t.note(err)
	})
}

// list asks for its tasks, of which there are more and more.
func (a *attack) list(ctx context.Context, c *culprit, t *tally) {
	atOnce(ctx, lists, 100*time.Millisecond, func(int, int) {
		t.note(a.post(ctx, c, "/", `{"jsonrpc":"2.0","id":1,"method":"ListTasks","params":{"pageSize":100}}`))
	})
}

// post sends a JSON-RPC request as a hostile Leader, and returns an error if the answer has no result.
func (a *attack) post(ctx context.Context, c *culprit, path, body string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+a.fixture.Front+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("A2A-Version", "1.0")
	res, err := c.HTTP.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(res.Body, 16<<20))
	if err == nil && !bytes.Contains(answer, []byte(`"result"`)) {
		err = fmt.Errorf("answered %.200q", answer)
	}
	return err
}

// readForeignTasks asks for tasks of the honest Leaders.
func (a *attack) readForeignTasks(ctx context.Context, c *culprit, t *tally) {
	each(ctx, 20, func(n int) {
		_, err := c.Do(ctx, &task.Call{Message: task.Message{Command: task.Get, TaskID: fmt.Sprint("soak-", n%1000)}})
		t.note(err)
	})
}
