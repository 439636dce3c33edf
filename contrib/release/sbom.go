// SPDX-License-Identifier: Apache-2.0

package main

import (
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"runtime/debug"
	"strings"
)

// gateway is the module that a bill of materials is about.
const gateway = "github.com/aip-gateway/aip-gateway"

// bom is a software bill of materials: a document of CycloneDX 1.6. It has no serial number and no time, so that the
// same binary has the same one.
type bom struct {
	Schema   string `json:"$schema"`
	Format   string `json:"bomFormat"`
	Spec     string `json:"specVersion"`
	Version  int    `json:"version"`
	Metadata struct {
		Component component `json:"component"`
	} `json:"metadata"`
	Components   []component  `json:"components"`
	Dependencies []dependency `json:"dependencies"`
}

// component is a Go module in a binary, or the binary.
type component struct {
	Ref        string     `json:"bom-ref"`
	Type       string     `json:"type"`
	Name       string     `json:"name"`
	Version    string     `json:"version"`
	Hashes     []digest   `json:"hashes,omitempty"`
	Licenses   []license  `json:"licenses,omitempty"`
	URL        string     `json:"purl"`
	Properties []property `json:"properties,omitempty"`
}

type digest struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type license struct {
	License struct {
		ID string `json:"id"`
	} `json:"license"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// dependency says what a component needs.
type dependency struct {
	Ref       string   `json:"ref"`
	DependsOn []string `json:"dependsOn,omitempty"`
}

// printBOM writes the bill of materials of a binary.
func printBOM(w io.Writer, binary string) error {
	b, err := billOfMaterials(binary, "")
	if err != nil {
		return err
	}
	return b.write(w)
}

func (b *bom) write(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(b)
}

// billOfMaterials reads what is in a binary from the information that the go command leaves in it. Which module needs
// which is not there: all of them are what the gateway, or aipconform, depends on. version is that of aipconform, if it
// is known: the go command knows none of a module built in its folder.
func billOfMaterials(binary, version string) (*bom, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	sum, err := hash(binary)
	if err != nil {
		return nil, err
	}
	b := &bom{Schema: "http://cyclonedx.org/schema/bom-1.6.schema.json", Format: "CycloneDX", Spec: "1.6", Version: 1}
	std := debug.Module{Path: "std", Version: strings.TrimPrefix(info.GoVersion, "go")}
	b.Components = append(b.Components, library(&std))
	found := info.Main.Path == gateway+"/conform"
	if found {
		main := info.Main
		if version != "" {
			main.Version = version
		}
		b.Metadata.Component = application(&main, sum, info.Settings)
	}
	for _, m := range info.Deps {
		if m.Path == gateway {
			b.Metadata.Component, found = application(m, sum, info.Settings), true
			continue
		}
		b.Components = append(b.Components, library(m))
	}
	if !found {
		return nil, errors.New("the binary does not have the gateway in it")
	}
	all := dependency{Ref: b.Metadata.Component.Ref}
	for _, c := range b.Components {
		all.DependsOn = append(all.DependsOn, c.Ref)
	}
	b.Dependencies = []dependency{all}
	return b, nil
}

// application returns the component of the binary with the gateway in it.
func application(m *debug.Module, sum string, settings []debug.BuildSetting) component {
	c := library(m)
	c.Type, c.Hashes = "application", []digest{{"SHA-256", sum}}
	var own license
	own.License.ID = "Apache-2.0"
	c.Licenses = []license{own}
	for _, s := range settings {
		switch s.Key {
		case "GOOS", "GOARCH", "CGO_ENABLED":
			c.Properties = append(c.Properties, property{"cdx:gomod:build:env:" + s.Key, s.Value})
		}
	}
	return c
}

// library returns the component of a module.
func library(m *debug.Module) component {
	if m.Replace != nil && m.Replace.Version != "" { // without a version, it is a folder of who has built it
		m = m.Replace
	}
	// The form of package URLs of Go has lower case only.
	c := component{Type: "library", Name: m.Path, Version: m.Version,
		URL: "pkg:golang/" + strings.ToLower(m.Path) + "@" + strings.ReplaceAll(m.Version, "+", "%2B")}
	c.Ref = c.URL
	// The sum of a module is the SHA-256 of the list of its files' sums. CycloneDX's own tool for Go gives it so, too.
	if sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(m.Sum, "h1:")); err == nil && len(sum) > 0 {
		c.Hashes = []digest{{"SHA-256", hex.EncodeToString(sum)}}
	}
	return c
}
