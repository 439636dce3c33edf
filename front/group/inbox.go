// SPDX-License-Identifier: Apache-2.0

package group

import (
	"context"
	"errors"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aip-gateway/aip-gateway/front/group/broker"
	"github.com/aip-gateway/aip-gateway/internal/fewlines"
	"github.com/aip-gateway/aip-gateway/replay"
)

// The inbox of an agent, as the SDK of AIP v02 has it: a queue at a broker. It stays while the agent is away. Leaders
// write invitations there (v02.02 §7.1), and an agent's refusals are written to the inbox of the Leader.
const (
	inboxPrefix   = "inbox_" // before an AIC: the name of the queue, and the routing key
	inboxExchange = "inbox.topic"
	inboxExpires  = 60 * 24 * time.Hour // the broker deletes the queue after this time without a consumer
	inboxKeeps    = 7 * 24 * time.Hour  // a message

	// inboxPrefetch is the number of a Partner's invitations in work. Others wait at the broker.
	inboxPrefetch = 16
	// maxInboxMessage is the largest size of an invitation, in bytes. A larger message arrives empty.
	maxInboxMessage = 256 << 10
)

// Inbox is the broker of a Partner's inbox. The Partner logs in there by its certificate, over TLS.
type Inbox struct {
	Host  string
	Port  int
	VHost string
}

// ParseInbox reads a URL: amqps://host, with or without a port, and the virtual host behind it.
func ParseInbox(s string) (*Inbox, error) {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "amqps" || u.Hostname() == "" {
		return nil, errors.New("it must be amqps://<host>/<virtual host>")
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("it has more than a host, a port and a virtual host; the Partner logs in by its certificate")
	}
	at := &Inbox{Host: normaliseHost(u.Hostname()), Port: portTLS, VHost: "/"}
	if port := u.Port(); port != "" {
		if at.Port, err = strconv.Atoi(port); err != nil || at.Port < 1 || at.Port > 65535 {
			return nil, errors.New("the port must be a number from 1 to 65535")
		}
	}
	if path := strings.TrimPrefix(u.EscapedPath(), "/"); path != "" {
		if at.VHost, err = url.PathUnescape(path); err != nil || strings.Contains(path, "/") {
			return nil, errors.New("the virtual host must be one name; write %2F for a slash in it")
		}
	}
	return at, nil
}

// URL returns the URL of the broker and its virtual host.
func (at *Inbox) URL() string {
	return "amqps://" + net.JoinHostPort(at.Host, strconv.Itoa(at.Port)) + "/" + url.PathEscape(at.VHost)
}

// Broker returns the pattern for the broker of the inbox only.
func (at *Inbox) Broker() Broker { return Broker{host: at.Host, port: at.Port, tls: true} }

// inboxShard is the shard of a Partner's inbox: its owner alone reads it.
func (e *Engine) inboxShard(partner string) int { return replay.ShardOf(e.set.Count(), partner) }

// inbox reads the inbox of a Partner, by one goroutine. The goroutine connects it again whenever the link is lost. It
// ends when its Partner has no inbox any more, or its home closes.
type inbox struct {
	engine  *Engine
	home    *home
	partner string
	kick    chan struct{} // holds one value while there may be another configuration

	claims   claims         // of invitations without a user_id
	nameless fewlines.Limit // lines about them
	dropped  fewlines.Limit // lines about dropped messages

	mu sync.Mutex
	// unsent are the ids of refusals not taken by the broker; each has ended the link. They are not sent again.
	unsent map[string]bool
}

// readInbox begins to read the inbox of a Partner, if its shard is owned, or has its reader look at the configuration.
// The caller holds e.mu.
func (e *Engine) readInbox(name string) {
	if i := e.inboxes[name]; i != nil {
		select {
		case i.kick <- struct{}{}:
		default:
		}
		return
	}
	h := e.open[e.inboxShard(name)]
	if p := e.present(name); h == nil || p == nil || p.Inbox == nil {
		return
	}
	i := &inbox{engine: e, home: h, partner: name, kick: make(chan struct{}, 1), unsent: make(map[string]bool)}
	e.inboxes[name] = i
	e.inboxCount(name).Open = true
	h.work.Go(i.run)
}

// next returns the configuration for reading the inbox; nil if it is not any more.
func (i *inbox) next() *Partner {
	e := i.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	p := e.present(i.partner)
	if p == nil || p.Inbox == nil || i.home.closed {
		delete(e.inboxes, i.partner)
		e.inboxCount(i.partner).Open = false
		return nil
	}
	return p
}

func (i *inbox) run() {
	failures := 0
	for p := i.next(); p != nil; p = i.next() {
		wasRead, err := i.read(p)
		if err == nil {
			failures = 0
			continue
		}
		if wasRead {
			failures = 0
		}
		if failures++; failures == 1 && i.home.base.Err() == nil {
			// What to do: see docs/groups.md#the-inbox.
			p.Log.Warn("the inbox of groups cannot be read; trying again", "partner", i.partner, "error", err)
		}
		select {
		case <-time.After(backoff(failures)):
		case <-i.kick:
		case <-i.home.base.Done():
		}
	}
}

// errCommonName is the reason of an inbox not read.
var errCommonName = errors.New("the common name of the client certificate is not the AIC of this Partner, by which " +
	"the broker would know it")

// read reads the inbox until the link has ended, and returns the reason, and whether it was read; without an error,
// there is another configuration.
func (i *inbox) read(p *Partner) (wasRead bool, err error) {
	login, err := p.certificateLogin()
	switch {
	case err != nil:
		return false, err
	case login == broker.Certificate(""):
		return false, errCommonName
	}
	at, queue := p.Inbox, inboxPrefix+p.AIC
	ctx, cancel := context.WithTimeout(i.home.base, joinLimit)
	defer cancel()
	l, err := i.engine.dial.Join(ctx, broker.Config{
		Owner: i.partner + "\x00" + queue, Name: connectionName(p.AIC), Login: login, Dialer: p.dialer,
		Address:  broker.Address{Host: at.Host, Port: uint16(at.Port), VHost: at.VHost, TLS: true},
		Exchange: inboxExchange, Topic: true, RoutingKey: queue, Queue: queue, Declare: true,
		Expires: inboxExpires, KeepMessages: inboxKeeps, Prefetch: inboxPrefetch, MaxMessage: maxInboxMessage,
	})
	if err != nil {
		return false, err
	}
	var work sync.WaitGroup
	defer work.Wait()
	defer l.Close()
	err = l.Receive(ctx, func(d *broker.Delivery) { work.Go(func() { i.receive(l, d) }) })
	if err != nil {
		return false, err
	}
	p.Log.Info("the inbox of groups is read", "partner", i.partner, "host", at.Host, "port", at.Port)
	i.connected(true)
	defer i.connected(false)
	for {
		select {
		case <-l.Done():
			return true, l.Err()
		case <-i.home.base.Done():
			return true, i.home.base.Err()
		case <-i.kick:
			if now := i.engine.partner(i.partner); now == nil || now.Inbox == nil || *now.Inbox != *at || now.AIC != p.AIC {
				return true, nil
			}
		}
	}
}

func (i *inbox) connected(is bool) {
	i.engine.mu.Lock()
	defer i.engine.mu.Unlock()
	i.engine.inboxCount(i.partner).Connected = is
}
