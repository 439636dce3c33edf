// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// builder builds Caddy with the module of one commit, by xcaddy. The module has its version and comes from a module
// proxy, as it does for users of a published version: so the path of the source is in no binary, and xcaddy, given the
// published version, builds the same bytes.
type builder struct {
	work      string         // a folder for everything that is needed to build
	source    string         // the commit that is built
	again     string         // the same, in another folder
	module    module.Version // the gateway
	caddy     string         // the version of Caddy
	time      time.Time      // of the commit
	goVersion string
	xcaddy    string // the program
	env       []string
}

// newBuilder prepares to build the commit that is checked out. It uses the tools and versions of the gateway's
// module.
func newBuilder(ctx context.Context, work string) (*builder, error) {
	b := &builder{work: work, source: filepath.Join(work, "source"),
		again: filepath.Join(work, "again"), xcaddy: filepath.Join(work, "xcaddy")}
	root, err := output(ctx, ".", "git", "rev-parse", "--show-toplevel")
	if err != nil {
		return nil, err
	}
	var seconds int64
	var proxy, nosum string
	_, cloned := output(ctx, root, "git", "clone", "--quiet", "--shared", root, b.source)
	_, clonedAgain := output(ctx, root, "git", "clone", "--quiet", "--shared", root, b.again)
	for _, value := range []struct {
		into any
		args []string
	}{
		{&b.module.Path, []string{"go", "list", "-m"}},
		{&b.caddy, []string{"go", "list", "-m", "-f", "{{.Version}}", "github.com/caddyserver/caddy/v2"}},
		{&b.goVersion, []string{"go", "env", "GOVERSION"}},
		{&proxy, []string{"go", "env", "GOPROXY"}},
		{&nosum, []string{"go", "env", "GONOSUMDB"}},
		{&seconds, []string{"git", "log", "-1", "--format=%ct"}},
		{new(string), []string{"go", "build", "-o", b.xcaddy, "github.com/caddyserver/xcaddy/cmd/xcaddy"}},
	} {
		text, failed := output(ctx, root, value.args[0], value.args[1:]...)
		if err = errors.Join(err, failed); failed == nil && text != "" {
			_, failed = fmt.Sscan(text, value.into)
			err = errors.Join(err, failed)
		}
	}
	if err := errors.Join(cloned, clonedAgain, err); err != nil {
		return nil, err
	}
	b.time = time.Unix(seconds, 0).UTC()
	if b.module.Version, err = version(ctx, b.time); err != nil {
		return nil, err
	}
	// What shapes a binary does not depend on the environment.
	b.env = append(os.Environ(), "GOPROXY=file://"+filepath.ToSlash(filepath.Join(work, "proxy"))+","+proxy,
		"GONOSUMDB="+strings.Trim(b.module.Path+","+nosum, ","), "GOFLAGS=", "GOEXPERIMENT=", "GOWORK=off", "GOARM=",
		"GOAMD64=v1", "GOARM64=v8.0", "GOFIPS140=off", "CGO_ENABLED=0", "XCADDY_GO_BUILD_FLAGS=", "XCADDY_GO_MOD_FLAGS=",
		"XCADDY_RACE_DETECTOR=", "XCADDY_DEBUG=", "XCADDY_SETCAP=", "XCADDY_SKIP_BUILD=")
	return b, b.publish()
}

// version returns the tag of the commit, or else a pseudo-version, as the go command makes it.
func version(ctx context.Context, at time.Time) (string, error) {
	tags := []string{"describe", "--tags", "--match", "v[0-9]*.[0-9]*.[0-9]*"}
	if tag, err := output(ctx, ".", "git", append(tags, "--exact-match")...); err == nil {
		return tag, nil
	}
	before, _ := output(ctx, ".", "git", append(tags, "--abbrev=0")...) // fails if there is no tag
	commit, err := output(ctx, ".", "git", "rev-parse", "HEAD")
	if err != nil {
		return "", err
	}
	return module.PseudoVersion("", before, at, commit[:12]), nil
}

// publish writes the module as a proxy serves it.
func (b *builder) publish() error {
	dir := filepath.Join(b.work, "proxy", filepath.FromSlash(b.module.Path), "@v")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	mod, err := os.ReadFile(filepath.Join(b.source, "go.mod"))
	if err != nil {
		return err
	}
	info := fmt.Sprintf(`{"Version":%q,"Time":%q}`, b.module.Version, b.time.Format(time.RFC3339))
	text := func(content string) func(io.Writer) error {
		return func(w io.Writer) error { _, err := io.WriteString(w, content); return err }
	}
	path := filepath.Join(dir, b.module.Version)
	return errors.Join(
		create(filepath.Join(dir, "list"), text(b.module.Version+"\n")),
		create(path+".info", text(info)),
		create(path+".mod", text(string(mod))),
		create(path+".zip", func(w io.Writer) error {
			return zip.CreateFromVCS(w, b.module, b.source, "HEAD", "")
		}),
	)
}

// build builds a binary twice, and returns the path of one of them if both have the same bytes.
func (b *builder) build(ctx context.Context, name, system, arch string,
	command func(ctx context.Context, path string, turn int) *exec.Cmd) (string, error) {
	if system == "windows" {
		name += ".exe"
	}
	var first []byte
	var path string
	for i, turn := range []string{"first", "second"} {
		path = filepath.Join(b.work, turn, system, arch, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return "", err
		}
		cmd := command(ctx, path, i)
		cmd.Env = append(b.env, "GOOS="+system, "GOARCH="+arch)
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("%w:\n%s", err, out)
		}
		content, err := os.ReadFile(path)
		switch {
		case err != nil:
			return "", err
		case i == 0:
			first = content
		case !bytes.Equal(first, content):
			return "", errors.New("two builds have different bytes")
		}
	}
	return path, nil
}

// caddyCommand builds Caddy with the gateway.
func (b *builder) caddyCommand(ctx context.Context, path string, _ int) *exec.Cmd {
	cmd := exec.CommandContext(ctx, b.xcaddy, "build", b.caddy, "--with", b.module.String(), "--output", path)
	cmd.Dir = filepath.Dir(path)
	return cmd
}

// conformCommand builds aipconform, each time from a folder of its own.
func (b *builder) conformCommand(ctx context.Context, path string, turn int) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-w -s", "-o", path,
		"./aipconform")
	cmd.Dir = filepath.Join([]string{b.source, b.again}[turn], "conform")
	return cmd
}

// conformFiles returns the files in the archive of aipconform: its checks are data, which others use without it.
func (b *builder) conformFiles(ctx context.Context) ([]string, error) {
	list, err := output(ctx, b.source, "git", "ls-files", "LICENSE", "conform/*.md", "conform/*.yaml")
	return strings.Fields(list), err
}
