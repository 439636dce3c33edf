#!/usr/bin/env bash
# nats-server 2.15.2 makes a store of its own, with a directory and files, for each open atomic batch of a stream on disk
# with one replica, also for a batch of two short messages: a batch costs far more file operations there than the messages
# without it, and a batch is no way to save them. The stored messages keep the headers of the batch for good.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

cat > main.go <<'GO'
package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
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

// batches returns how many directories and files of batches a server has.
func batches(dir string) (dirs, files int) {
	filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err == nil && strings.Contains(name, "/batches/") {
			if d.IsDir() {
				dirs++
			} else {
				files++
			}
		}
		return nil
	})
	return dirs, files
}

func main() {
	dir := must(os.MkdirTemp("", "nats"))
	defer os.RemoveAll(dir)
	s := must(server.NewServer(&server.Options{JetStream: true, StoreDir: dir, Port: -1, NoSigs: true}))
	s.Start()
	defer s.Shutdown()
	s.ReadyForConnections(10 * time.Second)
	nc := must(nats.Connect(s.ClientURL()))
	for _, storage := range []string{"file", "memory"} {
		must(nc.Request("$JS.API.STREAM.CREATE."+storage, fmt.Appendf(nil,
			`{"name":%q,"subjects":["%s.*"],"storage":%q,"num_replicas":1,"allow_atomic":true,"allow_direct":true}`,
			storage, storage, storage), 5*time.Second))
		send := func(n, commit string) {
			m := nats.NewMsg(storage + ".a" + n)
			m.Data = []byte("x")
			m.Header.Set("Nats-Batch-Id", "one")
			m.Header.Set("Nats-Batch-Sequence", n)
			if commit != "" {
				m.Header.Set("Nats-Batch-Commit", commit)
			}
			must(nc.RequestMsg(m, 5*time.Second))
		}
		send("1", "")
		dirs, files := batches(dir)
		fmt.Printf("%-6s  open batch: a directory %v, files %v", storage, dirs > 0, files > 0)
		send("2", "1")
		m := must(nc.Request("$JS.API.DIRECT.GET."+storage, []byte(`{"seq":1}`), 5*time.Second))
		var kept []string
		for name := range m.Header {
			if strings.HasPrefix(name, "Nats-Batch") {
				kept = append(kept, name)
			}
		}
		slices.Sort(kept)
		fmt.Printf("; stored with %v\n", kept)
	}
}
GO
go mod init seen 2> /dev/null
go get github.com/nats-io/nats-server/v2@v2.15.2 github.com/nats-io/nats.go@v1.55.0 2> /dev/null
go mod tidy 2> /dev/null

diff - <(go run .) <<'SEEN'
file    open batch: a directory true, files true; stored with [Nats-Batch-Id Nats-Batch-Sequence]
memory  open batch: a directory false, files false; stored with [Nats-Batch-Id Nats-Batch-Sequence]
SEEN
echo "as described"
