// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
)

const (
	bundleEvery = time.Hour
	bundleRetry = 5 * time.Minute
)

// followBundle writes the roots of the authority to the file, each hour.
func (c *Certificates) followBundle(ctx context.Context, log *slog.Logger) {
	failed := ""
	for wait := time.Duration(0); ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		wait = bundleEvery
		switch changed, err := c.writeBundle(ctx); {
		case ctx.Err() != nil:
		case err != nil:
			wait = bundleRetry
			if failed != err.Error() {
				log.Warn("the roots of the authority of certificates cannot be had; those in the file stay",
					"file", c.TrustBundle, "error", err)
			}
			failed = err.Error()
		case changed:
			log.Info("the roots of the authority of certificates have changed, and are in the file", "file", c.TrustBundle)
			fallthrough
		default:
			failed = ""
		}
	}
}

// writeBundle writes the roots to the file, unless it has them.
func (c *Certificates) writeBundle(ctx context.Context) (changed bool, err error) {
	file, err := conf.FileName(caddy.NewReplacer(), c.TrustBundle)
	if err != nil {
		return false, err
	}
	bundle, err := c.client.Bundle(ctx)
	if err != nil {
		return false, err
	}
	if before, err := os.ReadFile(file); err == nil && string(before) == string(bundle) {
		return false, nil
	}
	part, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+".*")
	if err != nil {
		return false, err
	}
	_, err = part.Write(bundle)
	err = errors.Join(err, part.Chmod(0o644), part.Sync(), part.Close())
	if err == nil {
		err = os.Rename(part.Name(), file)
	}
	if err != nil {
		_ = os.Remove(part.Name())
	}
	return err == nil, err
}
