// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"time"
)

// salt keeps the tasks of one run apart from those of another.
var salt = fmt.Sprint(os.Getpid(), "-", time.Now().Unix())

// wire is how callers reach the gateway and the proxy.
type wire struct {
	name           string
	tls, h2        bool
	gateway, proxy int // ports
}

var (
	plain = wire{"HTTP/1.1", false, false, portGateway, portProxy}
	mtls1 = wire{"HTTP/1.1, mutual TLS", true, false, portTLS, portProxyTLS}
	mtls2 = wire{"HTTP/2, mutual TLS", true, true, portTLS, portProxyTLS}
)

// target returns the target at a port, over the wire.
func (w wire) target(s *site, name string, port int) target {
	t := target{name: name, addr: s.addr(port), h2: w.h2, path: "/", want: echoed}
	if w.tls {
		t.tls = s.leader
	}
	return t
}

// sender is who the gateway takes the caller for.
func (w wire) sender(s *site) string {
	if w.tls {
		return string(s.pki.Leader.AIC)
	}
	return "leader"
}

// aipStart is a start by rpc, which is done when it answers awaiting-completion.
func aipStart(s *site, w wire) target {
	t, sender := w.target(s, "aip_gateway", w.gateway), w.sender(s)
	t.path, t.also = "/rpc", []byte(`"state":"awaiting-completion"`)
	t.body = func(dst []byte, n int64) []byte {
		return fmt.Appendf(dst,
			`{"jsonrpc":"2.0","method":"rpc","id":"%d","params":{"message":{"type":"message","id":"msg-%[1]d",`+
				`"sentAt":"2025-09-01T11:58:00+08:00","senderRole":"leader","senderId":%[3]q,"command":"start",`+
				`"dataItems":[{"type":"text","text":"hello there %[1]d"}],"taskId":"task-%[2]s-%[1]d",`+
				`"sessionId":"session-1"}}}`, n, salt, sender)
	}
	return t
}

// a2aSend is the request that the gateway makes of it, to the process that listens on a port.
func a2aSend(s *site, w wire, name string, port int) target {
	t := w.target(s, name, port)
	t.also = []byte(`"state":"completed"`)
	t.body = func(dst []byte, n int64) []byte {
		return fmt.Appendf(dst,
			`{"jsonrpc":"2.0","id":"%d","method":"tasks/send","params":{"id":"task-%s-%[1]d","sessionId":"session-1",`+
				`"message":{"role":"user","parts":[{"type":"text","text":"hello there %[1]d"}]}}}`, n, salt)
	}
	return t
}

// echoed is what the agent says to the n-th request.
func echoed(dst []byte, n int64) []byte { return fmt.Appendf(dst, `hello there %d"`, n) }

// The stores of a gateway, as options of a Caddyfile.
const (
	storeState  = "pebble DIR"
	storeAlways = "pebble DIR {\n\t\t\tsync always\n\t\t}"
	storeNever  = "pebble DIR {\n\t\t\tsync never\n\t\t}"
	storeMemory = "memory {\n\t\t\tmax_size 4GiB\n\t\t}"
)

// unary measures starts through the gateway against the same work through reverse_proxy, with the default store.
func unary(ctx context.Context, o settings) error {
	s, err := newSite(ctx, o.caddy, siteConfig{})
	if err != nil {
		return err
	}
	defer s.close()
	var all []pairs
	for _, callers := range []int{1, o.conns, 4 * o.conns} {
		p, err := s.compare(ctx, o, plain, callers)
		if err != nil {
			return err
		}
		all = append(all, p)
	}
	o.compared("unary start, default store", all)
	// The agent alone shows what the machine can do at most.
	r, err := load(ctx, a2aSend(s, plain, "agent alone", portAgent), o.conns, o.round)
	if err != nil {
		return err
	}
	o.table("the agent alone, by its callers", "per s").row(plural(o.conns, "connection"), r.rate)
	return nil
}

// unaryTLS is unary over mutual TLS.
func unaryTLS(ctx context.Context, o settings) error {
	s, err := newSite(ctx, o.caddy, siteConfig{})
	if err != nil {
		return err
	}
	defer s.close()
	var all []pairs
	for _, w := range []wire{mtls1, mtls2} {
		for _, callers := range []int{1, o.conns, 4 * o.conns} {
			p, err := s.compare(ctx, o, w, callers)
			if err != nil {
				return err
			}
			p.name = w.name + ", " + plural(callers, "caller")
			all = append(all, p)
		}
	}
	o.compared("unary start, default store", all)
	return nil
}

// stores is unary with each store.
func stores(ctx context.Context, o settings) error {
	var all []pairs
	for _, c := range []struct{ name, store string }{
		{"sync state", storeState}, {"sync always", storeAlways}, {"sync never", storeNever}, {"memory", storeMemory},
	} {
		s, err := newSite(ctx, o.caddy, siteConfig{store: c.store})
		if err != nil {
			return err
		}
		p, err := s.compare(ctx, o, plain, o.conns)
		s.close()
		if err != nil {
			return err
		}
		p.name = c.name
		all = append(all, p)
	}
	o.compared("unary start, "+plural(o.conns, "connection")+", by store", all)
	return nil
}

// pairs are rounds of load, in turns on the gateway and on the proxy.
type pairs struct {
	name           string
	gateway, proxy []result
}

// compare measures starts in pairs of rounds.
func (s *site) compare(ctx context.Context, o settings, w wire, callers int) (pairs, error) {
	p, err := s.alternate(ctx, o, aipStart(s, w), a2aSend(s, w, "reverse_proxy", w.proxy), callers)
	p.name = plural(callers, "connection")
	return p, err
}

// alternate measures two targets of the gateway's process in turns.
func (s *site) alternate(ctx context.Context, o settings, gateway, proxy target, callers int) (pairs, error) {
	rounds, err := inTurns(ctx, o, callers,
		way{target: gateway, process: s.gateway}, way{target: proxy, process: s.gateway})
	if err != nil {
		return pairs{}, err
	}
	return pairs{gateway: rounds[0], proxy: rounds[1]}, nil
}

// ratios returns the gateway's throughput to the proxy's, of each pair.
func (p *pairs) ratios() (list []float64) {
	for i := range p.gateway {
		list = append(list, p.gateway[i].rate/p.proxy[i].rate)
	}
	return list
}

// compared adds the tables of pairs.
func (r *report) compared(title string, all []pairs) {
	rates := r.table(title, "per s", "p50 µs", "p99 µs", "CPU µs each")
	for _, p := range all {
		rates.row("aip_gateway, "+p.name, summary(p.gateway)...)
		rates.row("reverse_proxy, "+p.name, summary(p.proxy)...)
	}
	ratios := r.table(title+": aip_gateway's throughput to reverse_proxy's", "median", "least", "greatest")
	for _, p := range all {
		ratios.row(p.name, spread(p.ratios())...)
	}
}

// summary returns the medians of rounds: answers a second, p50, p99 and CPU time in microseconds.
func summary(rounds []result) []float64 {
	var rates, p50, p99, cpu []float64
	for _, r := range rounds {
		rates = append(rates, r.rate)
		p50 = append(p50, micros(percentile(r.latencies, 0.5)))
		p99 = append(p99, micros(percentile(r.latencies, 0.99)))
		cpu = append(cpu, micros(r.cpu))
	}
	return []float64{median(rates), median(p50), median(p99), median(cpu)}
}

// plural is a number of things, as people write it.
func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
