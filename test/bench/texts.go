// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"unicode/utf8"

	"github.com/aip-gateway/aip-gateway/task"
)

// aims are the ratios to reverse_proxy's that a size of texts is to reach: of the throughput, and of the CPU time; 0
// for none.
var aims = []struct {
	kib             int
	throughput, cpu float64
}{{1, 0.97, 0}, {4, 0.92, 0}, {16, 0.85, 1.4}, {64, 0.80, 1.7}}

// steadyTexts is the rate of the texts at a steady rate, a second, for each size in KiB.
var steadyTexts = []struct{ kib, rate int }{{1, 3000}, {4, 3000}, {16, 3000}, {64, 500}}

// texts measures starts by the size of their texts, in and out, as people and agents write them. First as fast as they
// are answered, beside what they are to reach, then at a steady rate.
func texts(ctx context.Context, o settings) error {
	s, err := newSite(ctx, o.caddy, siteConfig{})
	if err != nil {
		return err
	}
	defer s.close()
	list, err := sampleTexts()
	if err != nil {
		return err
	}
	t := o.table("starts by the size of their texts, to reverse_proxy: "+plural(o.conns, "connection"),
		"throughput", "target", "missed by", "CPU time", "target", "missed by", "B of a start", "of a call")
	for _, a := range aims {
		ways := s.textWays(list, a.kib<<10, 0)
		rounds, err := inTurns(ctx, o, o.conns, ways...)
		if err != nil {
			return err
		}
		p := pairs{gateway: rounds[1], proxy: rounds[0]}
		throughput, cpu := median(p.ratios()), summary(rounds[1])[3]/summary(rounds[0])[3]
		values := []float64{throughput, a.throughput, max(0, a.throughput-throughput), cpu, a.cpu, 0}
		if a.cpu > 0 {
			values[5] = max(0, cpu-a.cpu)
		}
		for _, w := range []int{1, 0} {
			size, err := s.allocated(ctx, &ways[w], o)
			if err != nil {
				return err
			}
			values = append(values, size)
		}
		t.row(fmt.Sprintf("%d KiB", a.kib), values...)
	}
	for _, c := range steadyTexts {
		rounds, err := inTurns(ctx, o, steadyConns, s.textWays(list, c.kib<<10, c.rate)...)
		if err != nil {
			return err
		}
		title := fmt.Sprintf("texts of %d KiB, %d a second", c.kib, c.rate)
		t := o.table(title, "per s", "p50 µs", "p99 µs", "CPU µs each")
		t.row("reverse_proxy", summary(rounds[0])...)
		t.row("aip_gateway", summary(rounds[1])...)
	}
	return nil
}

// textWays are reverse_proxy and the gateway, with texts of a size.
func (s *site) textWays(list [][]byte, size, rate int) []way {
	var ways []way
	for _, t := range []target{a2aSend(s, plain, "reverse_proxy", portProxy), aipStart(s, plain)} {
		ways = append(ways, way{target: saying(t, list, size), process: s.gateway, rate: rate})
	}
	return ways
}

// allocated returns the number of bytes that the gateway's process allocates for a call.
func (s *site) allocated(ctx context.Context, w *way, o settings) (float64, error) {
	before, err := s.totalAlloc(ctx)
	if err != nil {
		return 0, err
	}
	r, err := w.load(ctx, o.conns, o.round)
	if err != nil {
		return 0, err
	}
	after, err := s.totalAlloc(ctx)
	return (after - before) / float64(max(1, len(r.latencies))), err
}

// totalAlloc returns the number of bytes that the gateway's process has allocated since its start.
func (s *site) totalAlloc(ctx context.Context) (float64, error) {
	var vars struct {
		Memstats struct{ TotalAlloc float64 }
	}
	err := fetch(ctx, "http://"+s.addr(portAdmin)+"/debug/vars", func(body io.Reader) error {
		return json.NewDecoder(body).Decode(&vars)
	})
	return vars.Memstats.TotalAlloc, err
}

// saying is a target whose requests and answers have a text of size bytes as JSON, another one for each request.
func saying(t target, list [][]byte, size int) target {
	body, said := t.body, []byte("hello there")
	t.body = func(dst []byte, n int64) []byte {
		text := list[n%int64(len(list))]
		from := int(n*7919) % (len(text) - 2*size) // so no two of them begin alike
		return append(dst, bytes.Replace(body(nil, n), said, cut(text[from:], size, said), 1)...)
	}
	return t
}

// cut returns about size bytes of the escaped text, without a half of an escape or a character, and end after them.
func cut(text []byte, size int, end []byte) []byte {
	whole := func(b byte) bool { return b == '\\' || !utf8.RuneStart(b) }
	for from := 0; from < len(text); from++ { // a plain character before the beginning and behind the end
		if text[from] != ' ' {
			continue
		}
		to := from + size
		for to > from && (whole(text[to]) || text[to-1] == '\\') {
			to--
		}
		// The agent obeys a first word that it knows.
		return append(append([]byte("see:"), text[from:to]...), end...)
	}
	return end
}

// sampleTexts returns texts of three kinds, escaped for JSON: messages of agents in JSON, source code, and base64.
func sampleTexts() ([][]byte, error) {
	const least = 1 << 20 // bytes of each
	data, err := os.ReadFile(filepath.Join("..", "..", "translate", "a2a", "v1", "testdata", "go.txtar"))
	if err != nil {
		return nil, err
	}
	names, err := filepath.Glob("*.go")
	if err != nil || len(names) == 0 {
		return nil, errors.Join(err, errors.New("there are no sources: run this in its folder"))
	}
	var source []byte
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		source = append(source, b...)
	}
	var list [][]byte
	for _, b := range [][]byte{data, source} {
		list = append(list, escaped(bytes.Repeat(b, least/len(b)+1)))
	}
	random := make([]byte, 57) // a line of base64
	var lines []byte
	for len(lines) < least {
		_, _ = rand.Read(random) // never fails
		lines = append(base64.StdEncoding.AppendEncode(lines, random), '\n', ' ')
	}
	return append(list, escaped(lines)), nil
}

// escaped returns a text as it stands between the quotes of JSON.
func escaped(text []byte) []byte {
	b := task.AppendString(nil, string(text))
	return b[1 : len(b)-1]
}
