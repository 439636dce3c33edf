// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
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
	scraped := func() func() { return s.scrape(ctx, time.Second) }
	compared := []struct {
		name   string
		target target
		to     int                  // the index of what it is compared with
		during func() (stop func()) // see way
	}{
		{"neither", aipStart(s, plain), 0, nil},
		{"metrics, read every second", aipStart(s, plain), 0, scraped},
		{"access log", aipStart(s, logged), 0, nil},
		{"both", aipStart(s, logged), 0, scraped},
		{"reverse_proxy", a2aSend(s, plain, "reverse_proxy", plain.proxy), 4, nil},
		{"reverse_proxy, access log", a2aSend(s, logged, "reverse_proxy", logged.proxy), 4, nil},
	}
	var ways []way
	for _, c := range compared {
		ways = append(ways, way{target: c.target, process: s.gateway, during: c.during})
	}
	rounds, err := inTurns(ctx, o, o.conns, ways...)
	if err != nil {
		return err
	}
	t := o.table("what is observed, to neither metrics nor logs: unary start, "+plural(o.conns, "connection"),
		"throughput", "p99", "CPU each", "more µs each")
	for i, c := range compared {
		if a, b := summary(rounds[i]), summary(rounds[c.to]); i != c.to {
			t.row(c.name, a[0]/b[0], a[2]/b[2], a[3]/b[3], a[3]-b[3])
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
			_ = fetch(ctx, "http://"+s.addr(portAdmin)+"/metrics", func(body io.Reader) error {
				_, err := io.Copy(io.Discard, body)
				return err
			}) // what is lost is read the next time
			select {
			case <-ticks.C:
			case <-ctx.Done():
			}
		}
	}()
	return func() { cancel(); <-ended }
}
