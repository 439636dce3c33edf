// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"time"
)

var salt = fmt.Sprint(os.Getpid(), "-", time.Now().Unix())

// aipStart is a start by rpc, which is done when it answers awaiting-completion.
func aipStart(s *site) target {
	return target{"aip_gateway", s.addr(portGateway), "/rpc", func(dst []byte, n int64) []byte {
		return fmt.Appendf(dst, `{"jsonrpc":"2.0","method":"rpc","id":"%d","params":{"message":{"type":"message","id":"msg-%[1]d","sentAt":"2025-09-01T11:58:00+08:00","senderRole":"leader","senderId":"leader","command":"start","dataItems":[{"type":"text","text":"echo hello there"}],"taskId":"task-%s-%[1]d","sessionId":"session-1"}}}`, n, salt)
	}, []byte(`"awaiting-completion"`)}
}

// a2aSend is the request that the gateway makes of it, to whoever listens on a port.
func a2aSend(s *site, name string, port int) target {
	return target{name, s.addr(port), "/", func(dst []byte, n int64) []byte {
		return fmt.Appendf(dst, `{"jsonrpc":"2.0","id":"%d","method":"tasks/send","params":{"id":"task-%s-%[1]d","sessionId":"session-1","message":{"role":"user","parts":[{"type":"text","text":"echo hello there"}]}}}`, n, salt)
	}, []byte(`"completed"`)}
}

// unary measures starts through the gateway against the same work through reverse_proxy.
func unary(ctx context.Context, o settings) error {
	fmt.Printf("\nunary start, %d connections, no TLS\n%-34s %10s %10s %10s %12s\n", o.conns, "", "per s", "p50", "p99", "CPU each")
	for _, store := range []string{"pebble DIR", "pebble DIR {\n\t\t\tsync never\n\t\t}", "memory {\n\t\t\tcapacity 4GiB\n\t\t}"} {
		name := map[byte]string{'p': "pebble, sync state", 'm': "memory"}[store[0]]
		if len(store) > len("pebble DIR") && store[0] == 'p' {
			name = "pebble, sync never"
		}
		if err := unaryWith(ctx, o, name, store); err != nil {
			return err
		}
	}
	return nil
}

func unaryWith(ctx context.Context, o settings, name, store string) error {
	s, err := newSite(ctx, o.caddy, store, nil)
	if err != nil {
		return err
	}
	defer s.close()
	targets := []target{aipStart(s), a2aSend(s, "reverse_proxy", portProxy)}
	for _, t := range targets {
		if _, err := load(ctx, t, o.conns, o.round); err != nil { // warm up
			return err
		}
	}
	results := make([][]result, len(targets))
	var ratios []float64
	for round := range o.rounds {
		var rates [2]float64
		for i := range targets {
			i = (i + round) % len(targets) // in turns, so that neither always comes first
			before, err := s.cpu()
			if err != nil {
				return err
			}
			r, err := load(ctx, targets[i], o.conns, o.round)
			if err != nil {
				return err
			}
			after, err := s.cpu()
			if err != nil {
				return err
			}
			r.cpu = (after - before) / time.Duration(max(1, len(r.latencies)))
			results[i] = append(results[i], r)
			rates[i] = r.rate
		}
		ratios = append(ratios, rates[0]/rates[1])
	}
	for i, t := range targets {
		label := t.name
		if i == 0 {
			label += " (" + name + ")"
		}
		report(label, results[i])
	}
	fmt.Printf("%-34s %9.2fx of reverse_proxy (median of %d pairs)\n", "", median(ratios), len(ratios))
	return nil
}

func report(name string, rounds []result) {
	var rates, p50, p99, cpu []float64
	for _, r := range rounds {
		rates = append(rates, r.rate)
		p50 = append(p50, float64(percentile(r.latencies, 0.5)))
		p99 = append(p99, float64(percentile(r.latencies, 0.99)))
		cpu = append(cpu, float64(r.cpu))
	}
	fmt.Printf("%-34s %10.0f %10s %10s %12s\n", name, median(rates), us(time.Duration(median(p50))), us(time.Duration(median(p99))), us(time.Duration(median(cpu))))
}
