// SPDX-License-Identifier: Apache-2.0

// Package store is what the host and the modules of the namespace aip.stores have in common: the contract of a driver,
// and the settings that all have. A driver imports this package, and nothing of the host.
package store

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
	"github.com/aip-gateway/aip-gateway/internal/shown"
	"github.com/aip-gateway/aip-gateway/node"
	"github.com/aip-gateway/aip-gateway/replay"
)

// Driver is a module of the namespace aip.stores: where tasks are stored, how durably, and for how long. To be
// used in a Caddyfile, it is a caddyfile.Unmarshaler, too. doctor provisions it without other apps. What only some
// drivers or their stores can do is an interface where it is used.
type Driver interface {
	caddy.Module
	node.Driver

	// TaskLimits returns how many events of one task are kept, and how many bytes of them.
	TaskLimits() (events int, bytes int64)
}

// Namespace is that of the modules.
const Namespace = "aip.stores"

// NameOf returns the name of a driver in a configuration.
func NameOf(d Driver) string { return d.CaddyModule().ID.Name() }

// Check says which drivers there are if there is none with a name.
func Check(name string) error {
	if _, err := caddy.GetModule(Namespace + "." + name); err != nil {
		return fmt.Errorf("there is no driver %q; use %s", name, shown.OneOf(Names()))
	}
	return nil
}

// Names returns the names of all drivers in this program.
func Names() (names []string) {
	for _, m := range caddy.GetModules(Namespace) {
		names = append(names, m.ID.Name())
	}
	return names
}

// SharedDriver is a Driver whose stores several processes share. Its Open is not called.
type SharedDriver interface {
	Driver
	node.SharedDriver

	// LeastResend returns for how long an agent must be asked for a message before the message is sent again: until then a
	// process that owned the task before may still send it.
	LeastResend() time.Duration
}

// Written is a driver whose block is read like those of the host, so that a mistake is found at its option.
type Written interface {
	// Read reads the driver in a Caddyfile, behind its name.
	Read(p *conf.Parser)
	// CheckWritten checks what was read, and changes nothing.
	CheckWritten() error
}

// maxEvents is how many events of one task are kept. Beyond it, a snapshot of the task replaces the oldest ones.
const maxEvents = 10_000

// Limits are the settings of all drivers. Drivers are modules, and a build of Caddy may have more of them.
//
// A driver embeds them, and calls Provision and Validate where it has methods of its own by these names.
type Limits struct {
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
func (l *Limits) Provision(caddy.Context) error {
	conf.OrDefault(&l.Retention, caddy.Duration(replay.DefaultRetention))
	conf.OrDefault(&l.KeepUnread, caddy.Duration(replay.DefaultPinFor))
	conf.OrDefault(&l.MaxBytes, 64<<20)
	return nil
}

// Validate checks the settings.
func (l *Limits) Validate() error {
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

// CheckWritten checks what stands in a Caddyfile, and changes nothing.
func (l *Limits) CheckWritten() error {
	c := *l
	return errors.Join(c.Provision(caddy.Context{}), c.Validate())
}

// Settings implements Driver, for a driver that has no other settings that may change while a store is open.
func (l *Limits) Settings() replay.Settings {
	return replay.Settings{Retention: time.Duration(l.Retention), PinFor: time.Duration(l.KeepUnread), MaxSize: l.MaxSize}
}

// TaskLimits implements Driver.
func (l *Limits) TaskLimits() (events int, bytes int64) { return maxEvents, l.MaxBytes }

// ReadBlock reads what follows the name and the arguments of a driver: a block with the settings that all drivers
// have, and with its own. Syntax:
//
//	store <driver> {
//		retention   <duration>
//		keep_unread <duration>
//		max_bytes   <size>
//		max_size    <size>
//	}
func ReadBlock(p *conf.Parser, driver string, l *Limits, own conf.Options) {
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
