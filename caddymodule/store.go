// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
	"github.com/aip-gateway/aip-gateway/caddymodule/store"
	_ "github.com/aip-gateway/aip-gateway/caddymodule/storejetstream" // the drivers of this program
	_ "github.com/aip-gateway/aip-gateway/caddymodule/storememory"
	_ "github.com/aip-gateway/aip-gateway/caddymodule/storepebble"
	"github.com/aip-gateway/aip-gateway/internal/shown"
)

// The member of a driver's JSON that has its name, and the driver that needs none.
const (
	driverKey     = "driver"
	defaultDriver = "pebble"
)

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
	if given := settings[driverKey]; given != nil && given != "" {
		name = fmt.Sprint(given)
	}
	if err := store.Check(name); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	a.StoreRaw = caddyconfig.JSONModuleObject(settings, driverKey, name, nil)
	module, err := ctx.LoadModule(a, "StoreRaw")
	if err != nil {
		return err
	}
	driver, ok := module.(store.Driver)
	if !ok {
		return fmt.Errorf("store: the module %s.%s is not a store.Driver", store.Namespace, name)
	}
	a.store = driver
	return nil
}

// readStore reads the driver of a store and what it needs, which the driver reads.
func (a *App) readStore(p *conf.Parser) func() {
	return func() {
		if !p.NextArg() {
			p.Fail("store needs a driver: " + shown.OneOf(store.Names()))
			return
		}
		name := p.Val()
		module, err := caddy.GetModule(store.Namespace + "." + name)
		if err != nil {
			p.Fail(store.Check(name).Error())
			return
		}
		var driver any = module.New()
		if own, ok := driver.(store.Written); ok {
			a.written = own
			own.Read(p)
		} else if driver, err = caddyfile.UnmarshalModule(p.Dispenser, string(module.ID)); err != nil {
			p.Keep(err)
			return
		}
		a.StoreRaw = caddyconfig.JSONModuleObject(driver, driverKey, name, nil)
	}
}

// checkShared returns an error for a handler that does not go with a store that several processes share.
func (a *App) checkShared(g *Gateway) error {
	d, ok := a.store.(store.SharedDriver)
	if !ok || g.Agent.Resend.Never {
		return nil
	}
	if after, least := time.Duration(*g.Agent.Resend.After), d.LeastResend(); after < least {
		return fmt.Errorf("agent: resend after is %s, but must be at least %s, twice the lease of the store: until then the "+
			"gateway that owned the task before may still send the message", after, least)
	}
	return nil
}
