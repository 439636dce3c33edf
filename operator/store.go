// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"time"

	"github.com/aip-gateway/aip-gateway/operator/adminapi"
	"github.com/aip-gateway/aip-gateway/operator/survey"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
)

// ErrShared refuses what is done with a store as a whole, where this process has a part of it.
var ErrShared = task.Errorf(task.UnsupportedOperation, "several gateways share the store, and each has a part of it; "+
	"caddy aip cluster shows the parts, and the page cluster.md how their streams are copied")

// reportStore answers with what the store has; with verify, after it has read all of it.
func reportStore(verify bool) answer {
	return func(a *Admin, r *http.Request) (any, error) {
		store, ok := a.Storage.(replay.Store)
		if !ok {
			return nil, ErrShared
		}
		// To read all takes longer than a host may let a request be read.
		report, err := survey.Of(context.WithoutCancel(r.Context()), store, verify)
		if err != nil {
			return nil, partner.StoreError(err, "the store cannot be read")
		}
		report.Driver, report.Dir = a.Store.Name, a.Store.Location()
		return report, nil
	}
}

// CopiedStore is a store of which a copy can be made while it is in use.
type CopiedStore interface {
	// Backup copies the store into a directory that does not exist yet. The error is replay.ErrUnavailable where the
	// store is to blame, and not the directory.
	Backup(ctx context.Context, dir string) error
}

// backupStore copies the store into the directory that the body names.
func backupStore(a *Admin, r *http.Request) (any, error) {
	var b adminapi.StoreBackup
	const form = `{"dir": "/an/absolute/path"}`
	if err := readBody(r, &b, form); err != nil {
		return nil, err
	}
	if !filepath.IsAbs(b.Dir) {
		return nil, errBody(form)
	}
	store, ok := a.Storage.(CopiedStore)
	if !ok {
		return nil, task.Errorf(task.UnsupportedOperation, "the driver %s has nothing on the disk to be copied; "+
			"export the store", a.Store.Name)
	}
	err := store.Backup(context.WithoutCancel(r.Context()), b.Dir) // likewise
	switch {
	case errors.Is(err, replay.ErrUnavailable):
		return nil, partner.StoreError(err, "the store cannot be copied now")
	case err != nil:
		return nil, task.Errorf(task.InvalidParams, "%v", err).WithField("dir")
	}
	return b, nil
}

// exportStore answers with an archive of the store. An archive that is cut off has no last line.
func exportStore(a *Admin, w http.ResponseWriter, r *http.Request) error {
	store, ok := a.Storage.(replay.Store)
	if !ok {
		return ErrShared
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	w.Header().Set("Content-Type", "application/x-ndjson")
	_, err := replay.Export(r.Context(), store, w)
	return err
}
