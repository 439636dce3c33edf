#!/usr/bin/env bash
# nats-server 2.15.2 refuses a message that expects the last sequence of a subject while another message with the same
# expectation is under way, on a stream with several replicas: so a subject that does not change, such as the record of a lock,
# is a fence for one message at a time there. With one replica all are written. Messages that each expect the sequence of the
# one before are written on both; but the second one holds for whatever has come to be the first.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

cat > main.go <<'GO'
package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// start starts servers, which are a cluster if they are several.
func start(dir string, n int) (servers []*server.Server) {
	ports, routes := make([]int, n), make([]*url.URL, n)
	for i := range ports {
		l := must(net.Listen("tcp", "127.0.0.1:0"))
		ports[i] = l.Addr().(*net.TCPAddr).Port
		routes[i] = must(url.Parse(fmt.Sprintf("nats-route://127.0.0.1:%d", ports[i])))
		l.Close()
	}
	for i := range n {
		o := &server.Options{JetStream: true, StoreDir: filepath.Join(dir, fmt.Sprint(n, "-", i)), Port: -1, NoSigs: true,
			ServerName: fmt.Sprint("s", i)}
		if n > 1 {
			o.Cluster = server.ClusterOpts{Name: "c", Host: "127.0.0.1", Port: ports[i]}
			o.Routes = routes
		}
		s := must(server.NewServer(o))
		go s.Start()
		servers = append(servers, s)
	}
	for _, s := range servers {
		if !s.ReadyForConnections(time.Minute) {
			panic("a server does not start")
		}
	}
	return servers
}

func main() {
	dir := must(os.MkdirTemp("", "nats"))
	defer os.RemoveAll(dir)
	for _, n := range []int{1, 3} {
		servers := start(dir, n)
		nc := must(nats.Connect(servers[0].ClientURL()))
		create := fmt.Sprintf(`{"name":"s","subjects":["s.>"],"storage":"file","num_replicas":%d}`, n)
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) { // until there is a leader
			var a struct{ Error *struct{ Description string } }
			m, err := nc.Request("$JS.API.STREAM.CREATE.s", []byte(create), 5*time.Second)
			if err == nil && json.Unmarshal(m.Data, &a) == nil && a.Error == nil {
				break
			}
			if time.Now().After(deadline) {
				panic(fmt.Sprint(err, a.Error))
			}
		}
		must(nc.Request("s.owner", []byte("me"), 5*time.Second)) // sequence 1
		for _, by := range []string{"the last sequence of another subject", "the last sequence of the stream"} {
			inbox := nats.NewInbox()
			answers := must(nc.SubscribeSync(inbox))
			const together = 50
			var last struct {
				State struct {
					Last int `json:"last_seq"`
				}
			}
			json.Unmarshal(must(nc.Request("$JS.API.STREAM.INFO.s", nil, 5*time.Second)).Data, &last)
			for i := range together {
				m := nats.NewMsg(fmt.Sprint("s.", i))
				m.Reply = inbox
				if by == "the last sequence of the stream" {
					m.Header.Set("Nats-Expected-Last-Sequence", fmt.Sprint(last.State.Last+i))
				} else {
					m.Header.Set("Nats-Expected-Last-Subject-Sequence", "1")
					m.Header.Set("Nats-Expected-Last-Subject-Sequence-Subject", "s.owner")
				}
				if err := nc.PublishMsg(m); err != nil {
					panic(err)
				}
			}
			refused := map[string]int{}
			for range together {
				var a struct {
					Error *struct {
						Code        int `json:"err_code"`
						Description string
					}
				}
				json.Unmarshal(must(answers.NextMsg(10*time.Second)).Data, &a)
				if a.Error != nil {
					refused[fmt.Sprint(a.Error.Code, " ", a.Error.Description)]++
				}
			}
			how := "all are written"
			for text := range refused {
				how = "some are refused: " + text
			}
			fmt.Printf("%d replicas, each of %d at once expects %s: %s\n", n, together, by, how)
		}
		nc.Close()
		for _, s := range servers {
			s.Shutdown()
		}
	}
}
GO
go mod init seen 2> /dev/null
go get github.com/nats-io/nats-server/v2@v2.15.2 github.com/nats-io/nats.go@v1.55.0 2> /dev/null
go mod tidy 2> /dev/null

diff - <(go run .) <<'SEEN'
1 replicas, each of 50 at once expects the last sequence of another subject: all are written
1 replicas, each of 50 at once expects the last sequence of the stream: all are written
3 replicas, each of 50 at once expects the last sequence of another subject: some are refused: 10164 wrong last sequence
3 replicas, each of 50 at once expects the last sequence of the stream: all are written
SEEN
echo "as described"
