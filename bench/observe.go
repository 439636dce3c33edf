// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/freeport"
)

// observed measures what it costs that an operator watches a gateway: Prometheus, which reads the metrics 15 times as
// often as it usually does, and an access log in a file. Each is compared with neither, in the same process, in turns.
// The counters themselves cannot be switched off: they are part of both. The access log is Caddy's, so what it costs
// reverse_proxy is measured too. Its file is not rolled: Caddy would compress it at moments that nothing else here has.
func observed(ctx context.Context, o settings) error {
	dir, err := os.MkdirTemp("", "aip-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	logged, more := plain, ""
	var free []int
	for _, site := range []string{"import gateway identity off", "import proxy"} {
		port, err := freeport.Take()
		if err != nil {
			return err
		}
		free = append(free, port)
		more += fmt.Sprintf(`http://localhost:%d {
	bind 127.0.0.1
	log {
		output file %s {
			roll_disabled
		}
	}
	%s
}
`, port, filepath.Join(dir, fmt.Sprint(port, ".log")), site)
	}
	s, err := newSite(ctx, o.caddy, siteConfig{more: more})
	if err != nil {
		return err
	}
	defer s.close()
	s.ports = append(s.ports, free...)
	logged.gateway, logged.proxy = len(s.ports)-2, len(s.ports)-1
	ways := []struct {
		name   string
		target target
		to     int // the way that it is compared with
		scrape bool
	}{
		{"neither", aipStart(s, plain), 0, false},
		{"metrics, read every second", aipStart(s, plain), 0, true},
		{"access log", aipStart(s, logged), 0, false},
		{"both", aipStart(s, logged), 0, true},
		{"reverse_proxy", a2aSend(s, plain, "reverse_proxy", plain.proxy), 4, false},
		{"reverse_proxy, access log", a2aSend(s, logged, "reverse_proxy", logged.proxy), 4, false},
	}
	for _, w := range ways {
		if _, err := load(ctx, w.target, o.conns, o.round/2); err != nil { // warm up
			return err
		}
	}
	rounds := make([][]result, len(ways))
	for round := range o.rounds {
		for i := range ways {
			i = (i + round) % len(ways)
			stop := func() {}
			if ways[i].scrape {
				stop = s.scrape(ctx, time.Second)
			}
			r, err := s.measure(ctx, ways[i].target, o.conns, o.round)
			stop()
			if err != nil {
				return err
			}
			rounds[i] = append(rounds[i], r)
		}
	}
	t := o.table("what is observed, to neither metrics nor logs: unary start, "+plural(o.conns, "connection"),
		"throughput", "p99", "CPU each", "more µs each")
	for i, w := range ways {
		if a, b := summary(rounds[i]), summary(rounds[w.to]); i != w.to {
			t.row(w.name, a[0]/b[0], a[2]/b[2], a[3]/b[3], a[3]-b[3])
		}
	}
	return nil
}

// scrape reads the metrics again and again until stop is called.
func (s *site) scrape(ctx context.Context, every time.Duration) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		ticks := time.NewTicker(every)
		defer ticks.Stop()
		for ctx.Err() == nil {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.addr(portAdmin)+"/metrics", nil)
			if err != nil {
				return
			}
			if res, err := http.DefaultClient.Do(req); err == nil {
				_, _ = io.Copy(io.Discard, res.Body) // what is lost is read the next time
				res.Body.Close()
			}
			select {
			case <-ticks.C:
			case <-ctx.Done():
			}
		}
	}()
	return func() { cancel(); <-ended }
}
