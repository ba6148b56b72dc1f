// Package backups has the commands ken backup and ken restore.
package backups

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ken/internal/backup"
	"ken/internal/cli/output"
	"ken/internal/config"
	"ken/internal/dirs"
	"ken/internal/govern/audit"
	"ken/internal/serve/daemon"
	"ken/internal/serve/shim"
	"ken/internal/store"
)

// A Config is what the commands need of the program.
type Config struct {
	Out       *output.Printer
	JSON      *bool // the flag --json, read when a command runs
	PrintJSON func(any) error
	Version   func() string // of Ken

	// Args makes what a check of arguments refuses an error of usage.
	Args func(check cobra.PositionalArgs) cobra.PositionalArgs

	// With runs a command with the program open.
	With func(cmd *cobra.Command, run func(context.Context, App) error) error

	// Reopen opens the program on what was restored, and returns its audit log.
	Reopen func(context.Context) (log audit.Archive, closeApp func() error, err error)
}

// An App is the open program, as far as ken backup needs it.
type App struct {
	Places   dirs.Places
	Settings config.Config
	Store    func() (*store.Store, error)
}

// Commands returns ken backup and ken restore.
func Commands(c Config) []*cobra.Command { return []*cobra.Command{c.backup(), c.restore()} }

const storeFile = "ken.db"

// backupFolders returns what a backup holds. The order matters while Ken runs:
// the store and the checkpoints say how long the audit log is at least, so the
// log itself is read after them.
func backupFolders(p dirs.Places) []backup.Folder {
	return []backup.Folder{
		{Name: "home", Path: p.Home}, {Name: "state", Path: p.State},
		{Name: "checkpoints", Path: p.Checkpoints}, {Name: "audit", Path: p.Audit, Lines: true},
	}
}

func (c Config) backup() *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use: "backup FILE", Short: "Save settings, secrets, keys, state and the audit log in one file", Args: c.Args(cobra.ExactArgs(1)),
		Long: "Save settings, secrets, keys, state and the audit log in one file. Ken may run meanwhile.\n" +
			"The file contains the keys of the secrets: keep it as safe as your Ken directory.\n" +
			"Caches and logs are not included. ken restore restores the file.",
		RunE: func(cmd *cobra.Command, given []string) error {
			return c.With(cmd, func(ctx context.Context, a App) error { return c.write(ctx, a, given[0], force) })
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "replace the file if it exists")
	return cmd
}

func (c Config) write(ctx context.Context, a App, name string, force bool) (err error) {
	name, err = filepath.Abs(name)
	if err != nil {
		return err
	}
	if _, err := os.Lstat(name); err == nil && !force {
		return fmt.Errorf("back up to %s: the file exists; use another name, or pass --force to replace it", name)
	}
	work, err := os.MkdirTemp(filepath.Dir(name), ".ken-backup-*")
	if err != nil {
		return fmt.Errorf("back up to %s: %w", name, err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()

	var files []backup.File
	notes := []string{}
	if a.Settings.Store == "" {
		db, err := a.Store()
		if err != nil {
			return err
		}
		copied := filepath.Join(work, storeFile)
		if err := db.Snapshot(ctx, copied); err != nil {
			return err
		}
		files = append(files, backup.File{Name: "state/" + storeFile, Path: copied})
	} else {
		notes = append(notes, "the store is not part of the backup, because store in ken.yaml names another place; back it up with the tools of the database, before this")
	}
	if dir := a.Settings.Audit.CheckpointDir; dir != "" {
		notes = append(notes, "audit.checkpointDir is not part of the backup: "+dir)
	}
	out, err := os.OpenFile(filepath.Join(work, "backup"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	about := backup.About{Version: c.Version(), Created: time.Now().UTC()}
	n, err := backup.Write(out, about, backupFolders(a.Places), files, notBackedUp(a.Places, work))
	if err == nil {
		err = out.Sync()
	}
	if err = errors.Join(err, out.Close()); err != nil {
		return err
	}
	if err := os.Rename(out.Name(), name); err != nil {
		return err
	}
	if *c.JSON {
		return c.PrintJSON(map[string]any{"file": name, "files": n, "notes": notes})
	}
	c.Out.Linef("%s: %s of %s", output.Line(name), output.Plural(n, "file"), output.Line(a.Places.Home))
	c.Out.Linef("It holds secrets with their key: keep it as safe as that folder.")
	for _, n := range notes {
		c.Out.Linef("%s %s", c.Out.Style(output.Yellow, "note:"), output.Line(n))
	}
	return nil
}

// notBackedUp returns what is left out: what Ken can make again, what belongs to a
// running process, and the store, which is copied in another way.
func notBackedUp(p dirs.Places, work string) func(string) bool {
	store := filepath.Join(p.State, storeFile)
	left := []string{p.Cache, p.Logs, work, store, store + "-wal", store + "-shm", filepath.Join(p.Home, "bin")}
	return func(name string) bool {
		base := filepath.Base(name)
		return slices.Contains(left, name) || strings.HasSuffix(base, ".lock") || strings.HasPrefix(base, ".ken-backup-") || strings.HasPrefix(base, ".ken-restore-")
	}
}

func (c Config) restore() *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use: "restore FILE", Short: "Restore what ken backup saved", Args: c.Args(cobra.ExactArgs(1)),
		Long: "Restore what ken backup saved, and verify the audit log. No other Ken process may run during the restore.\n" +
			"With --force, the current folder is kept under a name that ends in .before-restore.",
		RunE: func(cmd *cobra.Command, given []string) error { return c.read(cmd.Context(), given[0], force) },
	}
	cmd.Flags().BoolVar(&force, "force", false, "restore even if there is a Ken directory, which is kept under another name")
	return cmd
}

func (c Config) read(ctx context.Context, name string, force bool) (err error) {
	places, err := dirs.Here()
	if err != nil {
		return err
	}
	in, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	defer in.Close()
	if err := noneRuns(places); err != nil {
		return err
	}
	folders := outermost(backupFolders(places))
	there := []string{}
	for _, f := range folders {
		if list, err := os.ReadDir(f.Path); err == nil && len(list) > 0 {
			there = append(there, f.Path)
		} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("restore: %w", err)
		}
	}
	if len(there) > 0 && !force {
		return fmt.Errorf("restore %s: %s is not empty; pass --force to restore anyway and keep the current content as %s", name, there[0], before(there[0]))
	}
	if err := os.MkdirAll(filepath.Dir(places.Home), 0o700); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	work, err := os.MkdirTemp(filepath.Dir(places.Home), ".ken-restore-*")
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	about, err := backup.Read(in, work, []string{"home", "state", "checkpoints", "audit"})
	if err != nil {
		return fmt.Errorf("restore %s: %w; nothing was changed", name, err)
	}
	if err := place(places, work, folders); err != nil {
		return fmt.Errorf("restore %s: %w", name, err)
	}
	return c.verifyRestored(ctx, places, about, there)
}

// noneRuns returns an error if a Ken serves this home: it would go on with the
// files that are replaced.
func noneRuns(p dirs.Places) error {
	where, err := shim.Where(os.Getenv, p.Workspace)
	if err != nil || !shim.Supported {
		return nil
	}
	if _, err := os.Stat(where.Socket); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	l, err := daemon.Listen(where)
	if errors.Is(err, daemon.ErrRunning) {
		return fmt.Errorf("restore: %w; stop ken serve, or close the clients that use ken mcp, and try again", err)
	} else if err != nil {
		return fmt.Errorf("restore: check whether Ken is running: %w", err)
	}
	return l.Close()
}

// outermost returns the folders that lie in no other of the list.
func outermost(folders []backup.Folder) []backup.Folder {
	return slices.DeleteFunc(slices.Clone(folders), func(f backup.Folder) bool {
		return slices.ContainsFunc(folders, func(o backup.Folder) bool {
			rel, err := filepath.Rel(o.Path, f.Path)
			return err == nil && rel != "." && filepath.IsLocal(rel)
		})
	})
}

// before returns the name under which a folder is kept.
func before(dir string) string { return dir + ".before-restore" }

// place puts unpacked folders where they belong. The folders that lie in others
// are put there first, so that each outer one appears as a whole.
func place(p dirs.Places, work string, outer []backup.Folder) error {
	for _, f := range backupFolders(p) {
		if slices.ContainsFunc(outer, func(o backup.Folder) bool { return o.Name == f.Name }) {
			continue
		}
		for _, o := range outer {
			rel, err := filepath.Rel(o.Path, f.Path)
			if err != nil || !filepath.IsLocal(rel) {
				continue
			}
			to := filepath.Join(work, o.Name, rel)
			if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
				return err
			}
			if err := os.Rename(filepath.Join(work, f.Name), to); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	for _, o := range outer {
		from := filepath.Join(work, o.Name)
		if _, err := os.Stat(from); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(o.Path), 0o700); err != nil {
			return err
		}
		if err := replace(o.Path, from); err != nil {
			return err
		}
	}
	return nil
}

// replace puts a folder in the place of dir, which is kept as before(dir) unless it
// is empty. If it fails, dir is as it was: a rename to another file system does.
func replace(dir, from string) error {
	if err := os.Remove(dir); err == nil || errors.Is(err, fs.ErrNotExist) {
		return os.Rename(from, dir)
	}
	if _, err := os.Lstat(before(dir)); err == nil {
		return fmt.Errorf("%s exists from an earlier restore; remove or rename it", before(dir))
	}
	if err := os.Rename(dir, before(dir)); err != nil {
		return err
	}
	if err := os.Rename(from, dir); err != nil {
		return errors.Join(err, os.Rename(before(dir), dir))
	}
	return nil
}

// verifyRestored opens what was restored and verifies its audit log.
func (c Config) verifyRestored(ctx context.Context, p dirs.Places, about backup.About, kept []string) error {
	log, closeApp, err := c.Reopen(ctx)
	if err != nil {
		return fmt.Errorf("restored %s, but the restored data cannot be opened: %w", p.Home, err)
	}
	defer closeApp()
	report, err := log.Verify(ctx)
	if err != nil {
		return fmt.Errorf("restored %s, but: %w", p.Home, err)
	}
	if *c.JSON {
		err = c.PrintJSON(map[string]any{"dir": p.Home, "created": about.Created, "version": about.Version, "auditOK": report.OK(), "kept": kept})
	} else {
		c.Out.Linef("%s: restored from the backup of %s (Ken %s)", output.Line(p.Home), about.Created.Format(time.RFC3339), output.Line(about.Version))
		for _, dir := range kept {
			c.Out.Linef("%s is kept as %s", output.Line(dir), output.Line(before(dir)))
		}
	}
	if err != nil {
		return err
	}
	if !report.OK() {
		return fmt.Errorf("the audit log of the backup failed verification; see ken audit verify")
	}
	if !*c.JSON {
		c.Out.Linef("The audit log verifies: %s.", output.Plural(len(report.Chains), "chain"))
	}
	return nil
}
