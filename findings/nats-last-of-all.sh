#!/usr/bin/env bash
# nats-server 2.15.2 takes "last_by_subj": ">" for the message at the last sequence, and not for the last message that is
# there: when that one was purged, none is found, while the subjects of the stream written out, as in "file.>", find the last
# one left. So ">" is no way to ask how far a stream has grown.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

cat > main.go <<'GO'
package main

import (
	"encoding/json"
	"fmt"
	"os"
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

func main() {
	dir := must(os.MkdirTemp("", "nats"))
	defer os.RemoveAll(dir)
	s := must(server.NewServer(&server.Options{JetStream: true, StoreDir: dir, Port: -1, NoSigs: true}))
	s.Start()
	defer s.Shutdown()
	s.ReadyForConnections(10 * time.Second)
	nc := must(nats.Connect(s.ClientURL()))
	ask := func(subject, body string) (a struct {
		Message struct {
			Seq uint64
		}
		State struct {
			Last uint64 `json:"last_seq"`
			Msgs uint64 `json:"messages"`
		}
		Error *struct {
			Description string
		}
	}) {
		json.Unmarshal(must(nc.Request("$JS.API."+subject, []byte(body), 5*time.Second)).Data, &a)
		return a
	}
	for _, storage := range []string{"file", "memory"} {
		ask("STREAM.CREATE."+storage, fmt.Sprintf(`{"name":%q,"subjects":["%s.>"],"storage":%q,"num_replicas":1,"max_msgs_per_subject":1}`, storage, storage, storage))
		for i := 1; i <= 9; i++ {
			must(nc.Request(fmt.Sprintf("%s.%d", storage, i), []byte("x"), 5*time.Second))
		}
		ask("STREAM.PURGE."+storage, fmt.Sprintf(`{"filter":"%s.9"}`, storage))
		info := ask("STREAM.INFO."+storage, "{}")
		fmt.Printf("%s: %d messages, last sequence %d\n", storage, info.State.Msgs, info.State.Last)
		for _, filter := range []string{">", storage + ".>"} {
			found := ask("STREAM.MSG.GET."+storage, fmt.Sprintf(`{"last_by_subj":%q}`, filter))
			if found.Error != nil {
				fmt.Printf("  last of %s: %s\n", filter, found.Error.Description)
			} else {
				fmt.Printf("  last of %s: sequence %d\n", filter, found.Message.Seq)
			}
		}
	}
}
GO
go mod init seen 2> /dev/null
go get github.com/nats-io/nats-server/v2@v2.15.2 github.com/nats-io/nats.go@v1.55.0 2> /dev/null
go mod tidy 2> /dev/null

diff - <(go run .) <<'SEEN'
file: 8 messages, last sequence 9
  last of >: no message found
  last of file.>: sequence 8
memory: 8 messages, last sequence 9
  last of >: no message found
  last of memory.>: sequence 8
SEEN
echo "as described"
