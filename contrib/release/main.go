// SPDX-License-Identifier: Apache-2.0

// Command release builds what is published of a version: for each platform an archive with the gateway's binary, and
// one with aipconform and its checks, their software bills of materials, and the checksums of all. The same commit and
// version of Go give the same bytes, wherever they are built: every binary is built twice, in different folders, and
// compared.
//
//	go run . [-out ../../dist] [-platforms linux/amd64,darwin/arm64]
//	go run . -sbom ../../caddy
//
// It is a module of its own, so that what only it needs is not in the gateway's go.mod, and runs in its folder.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

// everywhere are the platforms of a release.
const everywhere = "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64"

func main() {
	log.SetFlags(0)
	out := flag.String("out", filepath.Join("..", "..", "dist"), "the folder for the files; they must not exist yet")
	platforms := flag.String("platforms", everywhere, "what to build for")
	binary := flag.String("sbom", "", "only print the bill of materials of this binary")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if *binary != "" {
		err = printBOM(os.Stdout, *binary)
	} else {
		err = release(ctx, *out, strings.Split(*platforms, ","))
	}
	if err != nil {
		log.Fatal(err)
	}
}

// release builds the commit that is checked out, for each platform.
func release(ctx context.Context, out string, platforms []string) error {
	work, err := os.MkdirTemp("", "release")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	if changes, err := output(ctx, ".", "git", "status", "--porcelain"); err != nil {
		return err
	} else if changes != "" {
		log.Print("what is not committed is not in the release")
	}
	b, err := newBuilder(ctx, work)
	if err != nil {
		return err
	}
	log.Printf("%s %s, with %s", b.module.Path, b.module.Version, b.goVersion)
	checks, err := b.conformFiles(ctx)
	if err != nil {
		return err
	}
	var files []string
	for _, platform := range platforms {
		system, arch, found := strings.Cut(platform, "/")
		if !found {
			return fmt.Errorf("the platform %q is not of the form linux/amd64", platform)
		}
		for _, p := range []struct {
			name    string
			program string
			build   func(ctx context.Context, path string, turn int) *exec.Cmd
			files   []string
		}{
			{filepath.Base(b.module.Path), "caddy", b.caddyCommand, []string{"LICENSE"}},
			{"aipconform", "aipconform", b.conformCommand, checks},
		} {
			binary, err := b.build(ctx, p.program, system, arch, p.build)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", p.program, platform, err)
			}
			bom, err := billOfMaterials(binary, b.module.Version)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", p.program, platform, err)
			}
			name := strings.Join([]string{p.name, b.module.Version, system, arch}, "_")
			files = append(files, name+".cdx.json", name+".tar.gz")
			if err := errors.Join(
				create(filepath.Join(out, name+".cdx.json"), bom.write),
				create(filepath.Join(out, name+".tar.gz"), archive(b.time, binary, b.source, p.files...)),
			); err != nil {
				return err
			}
		}
	}
	return create(filepath.Join(out, "SHA256SUMS"), checksums(out, files))
}

// output runs a program in a folder, and returns what it prints, without white space around it.
func output(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, bytes.TrimSpace(stderr.Bytes()))
	}
	return strings.TrimSpace(stdout.String()), nil
}
