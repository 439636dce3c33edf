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
)

// profiles are what the gateway is asked for, one after the other, under the names of their files.
var profiles = []struct{ file, query string }{
	{"cpu.pprof", "profile?seconds=20"},
	{"trace.out", "trace?seconds=3"},
	{"allocs.pprof", "allocs"},
	{"heap.pprof", "heap"},
	{"goroutines.pprof", "goroutine"},
}

// profile writes profiles of the gateway to a directory, after a while. It slows the gateway down.
func (s *site) profile(ctx context.Context, dir string, after time.Duration) error {
	wait(ctx, after)
	for _, p := range profiles {
		content, err := get(ctx, s.Admin, "/debug/pprof/"+p.query)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, p.file), content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// get returns what the admin API at an address answers.
func get(ctx context.Context, admin, path string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+admin+path, nil)
	if err != nil {
		return nil, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	content, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", path, res.Status)
	}
	return content, err
}
