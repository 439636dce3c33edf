// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/freeport"
	"github.com/aip-gateway/aip-gateway/internal/rabbittest"
)

// A group task is one message in (its start), and one message out for each of its statuses: accepted, working and
// awaiting-completion.
const groupMessages = 1 + groupStatuses
const groupStatuses = 3

// How many group tasks the load has open at once, and of how many groups the memory is the slope.
const (
	groupWindow           = 128
	groupsFew, groupsMany = 50, 450
)

// groups measures groups over a broker of its own.
func groups(ctx context.Context, o settings) error {
	b, err := rabbittest.Start(rabbittest.Config{Schedulers: 2})
	if err != nil {
		return err
	}
	defer b.Close()
	if err := groupTasks(ctx, o, b); err != nil {
		return err
	}
	return memoryOfGroups(ctx, o, b)
}

// groupTasks measures the tasks of a group: the gateway as its member, beside a member that is nothing but a consumer
// which publishes, with confirms, the same messages.
func groupTasks(ctx context.Context, o settings, b *rabbittest.Broker) error {
	s, err := newGroupSite(ctx, o.caddy, b)
	if err != nil {
		return err
	}
	defer s.close()
	leader, err := s.lead(ctx, 0)
	if err != nil {
		return err
	}
	defer leader.conn.Close()
	answers, err := leader.learn(ctx)
	if err != nil {
		return err
	}
	bare, err := s.lead(ctx, 1)
	if err != nil {
		return err
	}
	defer bare.conn.Close()
	stop, err := bare.follow(answers)
	if err != nil {
		return err
	}
	defer stop()

	var rates, ratios, cpus []float64
	for range o.rounds {
		before, err := s.cpu()
		if err != nil {
			return err
		}
		done, took, err := leader.load(ctx, o.round)
		if err != nil {
			return err
		}
		after, err := s.cpu()
		if err != nil {
			return err
		}
		most, elapsed, err := bare.load(ctx, o.round)
		if err != nil {
			return err
		}
		rate := float64(done) / took.Seconds()
		rates = append(rates, groupMessages*rate)
		ratios = append(ratios, rate/(float64(most)/elapsed.Seconds()))
		cpus = append(cpus, float64((after-before).Microseconds())/float64(groupMessages*done))
	}
	t := o.table("messages of group tasks, in and out", "median", "least", "most")
	t.row("messages a second", spread(rates)...)
	t.row("to a bare consumer-publisher's", spread(ratios)...)
	t.row("µs of CPU for each message", spread(cpus)...)
	return nil
}

// memoryOfGroups measures what a group takes in which nothing happens, in a process in which nothing else has happened.
func memoryOfGroups(ctx context.Context, o settings, b *rabbittest.Broker) error {
	s, err := newGroupSite(ctx, o.caddy, b)
	if err != nil {
		return err
	}
	defer s.close()
	var at [2]float64
	n := 2 // the first ones are those of the load
	for i, many := range []int{groupsFew, groupsMany} {
		for ; n < many; n++ {
			l, err := s.lead(ctx, n)
			if err != nil {
				return err
			}
			l.conn.Close()
			if err := s.invite(ctx, l); err != nil {
				return err
			}
		}
		if at[i], err = s.idleRSS(ctx); err != nil {
			return err
		}
	}
	o.table("memory of a group in which nothing happens", "KiB each").
		row("one Leader's groups", (at[1]-at[0])/(groupsMany-groupsFew)/1024)
	return nil
}

// groupSite is a gateway that may take part in groups, over mutual TLS, and their broker.
type groupSite struct {
	*site
	broker  *rabbittest.Broker
	address string // of the site with groups
	partner string // AIC
	client  *http.Client
}

func newGroupSite(ctx context.Context, caddy string, b *rabbittest.Broker) (_ *groupSite, err error) {
	aic, err := identity.MakeV1(identity.FieldsV1{})
	if err != nil {
		return nil, err
	}
	port, err := freeport.Take()
	if err != nil {
		return nil, err
	}
	s := &groupSite{broker: b, partner: string(aic), address: fmt.Sprint("localhost:", port)}
	s.site, err = newSite(ctx, caddy, siteConfig{
		store: storeState + "\n\t\tnotify {\n\t\t\tallow_networks 127.0.0.0/8\n\t\t}",
		more: fmt.Sprintf("https://localhost:%d {\n\timport mutual\n\taip_gateway a2a/legacy http://127.0.0.1:AGENT {\n"+
			"\t\taic %s\n\t\tgroup {\n\t\t\tallow_brokers 127.0.0.1\n\t\t\tmax_groups 10000\n\t\t}\n"+
			"\t\tlimits {\n\t\t\ttasks_per_leader 100000000\n\t\t}\n\t}\n}\n", port, aic),
	})
	if err != nil {
		return nil, err
	}
	s.client = &http.Client{Transport: &http.Transport{TLSClientConfig: s.leader}}
	return s, nil
}

// groupLead is the Leader of one group, for one task after the other.
type groupLead struct {
	s        *groupSite
	id       string
	conn     *amqp.Connection
	channel  *amqp.Channel
	heard    <-chan amqp.Delivery
	started  int64
	exchange string
}

// lead makes the n-th group. The first one's member is the gateway.
func (s *groupSite) lead(ctx context.Context, n int) (*groupLead, error) {
	l := &groupLead{s: s, id: fmt.Sprint("group-", n), exchange: fmt.Sprint("group-", n)}
	if n == 0 {
		if err := s.makeUser(); err != nil {
			return nil, err
		}
	}
	var err error
	if l.conn, err = amqp.Dial("amqp://bench:bench@" + s.broker.Address() + "/"); err != nil {
		return nil, err
	}
	if l.channel, err = l.conn.Channel(); err == nil {
		err = l.channel.ExchangeDeclare(l.exchange, "fanout", true, false, false, false, nil)
	}
	if err == nil && n < 2 {
		_, err = l.channel.QueueDeclare("leader-"+l.id, true, false, false, false, nil)
		if err == nil {
			err = l.channel.QueueBind("leader-"+l.id, "", l.exchange, false, nil)
		}
		if err == nil {
			l.heard, err = l.channel.Consume("leader-"+l.id, "", true, false, false, false, nil)
		}
	}
	if err == nil && n == 0 {
		err = s.invite(ctx, l)
	}
	if err != nil {
		l.conn.Close()
		return nil, err
	}
	return l, nil
}

func (s *groupSite) makeUser() error {
	if err := s.broker.AddUser("bench", "bench"); err != nil {
		return err
	}
	return s.broker.Permit("bench", "/", ".*", ".*", ".*")
}

// invite invites the gateway to a group.
func (s *groupSite) invite(ctx context.Context, l *groupLead) error {
	body := fmt.Sprintf(`{"jsonrpc":"2.0","method":"group","id":"1","params":{"protocol":"rabbitmq:4.0",`+
		`"group":{"groupId":%q,"leader":{"aic":%q},"partners":[{"aic":%q}]},`+
		`"server":{"host":"127.0.0.1","port":%d,"vhost":"/","accessToken":"bench:bench"},`+
		`"amqp":{"exchange":%q,"exchangeType":"fanout","routingKey":""}}}`,
		l.id, s.pki.Leader.AIC, s.partner, s.broker.Port, l.exchange)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+s.address+"/group", strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := s.client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err == nil && !bytes.Contains(answer, []byte(`"queueName"`)) {
		err = fmt.Errorf("an invitation is answered %s", answer)
	}
	return err
}

// start publishes the start of the next task.
func (l *groupLead) start(ctx context.Context) error {
	l.started++
	id := fmt.Sprint("task-", salt, "-", l.started)
	body := fmt.Appendf(nil, `{"type":"message","id":"msg-%s","sentAt":"2025-09-01T11:59:45+08:00","senderRole":"leader",`+
		`"senderId":%q,"command":"start","dataItems":[{"type":"text","text":"hello there"}],"taskId":%q,"groupId":%q,`+
		`"sessionId":"session-1"}`, id, l.s.pki.Leader.AIC, id, l.id)
	return l.channel.PublishWithContext(ctx, l.exchange, "", false, false, amqp.Publishing{
		Body: body, ContentType: "application/json", DeliveryMode: amqp.Persistent, MessageId: id})
}

// next returns the next message of the member.
func (l *groupLead) next(ctx context.Context) (amqp.Delivery, error) {
	limit := time.NewTimer(30 * time.Second)
	defer limit.Stop()
	for {
		select {
		case d, ok := <-l.heard:
			if !ok {
				return d, fmt.Errorf("the Leader of %s has lost its connection", l.id)
			}
			if !bytes.Contains(d.Body, []byte(`"command"`)) {
				return d, nil
			}
		case <-limit.C:
			return amqp.Delivery{}, fmt.Errorf("the member of %s publishes nothing", l.id)
		case <-ctx.Done():
			return amqp.Delivery{}, ctx.Err()
		}
	}
}

// ends reports whether a message is the last that a task waits for.
func ends(body []byte) bool { return bytes.Contains(body, []byte(`"awaiting-completion"`)) }

// learn starts one task, and returns what the member answers to its start, with TASK for the task.
func (l *groupLead) learn(ctx context.Context) (answers []string, err error) {
	if err := l.start(ctx); err != nil {
		return nil, err
	}
	for len(answers) == 0 || !ends([]byte(answers[len(answers)-1])) {
		d, err := l.next(ctx)
		if err != nil {
			return nil, err
		}
		answers = append(answers, strings.ReplaceAll(string(d.Body), fmt.Sprint("task-", salt, "-", l.started), "TASK"))
	}
	if len(answers) != groupStatuses {
		return nil, fmt.Errorf("a start is answered by %d messages: %q", len(answers), answers)
	}
	return answers, nil
}

// load keeps groupWindow tasks open for a time, and returns how many have come to their end.
func (l *groupLead) load(ctx context.Context, length time.Duration) (done int, took time.Duration, err error) {
	began := time.Now()
	for range groupWindow {
		if err := l.start(ctx); err != nil {
			return 0, 0, err
		}
	}
	for open := groupWindow; open > 0; {
		d, err := l.next(ctx)
		switch {
		case err != nil:
			return 0, 0, err
		case !ends(d.Body):
			continue
		}
		done++
		if time.Since(began) > length {
			open--
		} else if err := l.start(ctx); err != nil {
			return 0, 0, err
		}
	}
	return done, time.Since(began), nil
}

// follow answers every start with the same messages, publishes them with confirms, and acknowledges the start when they
// are confirmed.
func (l *groupLead) follow(answers []string) (stop func(), err error) {
	conn, err := amqp.Dial("amqp://bench:bench@" + l.s.broker.Address() + "/")
	if err != nil {
		return nil, err
	}
	channel, err := conn.Channel()
	if err == nil {
		err = channel.Confirm(false)
	}
	if err == nil {
		err = channel.Qos(64, 0, false)
	}
	if err == nil {
		_, err = channel.QueueDeclare("member-"+l.id, true, false, false, false, nil)
	}
	if err == nil {
		err = channel.QueueBind("member-"+l.id, "", l.exchange, false, nil)
	}
	var deliveries <-chan amqp.Delivery
	if err == nil {
		deliveries, err = channel.Consume("member-"+l.id, "", false, false, false, false, nil)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	type answered struct {
		d    amqp.Delivery
		last *amqp.DeferredConfirmation
	}
	unconfirmed, done := make(chan answered, 64), make(chan struct{})
	go func() {
		defer close(unconfirmed)
		for d := range deliveries {
			a := answered{d: d}
			if !bytes.Contains(d.Body, []byte(`"command"`)) { // its own
				unconfirmed <- a
				continue
			}
			for i, answer := range answers {
				body := strings.ReplaceAll(answer, "TASK", d.MessageId)
				a.last, err = channel.PublishWithDeferredConfirm(l.exchange, "", false, false, amqp.Publishing{
					Body: []byte(body), ContentType: "application/json", DeliveryMode: amqp.Persistent,
					MessageId: fmt.Sprint(d.MessageId, "-", i)})
				if err != nil {
					return
				}
			}
			unconfirmed <- a
		}
	}()
	go func() {
		defer close(done)
		for a := range unconfirmed {
			if a.last == nil || a.last.Wait() {
				a.d.Ack(false)
			}
		}
	}()
	return func() { conn.Close(); <-done }, nil
}
