package app

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"ken/capability"
	"ken/internal/config"
	"ken/internal/govern/audit"
	"ken/internal/govern/auditshare"
	"ken/internal/govern/quota"
	"ken/internal/govern/reload"
	"ken/internal/govern/shared"
	"ken/internal/procid"
	"ken/internal/run/executors"
	"ken/internal/serve/auth"
	"ken/internal/serve/clusterhealth"
	"ken/internal/serve/doctor"
	"ken/internal/serve/replica"
	"ken/internal/store"
)

// Replicas are the processes that have the same PostgreSQL as their store.
type Replicas struct {
	app       *App
	shared    *shared.Settings              // nil: the store is on this machine
	following atomic.Bool                   // shared must be current
	group     atomic.Pointer[replica.Group] // nil: this process does not serve

	dividing sync.Once
	divided  *quota.Quota
}

// quota returns what this process has of the limits that hold for all replicas together,
// or nil if the store is on this machine.
func (r *Replicas) quota() *quota.Quota {
	if !r.Possible() {
		return nil
	}
	r.dividing.Do(func() {
		r.divided = quota.New(quota.Config{Store: r.app.store.Get})
		r.app.closers.Add(func() error { r.divided.Close(); return nil })
	})
	return r.divided
}

// CallerPace returns how often a caller may ask all replicas together.
func (r *Replicas) CallerPace(caller string, rate auth.Rate) auth.Pace {
	return r.quota().Rate("caller", caller, rate.Requests, rate.Burst)
}

// hostPace returns how often all replicas together may ask a host.
func (r *Replicas) hostPace(host string, perSecond float64, burst int) executors.Pace {
	return r.quota().Rate("host", host, perSecond, burst)
}

// Possible reports whether other replicas of Ken can have the same store.
func (r *Replicas) Possible() bool { return r.shared != nil }

// Join makes this process one of those that have the same store, until ctx
// ends. tokens are what it takes; nil: it asks for none.
func (r *Replicas) Join(ctx context.Context, tokens *auth.Tokens) error {
	if !r.Possible() {
		return nil
	}
	a := r.app
	cfg := replica.Config{
		Store: a.store.Get, Dir: a.Places.State, Version: Version(), Rules: r.ruleHashes, Streams: streams, Log: a.log,
		Seed: make([]byte, sha256.Size), Tokens: func() []replica.Token { return nil },
	}
	_, _ = rand.Read(cfg.Seed) // never fails
	if tokens != nil {
		cfg.Seed = tokens.Seed()
		cfg.Tokens = func() []replica.Token { return published(tokens) }
	}
	g, err := replica.Join(ctx, cfg)
	if err != nil {
		return err
	}
	if tokens != nil {
		tokens.Join(g)
	}
	r.group.Store(g)
	running, stop := context.WithCancel(ctx)
	left := make(chan struct{})
	go func() { defer close(left); g.Run(running) }()
	a.closers.Add(func() error {
		stop()
		<-left
		return nil
	})
	return nil
}

func published(tokens *auth.Tokens) []replica.Token {
	var out []replica.Token
	for _, p := range tokens.Published() {
		kind := replica.Agent
		switch {
		case p.Start:
			kind = replica.Link
		case p.Owner:
			kind = replica.Owner
		}
		out = append(out, replica.Token{Sum: p.Sum, Kind: kind, Name: p.Name})
	}
	return out
}

// Current returns why the settings that replicas share may not be current here.
// A program that makes no call and does not stay never asks for them: it reads what
// the last one left.
func (r *Replicas) Current() error {
	if r.shared == nil || !r.following.Load() {
		return nil
	}
	return r.shared.Check()
}

// follow keeps what replicas share current until ctx ends.
func (r *Replicas) follow(ctx context.Context) {
	if r.shared != nil {
		r.following.Store(true)
		var beside sync.WaitGroup
		defer beside.Wait()
		if log := r.Audit(); log != nil {
			beside.Go(func() { log.Run(ctx) })
		}
		r.shared.Watch(ctx)
	}
}

// replicaMark stands before the name of a replica in the name of a process.
const replicaMark = " replica "

// process names this process and its replica, for others that find its locks.
func (r *Replicas) process() string {
	if g := r.group.Load(); g != nil {
		return procid.Self() + replicaMark + g.ID()
	}
	return procid.Self()
}

// dead reports whether a process is certain to be gone, on this machine or another.
func (r *Replicas) dead(process string) bool {
	name, id, is := strings.Cut(process, replicaMark)
	if procid.Dead(name) {
		return true
	}
	g := r.group.Load()
	return is && g != nil && id != g.ID() && g.Lost(id)
}

// streams is the protocol by which replicas pass on events of turns.
const streams = 1

// Change changes a setting for all replicas: edit changes it in a file.
func (r *Replicas) Change(ctx context.Context, key, value string, edit func(file string) error) error {
	fail := func(why, fix string) error {
		return &capability.Error{Kind: capability.Invalid, Op: "share", Target: key, Err: errors.New(why), Fix: fix}
	}
	switch {
	case r.shared == nil:
		return fail("there are no replicas: the store is a file of this machine", "set store to a PostgreSQL address, or leave out --shared")
	case !reload.AppliesLive(config.WholeKey(key)):
		return fail("the setting applies after a restart", "set it in ken.yaml on every machine and restart the replicas")
	}
	if err := r.shared.Change(ctx, edit); err != nil {
		return err
	}
	success := true
	rec := audit.Record{
		Event: audit.Changed, Command: "config", Action: "share", Target: "config:" + key, Origin: string(capability.ByPerson),
		UserID: r.app.Principal.ID, Tenant: r.app.Principal.Tenant, Status: audit.Completed, Success: &success,
	}
	rec.Metadata.Notes = map[string]string{"value": value}
	return r.app.record(ctx, rec)
}

// Audit returns the audit logs of all machines, or nil where this is the only one.
func (r *Replicas) Audit() *auditshare.Shared {
	a := r.app
	if !r.Possible() || a.Archive.Home == "" {
		return nil
	}
	return auditshare.New(auditshare.Config{
		Archive: a.Archive, Home: a.Archive.Home, Cache: filepath.Join(a.Places.Cache, "audit"), Keep: a.effective().Audit.Keep, Log: a.log,
	})
}

// Examine says what is wrong with the replicas, and in what they differ.
func (r *Replicas) Examine(ctx context.Context) []doctor.Check {
	if !r.Possible() {
		return []doctor.Check{{Name: "replicas", Grade: doctor.Warn, Message: "there are no replicas: the store is a file of this machine", Fix: "set store to a PostgreSQL address"}}
	}
	return clusterhealth.Examine(clusterhealth.Gather(ctx, r.app.store.Get, r.shared.Update))
}

// Doctor brings the tables of the store to a schema if migrate names one, accepts that the
// store was put back if accept is set, and otherwise examines the replicas.
func (r *Replicas) Doctor(ctx context.Context, accept bool, migrate string) ([]doctor.Check, error) {
	switch {
	case migrate != "":
		return r.migrate(ctx, migrate)
	case accept:
		return r.accept(ctx)
	}
	return r.Examine(ctx), nil
}

// accept accepts that the store was put back to an earlier state, so that it counts again.
func (r *Replicas) accept(ctx context.Context) ([]doctor.Check, error) {
	if !r.Possible() {
		return nil, &capability.Error{Kind: capability.Invalid, Op: "accept", Target: "the store's state", Err: errors.New("there are no replicas: the store is a file of this machine"), Fix: "leave out --accept-restore"}
	}
	if err := r.shared.Accept(ctx); err != nil {
		return nil, err
	}
	success := true
	err := r.app.record(ctx, audit.Record{
		Event: audit.Changed, Command: "doctor", Action: "accept-restore", Target: "store", Origin: string(capability.ByPerson),
		UserID: r.app.Principal.ID, Tenant: r.app.Principal.Tenant, Status: audit.Completed, Success: &success,
	})
	return []doctor.Check{{Name: "store", Grade: doctor.Good, Message: "the earlier state of the store is accepted", Fix: "restart Ken on every machine"}}, err
}

// migrate brings the tables of the store to a schema, and says what it did.
func (r *Replicas) migrate(ctx context.Context, version string) ([]doctor.Check, error) {
	to := 0
	if version != "latest" {
		var err error
		if to, err = strconv.Atoi(version); err != nil || to < 1 {
			return nil, &capability.Error{Kind: capability.Invalid, Op: "migrate", Target: "the store's tables", Err: fmt.Errorf("--migrate is %q", version), Fix: "write latest, or the number of a version, as in 1"}
		}
	}
	m, err := store.Migrate(ctx, r.app.Settings.Store, to)
	if err != nil {
		return nil, err
	}
	c := doctor.Check{Name: "store", Grade: doctor.Good, Message: fmt.Sprintf("the tables were brought from schema %d to %d", m.From, m.To)}
	if m.From == m.To {
		c.Message = fmt.Sprintf("the tables have schema %d already", m.To)
	}
	return []doctor.Check{c}, nil
}

// RemoveToken removes the token of an agent here, and on all replicas. It reports
// whether there was one.
func (r *Replicas) RemoveToken(ctx context.Context, name string) (bool, error) {
	there, err := auth.RemoveAgent(r.app.Places.State, name)
	if err != nil || !r.Possible() {
		return there, err
	}
	db, err := r.app.store.Get()
	if err != nil {
		return there, err
	}
	n, err := replica.Remove(ctx, db, name)
	return there || n > 0, err
}

// ruleHashes returns hashes of the files with settings and rules, by their names, and
// why no call is allowed.
func (r *Replicas) ruleHashes() (map[string]string, string) {
	a := r.app
	out := map[string]string{}
	for _, file := range config.RuleFiles(a.Places, a.configFile, *a.effective()) {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // most are not there
		}
		sum := sha256.Sum256(text)
		name := filepath.Base(file)
		if filepath.Dir(file) == a.Places.Project {
			name = filepath.Join(filepath.Base(a.Places.Project), name)
		}
		out[name] = hex.EncodeToString(sum[:6])
	}
	fault := ""
	if _, err := a.loader.Rules(); err != nil {
		fault = err.Error()
	}
	return out, fault
}
