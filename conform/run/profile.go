// SPDX-License-Identifier: Apache-2.0

package run

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/aip-gateway/aip-gateway/conform/wire"
)

// Profile says where a Partner is, and what it can do.
type Profile struct {
	// URL is the address from which the others follow. URLs are those of operations by name, in its place.
	URL  string            `yaml:"url"`
	URLs map[string]string `yaml:"urls"`
	// CA is a file with the authorities of the Partner's certificate.
	CA         string                      `yaml:"ca"`
	ServerName string                      `yaml:"tls_name"`
	HTTP       string                      `yaml:"http"`
	Identities map[string]*ProfileIdentity `yaml:"identities"`
	Partner    struct {
		AIC      string `yaml:"aic"`
		Name     string `yaml:"name"`
		Version  string `yaml:"version"`
		Language string `yaml:"language"`
	} `yaml:"partner"`
	// Behaviors are the texts that make the Partner do something.
	Behaviors map[string]string `yaml:"behaviors"`
	// Protocols are those that it speaks; empty to find out.
	Protocols []string `yaml:"protocols"`
	Bounds    Bounds   `yaml:"bounds"`
	Receivers struct {
		Address string `yaml:"address"`
		Host    string `yaml:"host"`
		Cert    string `yaml:"cert"`
		Key     string `yaml:"key"`
	} `yaml:"receivers"`
	// Headers go with each request.
	Headers   map[string]string `yaml:"headers"`
	Variables map[string]any    `yaml:"variables"`
	// Parallel is the most tests at a time.
	Parallel int `yaml:"parallel"`
}

// ProfileIdentity is the files of a caller.
type ProfileIdentity struct {
	Cert string `yaml:"cert"`
	Key  string `yaml:"key"`
	AIC  string `yaml:"aic"`
}

// Bounds are the times of a run, in milliseconds.
type Bounds struct {
	AnswerMS int `yaml:"answer_ms"` // of an answer
	StreamMS int `yaml:"stream_ms"` // of a stream that has not ended
	SettleMS int `yaml:"settle_ms"` // of quiet, before a stream is taken to have no more events
	WaitMS   int `yaml:"wait_ms"`   // of an event or a webhook
	TestMS   int `yaml:"test_ms"`   // of a test
}

func millis(n int) time.Duration { return time.Duration(n) * time.Millisecond }

//go:embed profile.yaml
var defaultProfile []byte

// DefaultProfile returns that of aip_sample_agent.
func DefaultProfile() *Profile {
	p := new(Profile)
	if err := p.read(defaultProfile); err != nil {
		panic(err) // it is tested
	}
	return p
}

// Load reads a file over the values that the Profile has. File names in it are from its folder.
func (p *Profile) Load(file string) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := p.read(content); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	names := []*string{&p.CA, &p.Receivers.Cert, &p.Receivers.Key}
	for _, id := range p.Identities {
		if id != nil {
			names = append(names, &id.Cert, &id.Key)
		}
	}
	for _, name := range names {
		if *name != "" && !filepath.IsAbs(*name) {
			*name = filepath.Join(filepath.Dir(file), *name)
		}
	}
	return nil
}

// read puts the content over the Profile. A behavior whose text is empty is one that the Partner has not.
func (p *Profile) read(content []byte) error {
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	decoder.KnownFields(true)
	if err := decoder.Decode(p); err != nil {
		return err
	}
	for name, text := range p.Behaviors {
		if text == "" {
			delete(p.Behaviors, name)
		}
	}
	return nil
}

// identities loads the callers. A Partner by HTTPS has none, too: one without a certificate.
func (p *Profile) identities(secure bool) (map[string]*wire.Identity, error) {
	all := map[string]*wire.Identity{"leader": {Name: "leader", AIC: defaultLeader}}
	var errs []error
	for name, given := range p.Identities {
		switch {
		case given == nil:
			delete(all, name)
		case given.Cert == "":
			all[name] = &wire.Identity{Name: name, AIC: given.AIC}
		default:
			id, err := wire.LoadIdentity(name, given.Cert, given.Key, given.AIC)
			errs = append(errs, err)
			all[name] = id
		}
	}
	if secure && all["none"] == nil {
		all["none"] = &wire.Identity{Name: "none"}
	}
	return all, errors.Join(errs...)
}

// defaultLeader is the AIC of a Leader without a certificate. Its check digits are right.
const defaultLeader = "ACPSCONFORMLEADER000000000000194"
