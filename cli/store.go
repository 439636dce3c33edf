// SPDX-License-Identifier: Apache-2.0

package cli

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

	"github.com/aip-gateway/aip-gateway/caddymodule/storefiles"
	"github.com/aip-gateway/aip-gateway/operator/adminapi"
	"github.com/aip-gateway/aip-gateway/operator/survey"
	"github.com/aip-gateway/aip-gateway/replay"
)

// storeFlags name the store.
type storeFlags struct {
	*asking
	dir string
}

// storeOf adds the flag of a command able to do without a running gateway.
func storeOf(a *asking) *storeFlags {
	f := &storeFlags{asking: a}
	a.Flags().StringVar(&f.dir, "store", "",
		"the directory of a store that no process uses; default: that of the running gateway")
	return f
}

// read calls f with the store in the directory.
func (f *storeFlags) read(use func(replay.Store) error) error {
	files, err := storefiles.Find()
	if err != nil {
		return err
	}
	s, err := files.OpenToRead(f.dir)
	if err != nil {
		return adviseOnUse(err)
	}
	return errors.Join(use(s), s.Close())
}

// adviseOnUse adds advice to the error of a store in use.
func adviseOnUse(err error) error {
	if err != nil && strings.Contains(err.Error(), "is in use") {
		return fmt.Errorf("%w; leave out --store to ask the running gateway", err)
	}
	return err
}

// surveyStore returns the deed of a command to print the content of a store; with verify, its faults, too.
func surveyStore(verify bool) deed {
	return func(a *asking) func([]string) error {
		f := storeOf(a)
		a.jsonFlag("")
		return func([]string) error {
			report, err := f.report(a.Context(), verify)
			if err != nil {
				return err
			}
			if a.asJSON {
				err = printJSON(a.Command, report)
			} else {
				err = printReport(a.OutOrStdout(), report, verify)
			}
			if err == nil && report.Damaged > 0 {
				err = fmt.Errorf("%d logs of the store are damaged; restore a backup", report.Damaged)
			}
			return err
		}
	}
}

// report returns the report of the store.
func (f *storeFlags) report(ctx context.Context, verify bool) (report *adminapi.StoreReport, err error) {
	report = new(adminapi.StoreReport)
	if f.dir != "" {
		return report, f.read(func(s replay.Store) (err error) {
			if *report, err = survey.Of(ctx, s, verify); err != nil {
				return err
			}
			report.Driver = storefiles.DriverName
			report.Dir, err = filepath.Abs(f.dir)
			return err
		})
	}
	_, err = f.ask(f.route, nil, nil, report)
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

// backupStore copies a store.
func backupStore(a *asking) func([]string) error {
	f := storeOf(a)
	a.jsonFlag("")
	return func(args []string) error {
		dir, err := filepath.Abs(args[0])
		if err != nil {
			return err
		}
		copied := adminapi.StoreBackup{Dir: dir}
		var raw []byte
		if f.dir == "" {
			raw, err = a.ask(a.route, nil, copied, new(adminapi.StoreBackup))
		} else if raw, err = json.Marshal(copied); err == nil {
			raw = append(raw, '\n')
			err = f.backup(a.Context(), dir)
		}
		if err != nil {
			return err
		}
		return a.print(raw, "the store was copied to "+clean(dir))
	}
}

// backup copies a store not in use.
func (f *storeFlags) backup(ctx context.Context, dir string) error {
	files, err := storefiles.Find()
	if err != nil {
		return err
	}
	return adviseOnUse(files.Backup(ctx, f.dir, dir))
}

// exportStore writes a store as lines of JSON.
func exportStore(a *asking) func([]string) error {
	f := storeOf(a)
	var to string
	a.Flags().StringVarP(&to, "output", "o", "", "a new file to write to; default: standard output")
	return func([]string) error {
		out := a.OutOrStdout()
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
				_, err := replay.Export(a.Context(), s, out)
				return err
			})
		}
		res, err := a.admin.request(http.MethodGet, a.route.Path, nil, nil)
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
	}
}

// lastLine passes writes on, and keeps the beginning of the last line.
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
	files, err := storefiles.Find()
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
