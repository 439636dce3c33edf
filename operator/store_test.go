// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/node"
	"github.com/aip-gateway/aip-gateway/operator/adminapi"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
)

// copied is a store with backups.
type copied struct {
	node.Storage
	err error
	dir string
}

func (c *copied) Backup(_ context.Context, dir string) error {
	c.dir = dir
	return c.err
}

// TestStore: a store is surveyed, verified and exported.
func TestStore(t *testing.T) {
	p := newAlone(t, nil)
	p.try("hello", task.AwaitingCompletion)
	var brief, full adminapi.StoreReport
	p.ask("GET", adminapi.Store, "", &brief)
	p.ask("POST", adminapi.VerifyStore, "", &full)
	if brief.Driver != "memory" || brief.Kinds["task"] != 1 || brief.Records != 0 || full.Records < 2 ||
		full.Damaged != 0 {
		t.Errorf("the store is %+v, verified %+v", brief, full)
	}
	status, archive := p.answer("GET", adminapi.ExportStore, "")
	if lines := strings.Count(archive, "\n"); status != 200 || lines < 2 {
		t.Errorf("the archive is %d with %d lines", status, lines)
	}
	store := p.Storage
	defer func() { p.Storage = store }()
	p.Storage = struct{ node.Storage }{store}
	shared := "Conflict: " + sentenceOf(ErrShared)
	p.refuses(map[string]string{
		"GET /aip/store": shared, "POST /aip/store/verify": shared, "GET /aip/store/export": shared,
	})
}

// TestBackup: a store is copied into a directory, if its driver can do that.
func TestBackup(t *testing.T) {
	p := newAlone(t, nil)
	const form = `Bad Request: the body must be {"dir": "/an/absolute/path"}`
	p.refuses(map[string]string{
		`POST /aip/store/backup {}`:             form,
		`POST /aip/store/backup {"dir":"here"}`: form,
		`POST /aip/store/backup {"dir":"/backup"}`: "Conflict: the driver memory has nothing on the disk to be " +
			"copied; export the store",
	})
	store := p.Storage
	defer func() { p.Storage = store }()
	c := &copied{Storage: store}
	p.Storage = c
	var got adminapi.StoreBackup
	p.ask("POST", adminapi.BackupStore, `{"dir":"/backup"}`, &got)
	if diff := cmp.Diff(adminapi.StoreBackup{Dir: "/backup"}, got); diff != "" || c.dir != "/backup" {
		t.Errorf("it is copied to %s (-want +got):\n%s", c.dir, diff)
	}
	c.err = errors.New("/backup exists")
	p.refuses(map[string]string{`POST /aip/store/backup {"dir":"/backup"}`: "Bad Request: /backup exists"})
	c.err = replay.ErrUnavailable
	p.refuses(map[string]string{
		`POST /aip/store/backup {"dir":"/b"}`: "Service Unavailable: the gateway's store cannot be used now; try again " +
			"later",
	})
}
