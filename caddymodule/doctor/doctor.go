// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
)

// configuration is what is read of an adapted configuration.
type configuration struct {
	Storage json.RawMessage `json:"storage"`
	Apps    struct {
		AIP  json.RawMessage `json:"aip"`
		HTTP struct {
			Servers map[string]server `json:"servers"`
		} `json:"http"`
		TLS tlsApp `json:"tls"`
	} `json:"apps"`
}

// aunFiles is what is read of the option aun of the app aip.
type aunFiles struct {
	Cert  string   `json:"cert"`
	Roots []string `json:"roots"`
	CRL   []string `json:"crl"`
}

// aun returns the files of AUN; none if there is no such option.
func (c *configuration) aun() aunFiles {
	var app struct {
		AUN aunFiles `json:"aun"`
	}
	_ = json.Unmarshal(c.Apps.AIP, &app) // that of no app fails, and what is wrong with one is a finding of its own
	return app.AUN
}

// Examine examines the configuration in a file, and what it names; without a file, the Caddyfile of the current folder.
// It changes nothing, but for what the agent does that is tried.
func Examine(ctx context.Context, file, adapter string, try Try) []Finding {
	broken := func(err error) []Finding {
		return []Finding{{CheckConfiguration, Broken, named(file), err.Error()}}
	}
	if err := quiet(); err != nil {
		return broken(err)
	}
	text, used, err := load(file, adapter)
	if err != nil {
		return broken(err)
	}
	file = used
	var c configuration
	if err := json.Unmarshal(text, &c); err != nil {
		return broken(fmt.Errorf("the configuration cannot be decoded: %w; correct it", err))
	}
	partners := c.partners()
	if len(partners) == 0 {
		return broken(errors.New("there is no aip_gateway in the configuration; add it to a site"))
	}
	findings := c.examineCertificates(partners, time.Now())
	for i := range partners {
		findings = append(findings, partners[i].examineBasePath()...)
		findings = append(findings, partners[i].examineAddress()...)
		findings = append(findings, partners[i].examineTimeouts()...)
		partners[i].ShowsAIC = c.Apps.TLS.shows(&partners[i])
		findings = append(findings, partners[i].examinePublic()...)
	}
	examined, err := c.examineApp(ctx, partners, try)
	if err != nil {
		return broken(err)
	}
	findings = append(findings, examined...)
	// What Caddy refuses beside these settings has one finding at most.
	for _, f := range findings {
		if f.Status == Broken && (f.Check == CheckConfiguration || f.Check == CheckCertificate) {
			return findings
		}
	}
	whole := Finding{CheckConfiguration, OK, named(file), "Caddy accepts the configuration"}
	consoles, err := provision(text)
	if slices.ContainsFunc(consoles, func(c Console) bool { return c.Refused() != nil }) {
		return slices.Concat(findings, consoleFindings(consoles))
	}
	if err != nil {
		whole.Status, whole.Text = Broken, fmt.Sprintf("Caddy refuses the configuration: %v; correct it", err)
	}
	return slices.Concat([]Finding{whole}, findings, consoleFindings(consoles))
}

// load returns an adapted configuration, and the name of its file.
func load(file, adapter string) (text []byte, used string, err error) {
	text, used, _, err = caddycmd.LoadConfig(file, adapter)
	switch {
	case err != nil:
		return nil, "", fmt.Errorf("the configuration cannot be read: %w; correct it", err)
	case len(text) == 0:
		return nil, "", errors.New("there is no Caddyfile in this directory; name the configuration with --config")
	}
	return caddy.RemoveMetaFields(text), used, nil
}

// named returns the name of a configuration.
func named(file string) string {
	if file == "" {
		return "Caddyfile"
	}
	return file
}

// provisioning returns a context in which modules find the storage of the configuration. Nothing is started.
func (c *configuration) provisioning(ctx context.Context) (caddy.Context, error) {
	whole, err := caddy.ProvisionContext(&caddy.Config{Logging: discard(), StorageRaw: c.Storage})
	if err != nil {
		return whole, fmt.Errorf("the storage cannot be used: %w; correct it", err)
	}
	whole.Context = ctx
	return whole, nil
}

// examineApp examines the app aip and its Partners.
func (c *configuration) examineApp(ctx context.Context, mounted []mounted, try Try) ([]Finding, error) {
	app, provisioning, end, err := c.app(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	partners := handlers(mounted)
	setup, err := app.Setup(provisioning, partners)
	if err != nil {
		return []Finding{{CheckConfiguration, Broken, "aip", err.Error()}}, nil
	}
	return setup.Examine(ctx, partners, try), nil
}

// app decodes the app aip. It returns it with a context for Setup, until end.
func (c *configuration) app(ctx context.Context) (app Examiner, provisioning caddy.Context, end func(), err error) {
	info, err := caddy.GetModule("aip")
	if err != nil {
		return nil, provisioning, nil, err
	}
	app, ok := info.New().(Examiner)
	if !ok {
		return nil, provisioning, nil, errors.New("the app aip of this program cannot be examined")
	}
	if len(c.Apps.AIP) > 0 {
		if err := caddy.StrictUnmarshalJSON(c.Apps.AIP, app); err != nil {
			return nil, provisioning, nil, fmt.Errorf("the app aip cannot be decoded: %w; correct it", err)
		}
	}
	whole, err := c.provisioning(ctx)
	if err != nil {
		return nil, provisioning, nil, err
	}
	provisioning, end = caddy.NewContext(whole)
	return app, provisioning, end, nil
}

// handlers returns the Partners of a configuration without how requests get to them.
func handlers(mounted []mounted) []Partner {
	partners := make([]Partner, len(mounted))
	for i := range mounted {
		partners[i] = mounted[i].Partner
	}
	return partners
}

// discard is logging of Caddy that writes nothing. It has a level and not the writer discard, because Caddy logs that a
// writer was replaced.
func discard() *caddy.Logging {
	return &caddy.Logging{Logs: map[string]*caddy.CustomLog{caddy.DefaultLoggerName: {BaseLog: caddy.BaseLog{
		Level: "fatal"}}}}
}

// quiet makes Caddy log nothing more: all that matters is a finding.
func quiet() error { return caddy.Validate(&caddy.Config{Logging: discard()}) }

// provision has Caddy provision a configuration, without starting it, and returns its consoles, also those for which
// Caddy refuses it. Caddy gets an empty directory as its storage, where some modules make files.
func provision(text []byte) (consoles []Console, err error) {
	var c caddy.Config
	if err := caddy.StrictUnmarshalJSON(text, &c); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "caddy-aip-doctor-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	c.Logging = discard()
	if c.StorageRaw, err = json.Marshal(map[string]string{"module": "file_system", "root": dir}); err != nil {
		return nil, err
	}
	apps := c.AppsRaw
	c.AppsRaw = nil
	whole, err := caddy.ProvisionContext(&c)
	if err != nil {
		return nil, err
	}
	c.AppsRaw = apps // they are in a context of their own, which cleans them up
	ctx, end := caddy.NewContext(whole)
	defer end()
	var failed error
	for name := range apps {
		if _, err := ctx.App(name); err != nil {
			failed = err
			break
		}
	}
	app, err := ctx.App("aip")
	if err != nil {
		return nil, cmp.Or(failed, err)
	}
	return app.(Examiner).Consoles(), failed
}
