// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/caddyserver/caddy/v2"

	"github.com/aip-gateway/aip-gateway/node"
	"github.com/aip-gateway/aip-gateway/notify"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/shard/ask"
)

// stores holds the open stores of this process. A new configuration continues with the store, and the turns, of the one
// before.
var stores = caddy.NewUsagePool()

// opening is held while a store is opened, retained or released, so that no store is opened while it is being closed.
var opening sync.Mutex

// storeKey is equal for configurations that use the same store.
func storeKey(d StoreDriver) string { return driverName(d) + ":" + d.Location() }

// openStore is an open store, with what works on its shards. Configurations share it.
type openStore struct {
	node.Node

	driver  StoreDriver // of the configuration that has opened it
	store   node.Storage
	shared  SharedStore // the same, if other processes use it, too; otherwise nil
	admin   *ask.Service[adminQuestion, adminAnswered]
	tracer  *tracer
	metrics *metricsExporter

	mu      sync.Mutex
	configs []storeConfig // of the configurations that run, oldest first
}

// storeConfig is what one configuration sets for a store.
type storeConfig struct {
	app      *App
	settings replay.Settings
	notify   notify.Config
}

// open returns the store of a driver. It opens the store if no running configuration has. The caller must release it
// once.
func open(d StoreDriver) (*openStore, error) {
	opening.Lock()
	defer opening.Unlock()
	v, _, err := stores.LoadOrNew(storeKey(d), func() (caddy.Destructor, error) {
		o, err := openNew(d)
		if err != nil {
			return nil, fmt.Errorf("store: %w", err)
		}
		return o, nil
	})
	if err != nil {
		return nil, err
	}
	o := v.(*openStore)
	if shared, ok := o.driver.(SharedDriver); ok {
		if err := shared.Continues(d); err != nil {
			_, released := stores.Delete(storeKey(d))
			return nil, fmt.Errorf("store: %w", errors.Join(err, released))
		}
	}
	return o, nil
}

// openNew opens the store. It outlives this configuration, and so it logs to the process.
func openNew(d StoreDriver) (*openStore, error) {
	ctx, log := context.Background(), logOf("aip")
	o := &openStore{driver: d}
	shards, err := o.openShards(logOf("aip.store"))
	if err != nil {
		return nil, err
	}
	o.tracer = newTracer(ctx, log)
	c := node.Config{Process: process, Shards: shards, Tracer: o.tracer.provider(), Log: logOf}
	if o.shared != nil {
		c.Owners = o.shared.Owners()
	}
	if err := o.Open(c); err != nil {
		o.tracer.close()
		return nil, errors.Join(err, o.leave())
	}
	o.openAdmin()
	o.metrics = newMetricsExporter(ctx, log)
	return o, nil
}

// retain is open for a store that was released. It reports false if the store was closed since.
func (o *openStore) retain() bool {
	opening.Lock()
	defer opening.Unlock()
	found := false
	stores.Range(func(_, value any) bool {
		found = value == o
		return !found
	})
	if found {
		stores.LoadOrStore(storeKey(o.driver), o)
	}
	return found
}

// release ends the use of a store. The last release closes it.
func (o *openStore) release() error {
	opening.Lock()
	defer opening.Unlock()
	_, err := stores.Delete(storeKey(o.driver))
	return err
}

// running returns the store of the running configuration; nil if none runs.
func running() (found *openStore) {
	stores.Range(func(_, value any) bool {
		o := value.(*openStore)
		o.mu.Lock()
		defer o.mu.Unlock()
		if len(o.configs) > 0 {
			found = o
		}
		return true
	})
	return found
}

// configure adds a configuration. The newest one is in force. If it fails to start, that of the running one is in force
// again. a.mu is held.
func (o *openStore) configure(a *App) {
	c := storeConfig{a, a.store.Settings(), *a.Notify.config()}
	c.notify.TracerProvider, c.notify.Stopped = o.tracer.provider(), a.stopped(o.Leaders.Lost)
	c.notify.Certificates = a.Certificates.shown(a.members)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.remove(a)
	o.configs = append(o.configs, c)
	o.apply()
}

// forget removes a configuration.
func (o *openStore) forget(a *App) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.remove(a)
	o.apply()
}

// remove removes a configuration. o.mu is held.
func (o *openStore) remove(a *App) {
	o.configs = slices.DeleteFunc(o.configs, func(c storeConfig) bool { return c.app == a })
}

// newest returns the configuration that is in force; nil if there is none.
func (o *openStore) newest() *App {
	o.mu.Lock()
	defer o.mu.Unlock()
	if n := len(o.configs); n > 0 {
		return o.configs[n-1].app
	}
	return nil
}

// partners returns the Partners of the configuration that is in force. The list is not to be changed.
func (o *openStore) partners() node.Partners {
	if app := o.newest(); app != nil {
		return app.partners
	}
	return nil
}

// members returns the handlers of the configuration that is in force. The list is not to be changed.
func (o *openStore) members() []*Gateway {
	app := o.newest()
	if app == nil {
		return nil
	}
	app.mu.Lock()
	defer app.mu.Unlock()
	return app.members
}

// apply puts the newest configuration in force. o.mu is held.
func (o *openStore) apply() {
	if n := len(o.configs); n > 0 {
		o.store.Configure(o.configs[n-1].settings)
		o.Tasks.Configure(o.configs[n-1].notify)
	}
}

// Destruct stops the work on all tasks, which the next process resumes, and closes the store.
func (o *openStore) Destruct() error {
	defer o.tracer.close()
	o.metrics.close()
	return errors.Join(o.Close(), o.leave())
}
