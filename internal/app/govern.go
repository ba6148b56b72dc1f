package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"ken/internal/config"
	"ken/internal/govern/approval"
	"ken/internal/govern/audit"
	"ken/internal/govern/extensions"
	"ken/internal/govern/policy"
	"ken/internal/govern/redaction"
	"ken/internal/govern/reload"
	"ken/internal/govern/shared"
	"ken/internal/know/catalog"
	"ken/internal/lazy"
	"ken/internal/secret"
	"ken/internal/serve/replica"
	"ken/internal/store"
)

// governParts decide, ask for approval, remember and record.
type governParts struct {
	loader     *reload.Loader // of rules and settings
	Extensions *extensions.Set

	Secrets   *secret.Store
	Redactor  *redaction.Redactor // keeps Secrets, and tokens of ken serve, out of texts
	Approvals approval.Recorded
	Archive   audit.Archive // the audit log of all processes

	Replicas Replicas

	store lazy.Value[*store.Store]
	desk  lazy.Value[*approval.Desk]
	trail lazy.Value[*audit.Log]
}

// openStore is how long a database may take to answer at the start.
const openStore = 20 * time.Second

// keepSecrets opens the secrets, and makes the log that holds none of them.
func (a *App) keepSecrets(cfg Config) {
	a.Secrets = secret.New(secret.Config{Dir: a.Places.Home, Environ: cfg.environ()})
	a.Redactor = redaction.New(a.Secrets)
	a.log, a.oneCall = slog.New(a.Redactor.Handler(cfg.Log.Handler())), cfg.OneCall
}

func (a *App) govern(loader *reload.Loader) {
	g := &a.governParts
	g.loader = loader
	g.store.Build = func() (*store.Store, error) {
		if err := os.MkdirAll(a.Places.State, 0o700); err != nil {
			return nil, fmt.Errorf("open the store: %w", err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), openStore)
		defer cancel()
		s, err := store.Open(ctx, a.Settings.Store, a.Places.State)
		if err == nil {
			a.closers.Add(s.Close)
		}
		return s, err
	}
	g.Replicas.app = a
	home := ""
	if a.Settings.Store != "" {
		err := os.MkdirAll(a.Places.State, 0o700)
		if err == nil {
			home, err = replica.Home(a.Places.State)
		}
		if err != nil {
			a.log.Error("this machine has no name among the replicas", "error", err)
		}
		g.Replicas.shared = shared.New(shared.Config{Store: g.store.Get, File: config.SharedFile(a.Places), Seen: filepath.Join(a.Places.State, "store.seen"), Log: a.log})
	}
	g.desk.Build = a.openDesk
	g.trail.Build = a.openTrail
	g.Approvals = approval.Recorded{Desk: g.desk.Get, Log: g.trail.Get}
	g.Archive = audit.Archive{Dir: a.Places.Audit, CheckpointDir: cmp.Or(a.Settings.Audit.CheckpointDir, a.Places.Checkpoints), KeyFile: filepath.Join(a.Places.State, "audit.key"), Store: g.store.Get, Home: home}
}

func (a *App) openDesk() (*approval.Desk, error) {
	s, err := a.store.Get()
	if err != nil {
		return nil, err
	}
	return approval.New(s, approval.Config{
		Times: func() approval.Times {
			set := a.effective().Approval
			return approval.Times{For: set.Wait, OnceFor: set.OnceFor, SessionFor: set.SessionFor, AlwaysFor: set.AlwaysFor, Retain: set.Retain}
		},
		Pending:   func() int { return a.effective().Approval.Pending },
		Approvers: a.Settings.Approval.Approvers,
		Folder:    resolved(a.Places.Workspace),
		Redact:    func(_, value string) string { return a.Redactor.Redact(value) },
	})
}

// resolved returns a folder's name without symbolic links, so that a link which
// leads elsewhere later is another folder.
func resolved(folder string) string {
	if real, err := filepath.EvalSymlinks(folder); err == nil {
		return real
	}
	return folder
}

func (a *App) openTrail() (*audit.Log, error) {
	key, err := audit.LoadKey(a.Archive.KeyFile)
	if err != nil {
		return nil, err
	}
	a.Redactor.Update()
	log, err := audit.Open(audit.Config{
		Dir: a.Places.Audit, CheckpointDir: a.Archive.CheckpointDir, Key: key, Redactor: a.Redactor.Redactor,
		ViewDir: a.Places.Logs, Program: "ken " + Version(), SegmentBytes: a.Settings.Audit.SegmentBytes,
	})
	if err != nil {
		return nil, err
	}
	if err := a.Archive.SaveHead(log); err != nil {
		return nil, errors.Join(err, log.Close())
	}
	a.closers.Add(func() error { return errors.Join(log.Close(), a.Archive.SaveHead(log)) }) // the closing head
	return log, nil
}

func (a *App) newExtensions() *extensions.Set {
	return extensions.New(extensions.Config{
		Required: a.Settings.Extensions.Review != config.ReviewOff, Tenant: a.Principal.Tenant, Reviewers: a.Settings.Approval.Approvers,
		Catalog: func() *catalog.Catalog { return a.Catalog }, Store: a.store.Get, Record: a.record, Stop: a.enforcer.StopDisabled, Log: a.log,
	})
}

// record appends a record to the audit log.
func (a *App) record(ctx context.Context, r audit.Record) error {
	log, err := a.trail.Get()
	if err == nil {
		_, err = log.Append(ctx, r)
	}
	return err
}

// Desk returns the desk at which calls wait for a person.
func (a *App) Desk() (*approval.Desk, error) { return a.desk.Get() }

// Rules returns the rules in force, or nil where their files cannot be followed.
func (a *App) Rules() *policy.Rules {
	rules, _ := a.loader.Rules()
	return rules
}

// recentRules returns the rules in force as of the last look at the files, if that
// was just now; nil means there are none.
func (a *App) recentRules() *policy.Rules { return a.loader.Current().Rules }

// effective returns the settings in force. It costs a look at the files at most;
// one that cannot be used changes nothing. A caller that needs several values
// which belong together calls it once.
func (a *App) effective() *config.Config { return a.loader.Settings() }
