// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/aip-gateway/aip-gateway/caddymodule/adminapi"
	"github.com/aip-gateway/aip-gateway/replay"
)

func storeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "store <command>",
		Short: "Inspects, verifies, repairs, copies, exports and imports a store",
		Long: `
Inspects, verifies, repairs, copies, exports and imports a store: that of a running
gateway, by Caddy's admin API, or with --store one that no process uses, by its directory.
`,
	}
	onlyGroup(cmd)
	cmd.AddCommand(
		surveyCommand("inspect", "Shows what a store has", `
Shows how many tasks, outboxes and other logs a store has, and how large it is.
`, false),
		surveyCommand("verify", "Reads all of a store, and says what is wrong", `
Reads all of a store, with the checksums of its files, decodes the events of all tasks,
and says what is wrong. It ends with 1 if something is. It changes nothing.
`, true),
		backupCommand(), exportCommand(), importCommand(), repairCommand())
	return cmd
}

// storeFlags say which store it is.
type storeFlags struct {
	admin adminFlags
	dir   string
}

func (f *storeFlags) add(set *pflag.FlagSet) {
	f.admin.add(set)
	set.StringVar(&f.dir, "store", "",
		"the directory of a store that no process uses; default: that of the running gateway")
}

// read calls f with the store in the directory.
func (f *storeFlags) read(use func(replay.Store) error) error {
	files, err := storeFiles()
	if err != nil {
		return err
	}
	s, err := files.OpenToRead(f.dir)
	if err != nil {
		return adviseOnUse(err)
	}
	return errors.Join(use(s), s.Close())
}

// adviseOnUse adds to the error of a store that is in use what can be done.
func adviseOnUse(err error) error {
	if err != nil && strings.Contains(err.Error(), "is in use") {
		return fmt.Errorf("%w; leave out --store to ask the running gateway", err)
	}
	return err
}

func surveyCommand(name, short, long string, verify bool) *cobra.Command {
	var f storeFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use: name + " [--store <directory>]", Short: short, Long: long,
		Example: "  $ caddy aip store " + name + "\n  $ caddy aip store " + name + " --store /var/backups/aip",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			report, err := f.report(cmd.Context(), verify)
			if err != nil {
				return err
			}
			if asJSON {
				err = json.NewEncoder(cmd.OutOrStdout()).Encode(report)
			} else {
				err = printReport(cmd.OutOrStdout(), report, verify)
			}
			if err == nil && report.Damaged > 0 {
				err = fmt.Errorf("%d logs of the store are damaged; restore a backup", report.Damaged)
			}
			return err
		},
	}
	f.add(cmd.Flags())
	jsonFlag(cmd, &asJSON)
	return cmd
}

// report returns what the store has.
func (f *storeFlags) report(ctx context.Context, verify bool) (report *adminapi.StoreReport, err error) {
	report = new(adminapi.StoreReport)
	if f.dir != "" {
		return report, f.read(func(s replay.Store) (err error) {
			if *report, err = SurveyStore(ctx, s, verify); err != nil {
				return err
			}
			report.Driver = filesDriver
			report.Dir, err = filepath.Abs(f.dir)
			return err
		})
	}
	method, route := http.MethodGet, adminapi.Store
	if verify {
		method, route = http.MethodPost, adminapi.VerifyStore
	}
	_, err = f.admin.ask(method, route, nil, nil, report)
	return report, err
}

func printReport(w io.Writer, r *adminapi.StoreReport, verified bool) error {
	p := printer{w: w}
	p.line("store", joined(r.Driver, r.Dir))
	if r.Size > 0 {
		p.line("size", humanize.IBytes(uint64(r.Size))+" on the disk")
	}
	p.line("logs", fmt.Sprintf("%d, of which %d have ended, with %s of records", r.Logs, r.Ended,
		humanize.IBytes(uint64(r.Bytes))))
	for _, kind := range slices.Sorted(maps.Keys(r.Kinds)) {
		p.line("", fmt.Sprintf("%d %s", r.Kinds[kind], kind))
	}
	for i := range r.Problems {
		one := &r.Problems[i]
		p.line("damaged", one.Kind+" "+one.Log+": "+one.Error)
	}
	if verified {
		p.line("read", fmt.Sprintf("%d records, %d logs are damaged", r.Records, r.Damaged))
	}
	return p.err
}

func backupCommand() *cobra.Command {
	var f storeFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "backup <directory> [--store <directory>]",
		Short: "Copies a store, also one that is in use",
		Long: `
Copies a store into a new directory, also while the gateway uses it. The copy has all
that was acknowledged before, and is consistent. It is made by the gateway, on its
machine, and takes little space at first where it is on the same file system. To
restore it, stop Caddy and put the copy in the place of the store.
`,
		Example: `  $ caddy aip store backup /var/backups/aip-2026-11-22`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, err := filepath.Abs(args[0])
			if err != nil {
				return err
			}
			var raw []byte
			if f.dir == "" {
				var out adminapi.StoreBackup
				raw, err = f.admin.ask(http.MethodPost, adminapi.BackupStore, nil, adminapi.StoreBackup{Dir: dir}, &out)
			} else if raw, err = json.Marshal(adminapi.StoreBackup{Dir: dir}); err == nil {
				raw = append(raw, '\n')
				err = f.backup(cmd.Context(), dir)
			}
			if err != nil {
				return err
			}
			return printAnswer(cmd, asJSON, raw, "the store was copied to %s", clean(dir))
		},
	}
	f.add(cmd.Flags())
	jsonFlag(cmd, &asJSON)
	return cmd
}

// backup copies a store that no process uses.
func (f *storeFlags) backup(ctx context.Context, dir string) error {
	files, err := storeFiles()
	if err != nil {
		return err
	}
	return adviseOnUse(files.Backup(ctx, f.dir, dir))
}

func exportCommand() *cobra.Command {
	var f storeFlags
	var to string
	cmd := &cobra.Command{
		Use:   "export [--store <directory>] [--output <file>]",
		Short: "Writes a store as lines of JSON",
		Long: `
Writes a store as lines of JSON, which another version can import. It has what Leaders
and agents have written, and the tokens of webhooks.
`,
		Example: `  $ caddy aip store export --output store.ndjson
  $ caddy aip store export --store /var/lib/caddy/aip | gzip > store.ndjson.gz`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			out := cmd.OutOrStdout()
			if to != "" {
				file, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
				if err != nil {
					return err
				}
				defer file.Close()
				out = file
			}
			if f.dir != "" {
				return f.read(func(s replay.Store) error {
					_, err := replay.Export(cmd.Context(), s, out)
					return err
				})
			}
			res, err := f.admin.request(http.MethodGet, adminapi.ExportStore, nil, nil)
			if err != nil {
				return err
			}
			defer res.Body.Close()
			end := lastLine{w: out}
			if _, err := io.Copy(&end, res.Body); err != nil {
				return err
			}
			if !strings.HasPrefix(string(end.line), `{"end":`) {
				return errors.New("the gateway has cut the export off; its log says why")
			}
			return nil
		},
	}
	f.add(cmd.Flags())
	cmd.Flags().StringVarP(&to, "output", "o", "", "a new file to write to; default: standard output")
	return cmd
}

// lastLine passes on what is written, and keeps the beginning of the last line.
type lastLine struct {
	w     io.Writer
	line  []byte
	ended bool
}

// Write implements io.Writer.
func (l *lastLine) Write(p []byte) (int, error) {
	for part := range strings.Lines(string(p)) {
		if l.ended {
			l.line, l.ended = l.line[:0], false
		}
		l.line = append(l.line, part[:min(len(part), max(64-len(l.line), 0))]...)
		l.ended = strings.HasSuffix(part, "\n")
	}
	return l.w.Write(p)
}

func importCommand() *cobra.Command {
	var into string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "import <file> --store <directory>",
		Short: "Makes a store of what was exported",
		Long: `
Makes a store of what was exported, in a directory that does not exist or is empty. The
file - is standard input. Tasks that have ended are kept for their retention from now on.
`,
		Example: `  $ caddy aip store import store.ndjson --store /var/lib/caddy/aip`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if into == "" {
				return errors.New("--store is missing: the directory of the new store")
			}
			in := cmd.InOrStdin()
			if args[0] != "-" {
				file, err := os.Open(args[0])
				if err != nil {
					return err
				}
				defer file.Close()
				in = file
			}
			n, err := importStore(cmd.Context(), in, into)
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(cmd, struct {
					Logs    int `json:"logs"`
					Records int `json:"records"`
				}{int(n.Logs), int(n.Records)})
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%d logs with %d records were imported\n", n.Logs, n.Records)
			return err
		},
	}
	cmd.Flags().StringVar(&into, "store", "", "the directory of the new store")
	outputFlag(cmd, &asJSON)
	return cmd
}

// importStore makes a store in a directory. It is there when all was imported, and not before.
func importStore(ctx context.Context, in io.Reader, dir string) (n replay.ArchiveCounts, err error) {
	if dir, err = filepath.Abs(dir); err != nil {
		return n, err
	}
	if names, err := os.ReadDir(dir); err == nil && len(names) > 0 {
		return n, fmt.Errorf("%s is not empty; give a directory that does not exist", dir)
	}
	partial, err := os.MkdirTemp(filepath.Dir(dir), filepath.Base(dir)+".partial-")
	if err != nil {
		return n, err
	}
	defer os.RemoveAll(partial)
	made := filepath.Join(partial, "store")
	files, err := storeFiles()
	if err != nil {
		return n, err
	}
	if n, err = files.Import(ctx, in, made); err != nil {
		return n, err
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, os.ErrNotExist) {
		return n, err
	}
	return n, os.Rename(made, dir)
}
