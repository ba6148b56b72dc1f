// Package settings shows the settings on the page, and changes those that a page
// may change.
package settings

import (
	"context"
	"errors"
	"slices"

	"ken/capability"
	"ken/internal/config"
	"ken/internal/dirs"
	"ken/internal/fileerror"
	"ken/internal/govern/audit"
	"ken/internal/govern/reload"
	"ken/internal/serve/auth"
	"ken/internal/serve/httpapi/systemapi"
)

// A Page is the settings as a page shows and changes them.
type Page struct {
	Start  config.Config // when Ken was started
	Places dirs.Places
	File   string         // that --config names; empty: the usual files
	Loader *reload.Loader // of the settings in force

	// Log returns the audit log. Doubt returns a warning about a setting that was
	// written but does not work yet, or "".
	Log   func() (*audit.Log, error)
	Doubt func(ctx context.Context, key string) string
}

// Writable returns the settings that a page may change: what is found and shown,
// and which model answers. What governs, runs or lets in is changed in ken.yaml.
func Writable() []string {
	return []string{
		"model", "chat.effort", "chat.maxTokens", "chat.steps", "chat.condenseAt", "chat.promptTokens", "chat.memory", "chat.toolDelivery",
		"capabilities.maxTokens", "capabilities.scorer", "capabilities.confidenceThreshold", "capabilities.logLevel", "capabilities.budgetPolicy",
		"discovery.profile", "discovery.tier0TokenBudget", "discovery.tier1TokenBudget", "discovery.tier2TokenBudget", "discovery.totalTokenBudget",
		"discovery.tier1TopK", "discovery.tier2TopK", "discovery.stickyTopK", "discovery.tier1MinRelevance", "discovery.lowConfidence", "discovery.tier1TailRelevance",
		"discovery.tier2MinRelevance", "discovery.useGraphReranking", "discovery.graphBoostFactor", "discovery.promptMode",
	}
}

// List returns all settings.
func (p Page) List() []systemapi.Setting {
	now := p.Loader.Current()
	said, err := config.Load(p.Places, p.File)
	if err != nil || now.Err != nil {
		said = *now.Settings // the file is broken at this moment, as the doctor tells
	}
	inForce := map[string]string{}
	for _, s := range p.Start.Settings() {
		inForce[s.Key] = s.Value
	}
	for _, s := range now.Settings.Settings() {
		if reload.AppliesLive(s.Key) {
			inForce[s.Key] = s.Value
		}
	}
	var out []systemapi.Setting
	forms := config.Forms()
	for _, s := range said.Settings() {
		one := systemapi.Setting{Key: s.Key, Value: s.Value, Origin: s.Origin, About: s.Doc, Writable: slices.Contains(Writable(), s.Key)}
		if !one.Writable {
			one.Why = "security settings are read-only here; change them with ken config set or in ken.yaml"
		}
		if one.Form = forms[s.Key]; one.Form != nil {
			delete(one.Form, "description") // About has it
		}
		if running := inForce[s.Key]; running != s.Value {
			one.InForce = running
		}
		out = append(out, one)
	}
	return out
}

// Check returns what is wrong with a value, as Set would say. It writes nothing.
func (p Page) Check(key, value string) error {
	file := p.File
	if file == "" {
		var err error
		if file, err = config.File(p.Places); err != nil {
			return err
		}
	}
	if err := p.Loader.Settings().CheckSet(key, value); err != nil {
		return err
	}
	err := config.Check(file, key, value)
	if e, ok := errors.AsType[*config.Error](err); ok { // the first is about the value; the file's name helps nobody here
		return &capability.Error{Kind: capability.Invalid, Op: "set", Target: key, Err: errors.New(e.Problems[0].Message), Fix: e.Problems[0].Fix}
	}
	return err
}

// Set changes the user's own file and records that in the audit log.
func (p Page) Set(ctx context.Context, who auth.Identity, key, value string) (systemapi.Changed, error) {
	return p.change(ctx, who, "set", key, map[string]string{"value": value}, func(file string) error {
		if err := p.Loader.Settings().CheckSet(key, value); err != nil {
			return err
		}
		return config.Set(file, key, value)
	})
}

// Reset removes a setting from the user's own file, so that its default applies,
// and records that in the audit log.
func (p Page) Reset(ctx context.Context, who auth.Identity, key string) (systemapi.Changed, error) {
	return p.change(ctx, who, "unset", key, nil, func(file string) error {
		had, err := config.Unset(file, key)
		if err == nil && !had {
			err = &capability.Error{Kind: capability.Conflict, Op: "reset", Target: key, Err: errors.New(file + " does not set it"), Fix: "remove it from the file that the page names beside the value"}
		}
		return err
	})
}

// change changes the user's own file, and records it.
func (p Page) change(ctx context.Context, who auth.Identity, action, key string, notes map[string]string, edit func(file string) error) (changed systemapi.Changed, err error) {
	if !slices.Contains(Writable(), key) {
		return changed, &capability.Error{Kind: capability.Denied, Op: action, Target: key, Err: errors.New("a page may not change it"), Fix: "run ken config " + action + " " + key + ", or edit ken.yaml"}
	}
	file := p.File
	if file == "" {
		if file, err = config.File(p.Places); err != nil {
			return changed, err
		}
	}
	log, err := p.Log()
	if err != nil {
		return changed, err
	}
	if err := edit(file); err != nil {
		return changed, fileerror.Write(file, err)
	}
	p.Loader.Latest() // it is in force before the request is answered
	success := true
	rec := audit.Record{
		Event: audit.Changed, Command: "config", Action: action, Target: "config:" + key, Origin: string(capability.ByPerson),
		UserID: who.Principal.ID, Tenant: who.Principal.Tenant, Status: audit.Completed, Success: &success,
	}
	rec.Metadata.Notes = notes
	_, err = log.Append(ctx, rec)
	changed.Restart = !reload.AppliesLive(key)
	if err == nil {
		changed.Warning = p.Doubt(ctx, key)
	}
	return changed, err
}
