// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
	"github.com/aip-gateway/aip-gateway/node"
	"github.com/aip-gateway/aip-gateway/replay"
)

// StoreDriver is a module of the namespace aip.stores: where tasks are stored, how durably, and for how long. To be
// used in a Caddyfile, it is a caddyfile.Unmarshaler, too. doctor provisions it without other apps. What only some
// drivers or their stores can do is an interface where it is used.
type StoreDriver interface {
	caddy.Module
	node.Driver

	// TaskLimits returns how many events of one task are kept, and how many bytes of them.
	TaskLimits() (events int, bytes int64)
}

// The namespace of drivers, and the member of their JSON that has the name of the driver.
const (
	storeNamespace = "aip.stores"
	storeDriverKey = "driver"
	defaultDriver  = "pebble"
)

// driverName returns the name of a driver in a configuration.
func driverName(d StoreDriver) string { return d.CaddyModule().ID.Name() }

// checkDriver says which drivers there are if there is none with a name.
func checkDriver(name string) error {
	if _, err := caddy.GetModule(storeNamespace + "." + name); err != nil {
		return fmt.Errorf("there is no driver %q; use %s", name, conf.OneOf(driverNames()))
	}
	return nil
}

// driverNames returns the names of all drivers in this program.
func driverNames() (names []string) {
	for _, m := range caddy.GetModules(storeNamespace) {
		names = append(names, m.ID.Name())
	}
	return names
}

// loadStore loads the driver of the store. It opens nothing.
func (a *App) loadStore(ctx caddy.Context) (err error) {
	var settings map[string]any
	if len(a.StoreRaw) > 0 {
		if err := json.Unmarshal(a.StoreRaw, &settings); err != nil {
			return fmt.Errorf("store: %w", err)
		}
	}
	if settings == nil { // of null, or of nothing
		settings = make(map[string]any)
	}
	name := defaultDriver
	if given := settings[storeDriverKey]; given != nil && given != "" {
		name = fmt.Sprint(given)
	}
	if err := checkDriver(name); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	a.StoreRaw = caddyconfig.JSONModuleObject(settings, storeDriverKey, name, nil)
	module, err := ctx.LoadModule(a, "StoreRaw")
	if err != nil {
		return err
	}
	driver, ok := module.(StoreDriver)
	if !ok {
		return fmt.Errorf("store: the module %s.%s is not a caddymodule.StoreDriver", storeNamespace, name)
	}
	a.store = driver
	return nil
}

// ownDriver is a driver of this package. Its block is read like ours, so that a mistake is found at its option.
type ownDriver interface {
	// read reads the driver in a Caddyfile, behind its name.
	read(p *conf.Parser)
	// checkWritten checks what was read, and changes nothing.
	checkWritten() error
}

// readStore reads the driver of a store and what it needs, which the driver reads.
func (a *App) readStore(p *conf.Parser) func() {
	return func() {
		if !p.NextArg() {
			p.Fail("store needs a driver: " + conf.OneOf(driverNames()))
			return
		}
		name := p.Val()
		module, err := caddy.GetModule(storeNamespace + "." + name)
		if err != nil {
			p.Fail(checkDriver(name).Error())
			return
		}
		var driver any = module.New()
		if own, ok := driver.(ownDriver); ok {
			a.written = own
			own.read(p)
		} else if driver, err = caddyfile.UnmarshalModule(p.Dispenser, string(module.ID)); err != nil {
			p.Keep(err)
			return
		}
		a.StoreRaw = caddyconfig.JSONModuleObject(driver, storeDriverKey, name, nil)
	}
}

// maxEvents is how many events of one task are kept. Beyond it, a snapshot of the task replaces the oldest ones.
const maxEvents = 10_000

// StoreLimits are the settings of all drivers. Drivers are modules, and a build of Caddy may have more of them.
//
// A driver embeds them, and calls Provision and Validate where it has methods of its own by these names.
type StoreLimits struct {
	// The time to keep an ended task. Default: 24h.
	Retention caddy.Duration `json:"retention,omitempty"`

	// The time to keep an ended task beyond retention for a follower without its end: a group without its broker, a client
	// of AUN, an inbox. Default: 168h.
	KeepUnread caddy.Duration `json:"keep_unread,omitempty"`

	// Bytes of one task's events; beyond it, and beyond 10000 events, a snapshot replaces the oldest. A larger task fails,
	// and a continue beyond it is refused (−32050). At least 64KiB. Default: 64 MiB.
	MaxBytes int64 `json:"max_bytes,omitempty"`

	// Bytes of all ended tasks and their webhooks; beyond it, tasks near the end of their retention go early. In memory:
	// of all tasks; the least used ones go, then new ones are refused. At least max_bytes. See docs/production.md#disk.
	// Default: no bound; in memory, 512 MiB.
	MaxSize int64 `json:"max_size,omitempty"`
}

// Provision sets defaults.
func (l *StoreLimits) Provision(caddy.Context) error {
	conf.OrDefault(&l.Retention, caddy.Duration(replay.DefaultRetention))
	conf.OrDefault(&l.KeepUnread, caddy.Duration(replay.DefaultPinFor))
	conf.OrDefault(&l.MaxBytes, 64<<20)
	return nil
}

// Validate checks the settings.
func (l *StoreLimits) Validate() error {
	if err := cmp.Or(conf.NotNegative("store: retention", l.Retention),
		conf.NotNegative("store: keep_unread", l.KeepUnread),
		conf.NotNegativeNumber("store: max_size", l.MaxSize)); err != nil {
		return err
	}
	if l.MaxSize > 0 && l.MaxSize < l.MaxBytes {
		return fmt.Errorf("store: max_size (%d bytes) is less than max_bytes (%d), so that one task could not be kept",
			l.MaxSize, l.MaxBytes)
	}
	if l.MaxBytes < 64<<10 {
		return fmt.Errorf("store: max_bytes is %d, but must be at least 64KiB", l.MaxBytes)
	}
	return nil
}

// checkWritten checks what stands in a Caddyfile, and changes nothing.
func (l *StoreLimits) checkWritten() error {
	c := *l
	return errors.Join(c.Provision(caddy.Context{}), c.Validate())
}

// Settings implements StoreDriver, for a driver that has no other settings that may change while a store is open.
func (l *StoreLimits) Settings() replay.Settings {
	return replay.Settings{Retention: time.Duration(l.Retention), PinFor: time.Duration(l.KeepUnread), MaxSize: l.MaxSize}
}

// TaskLimits implements StoreDriver.
func (l *StoreLimits) TaskLimits() (events int, bytes int64) { return maxEvents, l.MaxBytes }

// readStoreBlock reads what follows the name and the arguments of a driver: a block with the settings that all drivers
// have, and with its own. Syntax:
//
//	store <driver> {
//		retention   <duration>
//		keep_unread <duration>
//		max_bytes   <size>
//		max_size    <size>
//	}
func readStoreBlock(p *conf.Parser, driver string, l *StoreLimits, own conf.Options) {
	if p.NextArg() {
		p.Fail(fmt.Sprintf("store %s takes no argument %q", driver, p.Val()))
		return
	}
	known := conf.Options{
		"retention":   p.Duration(&l.Retention),
		"keep_unread": p.Duration(&l.KeepUnread),
		"max_bytes":   conf.Size(p, &l.MaxBytes),
		"max_size":    conf.Size(p, &l.MaxSize),
	}
	maps.Copy(known, own)
	p.Block("store "+driver, known)
}
