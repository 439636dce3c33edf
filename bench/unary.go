// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// salt keeps the tasks of one run apart from those of another.
var salt = fmt.Sprint(os.Getpid(), "-", time.Now().Unix())

// aipStart is a start by rpc, which is done when it answers awaiting-completion.
func aipStart(s *site) target {
	return target{"aip_gateway", s.addr(portGateway), "/rpc", func(dst []byte, n int64) []byte {
		return fmt.Appendf(
			dst,
			`{"jsonrpc":"2.0","method":"rpc","id":"%d","params":{"message":{"type":"message","id":"msg-%[1]d",`+
				`"sentAt":"2025-09-01T11:58:00+08:00","senderRole":"leader","senderId":"leader","command":"start",`+
				`"dataItems":[{"type":"text","text":"hello there %[1]d"}],"taskId":"task-%s-%[1]d","sessionId":"session-1"}}}`,
			n,
			salt,
		)
	}, echoed, []byte(`"state":"awaiting-completion"`)}
}

// a2aSend is the request that the gateway makes of it, to the process that listens on a port.
func a2aSend(s *site, name string, port int) target {
	return target{name, s.addr(port), "/", func(dst []byte, n int64) []byte {
		return fmt.Appendf(
			dst,
			`{"jsonrpc":"2.0","id":"%d","method":"tasks/send","params":{"id":"task-%s-%[1]d","sessionId":"session-1",`+
				`"message":{"role":"user","parts":[{"type":"text","text":"hello there %[1]d"}]}}}`,
			n,
			salt,
		)
	}, echoed, []byte(`"state":"completed"`)}
}

// echoed is what the agent says to the n-th request.
func echoed(dst []byte, n int64) []byte { return fmt.Appendf(dst, `hello there %d"`, n) }

// unary measures starts through the gateway against the same work through reverse_proxy. The store that is the
// default is measured in full, the others in half as many rounds of half the length.
func unary(ctx context.Context, o settings) error {
	rates := o.table(
		fmt.Sprintf("unary start, %d connections, no TLS", o.conns),
		"per s",
		"p50 µs",
		"p99 µs",
		"CPU µs each",
	)
	half := o
	half.rounds, half.round, half.profile = (o.rounds+1)/2, o.round/2, ""
	var ratios []row
	for _, c := range []struct {
		name, store string
		settings
	}{
		{"pebble, sync state", "pebble DIR", o},
		{"pebble, sync never", "pebble DIR {\n\t\t\tsync never\n\t\t}", half},
		{"memory", "memory {\n\t\t\tcapacity 4GiB\n\t\t}", half},
	} {
		pairs, err := unaryWith(ctx, c.settings, rates, c.name, c.store)
		if err != nil {
			return err
		}
		ratios = append(ratios, row{fmt.Sprintf("%s (%d pairs)", c.name, len(pairs)), spread(pairs)})
	}
	pairs := o.table("aip_gateway's throughput to reverse_proxy's", "median", "least", "greatest")
	for _, r := range ratios {
		pairs.row(r.Name, r.Values...)
	}
	return nil
}

// unaryWith measures with one store. It returns the ratios of the pairs of rounds.
func unaryWith(ctx context.Context, o settings, rates *table, name, store string) (ratios []float64, err error) {
	s, err := newSite(ctx, o.caddy, store, nil)
	if err != nil {
		return nil, err
	}
	defer s.close()
	// The agent alone is the yardstick: what there is to win or to lose.
	gateway, proxy, agent := aipStart(s), a2aSend(s, "reverse_proxy", portProxy), a2aSend(s, "agent alone", portAgent)
	for _, t := range []target{gateway, proxy, agent} {
		if _, err := load(ctx, t, o.conns, o.round/2); err != nil { // warm up
			return nil, err
		}
	}
	var results [3][]result
	for round := range o.rounds {
		order := []int{0, 1} // in turns, so that neither always comes first
		if round%2 == 1 {
			order = []int{1, 0}
		}
		for _, i := range order {
			r, err := s.measure(ctx, []target{gateway, proxy}[i], o)
			if err != nil {
				return nil, err
			}
			results[i] = append(results[i], r)
		}
		ratios = append(ratios, results[0][round].rate/results[1][round].rate)
		r, err := load(ctx, agent, o.conns, o.round/4)
		if err != nil {
			return nil, err
		}
		results[2] = append(results[2], r)
	}
	for i, label := range []string{gateway.name + " (" + name + ")", proxy.name, agent.name} {
		values := summary(results[i])
		if i < 2 { // the agent is not the gateway's process
			var cpu []float64
			for _, r := range results[i] {
				cpu = append(cpu, micros(r.cpu))
			}
			values = append(values, median(cpu))
		}
		rates.row(label, values...)
	}
	if o.profile == "" {
		return ratios, nil
	}
	for _, t := range []target{gateway, proxy} {
		if err := s.profileUnder(ctx, t, o); err != nil {
			return nil, err
		}
	}
	return ratios, nil
}

// measure is a round of load that also measures the CPU time of the gateway's process.
func (s *site) measure(ctx context.Context, t target, o settings) (result, error) {
	before, err := s.cpu()
	if err != nil {
		return result{}, err
	}
	r, err := load(ctx, t, o.conns, o.round)
	if err != nil {
		return result{}, err
	}
	after, err := s.cpu()
	r.cpu = (after - before) / time.Duration(max(1, len(r.latencies)))
	return r, err
}

// profileSeconds is how long a profile takes.
const profileSeconds = 5

// profileUnder writes a profile of the gateway's process under a load, named after the load.
func (s *site) profileUnder(ctx context.Context, t target, o settings) error {
	loaded := make(chan error, 1)
	go func() {
		_, err := load(ctx, t, o.conns, (profileSeconds+1)*time.Second)
		loaded <- err
	}()
	err := s.profile(ctx, filepath.Join(o.profile, t.name+".pprof"), profileSeconds)
	return errors.Join(err, <-loaded)
}

// summary returns the medians of rounds: answers a second, p50 and p99 in microseconds.
func summary(rounds []result) []float64 {
	var rates, p50, p99 []float64
	for _, r := range rounds {
		rates = append(rates, r.rate)
		p50 = append(p50, micros(percentile(r.latencies, 0.5)))
		p99 = append(p99, micros(percentile(r.latencies, 0.99)))
	}
	return []float64{median(rates), median(p50), median(p99)}
}
