// SPDX-License-Identifier: Apache-2.0

package check

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// TestRelease makes a release of the commit for this platform. The command itself compares two builds of the binary.
func TestRelease(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "go", "run", ".", "-out", dir,
		"-platforms", runtime.GOOS+"/"+runtime.GOARCH)
	cmd.Dir = "../release"
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	files := make(map[string][]byte) // by what they are of, and how their names end
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var sums string
	for _, e := range entries {
		content, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		_, kind, _ := strings.Cut(e.Name(), runtime.GOOS+"_"+runtime.GOARCH)
		of, _, _ := strings.Cut(e.Name(), "_")
		files[of+kind] = content
		if kind != "" {
			sums += fmt.Sprintf("%x  %s\n", sha256.Sum256(content), e.Name())
		}
	}
	if got := string(files["SHA256SUMS"]); len(files) != 5 || got != sums {
		t.Errorf("%v have the checksums\n%s\nbut SHA256SUMS says\n%s", entries, sums, got)
	}

	packed := unpack(t, files["aip-gateway.tar.gz"])
	names := slices.Sorted(maps.Keys(packed))
	if !slices.Equal(names, []string{"LICENSE", "caddy"}) {
		t.Errorf("the archive has %q", names)
	}
	binary := filepath.Join(dir, "caddy")
	if err := os.WriteFile(binary, packed["caddy"], 0o700); err != nil {
		t.Fatal(err)
	}
	modules, err := exec.CommandContext(t.Context(), binary, "list-modules", "--versions", "--skip-standard").Output()
	version := strings.Split(entries[1].Name(), "_")[1]
	if err != nil || !strings.Contains(string(modules), "http.handlers.aip_gateway "+version+"\n") {
		t.Errorf("the binary has the modules %s: %v; want those of %s", modules, err, version)
	}
	billOfMaterials(t, files["aip-gateway.cdx.json"], binary)

	packed = unpack(t, files["aipconform.tar.gz"])
	for _, name := range []string{"LICENSE", "conform/README.md", "conform/FORMAT.md",
		"conform/checks/aip/suite.acts.yaml", "conform/checks/protocols/aip-01.00.yaml"} {
		if len(packed[name]) == 0 {
			t.Errorf("the archive of aipconform has no %s", name)
		}
	}
	binary = filepath.Join(dir, "aipconform")
	if err := os.WriteFile(binary, packed["aipconform"], 0o700); err != nil {
		t.Fatal(err)
	}
	if list, err := exec.CommandContext(t.Context(), binary, "list").Output(); err != nil ||
		!strings.Contains(string(list), "RPC-START-001") {
		t.Errorf("aipconform lists %s: %v", list, err)
	}
	billOfMaterials(t, files["aipconform.cdx.json"], binary, "github.com/aip-gateway/aip-gateway/conform "+version)
}

func unpack(t *testing.T, archive []byte) map[string][]byte {
	t.Helper()
	unzipped, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	files := make(map[string][]byte)
	packed := tar.NewReader(unzipped)
	for {
		header, err := packed.Next()
		if err == io.EOF {
			return files
		}
		if err == nil {
			files[header.Name], err = io.ReadAll(packed)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// billOfMaterials holds a bill to the schema of CycloneDX, and to what the binary says is in it, or is itself.
func billOfMaterials(t *testing.T, bill []byte, binary string, itself ...string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}",
		"github.com/CycloneDX/cyclonedx-go").Output()
	if err != nil {
		t.Fatal(err)
	}
	schemas := filepath.Join(strings.TrimSpace(string(out)), "schema")
	compiler := jsonschema.NewCompiler()
	for file, id := range map[string]string{
		"spdx.schema.json":      "http://cyclonedx.org/schema/spdx.schema.json",
		"jsf-0.82.schemax.json": "http://cyclonedx.org/schema/jsf-0.82.schema.json",
		"bom-1.6.schema.json":   "http://cyclonedx.org/schema/bom-1.6.schema.json",
	} {
		content, err := os.ReadFile(filepath.Join(schemas, file))
		if err != nil {
			t.Fatal(err)
		}
		schema, err := jsonschema.UnmarshalJSON(bytes.NewReader(content))
		if err != nil {
			t.Fatal(err)
		}
		if err := compiler.AddResource(id, schema); err != nil {
			t.Fatal(err)
		}
	}
	schema, err := compiler.Compile("http://cyclonedx.org/schema/bom-1.6.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(bill))
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(document); err != nil {
		t.Errorf("the bill of materials does not fit its schema: %v", err)
	}

	var b cdx.BOM
	if err := cdx.NewBOMDecoder(bytes.NewReader(bill), cdx.BOMFileFormatJSON).Decode(&b); err != nil {
		t.Fatal(err)
	}
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	want := itself
	for _, m := range info.Deps {
		if m.Replace != nil {
			t.Errorf("%s is replaced by %s", m.Path, m.Replace.Path)
		}
		want = append(want, m.Path+" "+m.Version)
	}
	main := b.Metadata.Component
	got := []string{main.Name + " " + main.Version}
	for _, c := range *b.Components {
		if c.Name != "std" {
			got = append(got, c.Name+" "+c.Version)
		} else if "go"+c.Version != info.GoVersion {
			t.Errorf("the bill has the standard library of %s, and the binary that of %s", c.Version, info.GoVersion)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("the bill has %d modules, and the binary %d:\n%q\n%q", len(got), len(want), got, want)
	}
	content, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(content)
	if hashes := *main.Hashes; hashes[0].Value != hex.EncodeToString(sum[:]) {
		t.Errorf("the bill is of a binary with the hash %v", hashes)
	}
}
