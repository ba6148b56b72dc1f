package app

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"

	"ken/capability"
	"ken/internal/config"
	"ken/internal/govern/audit"
	"ken/internal/govern/reload"
	"ken/internal/serve/auth"
	"ken/internal/serve/httpapi/systemapi"
)

// effective returns the settings in force. It costs a look at the files at most;
// one that cannot be used changes nothing. A caller that needs several values
// which belong together calls it once.
func (a *App) effective() *config.Config { return a.loader.Settings() }

// openSettings are those that a page may change: of what is found and shown, and
// who answers. What governs, runs or lets in is changed in ken.yaml.
func openSettings() []string {
	return []string{
		"model", "chat.effort", "chat.maxTokens", "chat.steps", "chat.condenseAt", "chat.promptTokens", "chat.memory", "chat.toolDelivery",
		"capabilities.maxTokens", "capabilities.scorer", "capabilities.confidenceThreshold", "capabilities.logLevel", "capabilities.budgetPolicy",
		"discovery.profile", "discovery.tier0TokenBudget", "discovery.tier1TokenBudget", "discovery.tier2TokenBudget", "discovery.totalTokenBudget",
		"discovery.tier1TopK", "discovery.tier2TopK", "discovery.stickyTopK", "discovery.tier1MinRelevance", "discovery.tier1TailRelevance",
		"discovery.tier2MinRelevance", "discovery.useGraphReranking", "discovery.graphBoostFactor", "discovery.promptMode",
	}
}

func (a *App) shownSettings() []systemapi.Setting {
	now := a.loader.Current()
	said, err := config.Load(a.Places, a.configFile)
	if err != nil || now.Err != nil {
		said = *now.Settings // the file is broken at this moment, as the doctor tells
	}
	inForce := map[string]string{}
	for _, s := range a.Settings.Settings() {
		inForce[s.Key] = s.Value
	}
	for _, s := range now.Settings.Settings() {
		if reload.AppliesLive(s.Key) {
			inForce[s.Key] = s.Value
		}
	}
	var out []systemapi.Setting
	for _, s := range said.Settings() {
		one := systemapi.Setting{Key: s.Key, Value: s.Value, Origin: s.Origin, About: s.Doc, Writable: slices.Contains(openSettings(), s.Key)}
		if !one.Writable {
			one.Why = "what governs, runs or lets in is changed by ken config set, or in ken.yaml"
		}
		if running := inForce[s.Key]; running != s.Value {
			one.InForce = running
		}
		out = append(out, one)
	}
	return out
}

// unwritten says why a person's own file was not written, and what to do: the
// system refused it, or what is in it must be mended first.
func unwritten(file string, err error) error {
	if _, known := errors.AsType[*capability.Error](err); known || err == nil {
		return err
	}
	fix := "mend the file, then try again"
	_, path := errors.AsType[*fs.PathError](err)
	_, link := errors.AsType[*os.LinkError](err)
	if path || link {
		fix = "make room on the disk, or make the file and its folder writable, then try again"
	}
	return &capability.Error{Kind: capability.Unavailable, Op: "write", Target: file, Err: err, Fix: fix}
}

// setSetting changes the user's own file, records that in the audit log, and
// returns any note about the change.
func (a *App) setSetting(ctx context.Context, who auth.Identity, key, value string) (changed systemapi.Changed, err error) {
	if !slices.Contains(openSettings(), key) {
		return changed, &capability.Error{Kind: capability.Denied, Op: "set", Target: key, Err: errors.New("a page may not change it"), Fix: "run ken config set " + key + ", or edit ken.yaml"}
	}
	file := a.configFile
	if file == "" {
		if file, err = a.Places.File(); err != nil {
			return changed, err
		}
	}
	log, err := a.trail.Get()
	if err != nil {
		return changed, err
	}
	if err := a.effective().CheckSet(key, value); err != nil {
		return changed, err
	}
	if err := config.Set(file, key, value); err != nil {
		return changed, unwritten(file, err)
	}
	a.loader.Latest() // whoever is answered finds it in force
	success := true
	rec := audit.Record{
		Event: audit.Changed, Command: "config", Action: "set", Target: "config:" + key, Origin: string(capability.ByPerson),
		UserID: who.Principal.ID, Tenant: who.Principal.Tenant, Status: audit.Completed, Success: &success,
	}
	rec.Metadata.Notes = map[string]string{"value": value}
	_, err = log.Append(ctx, rec)
	changed.Restart = !reload.AppliesLive(key)
	if err == nil {
		changed.Warning = a.SettingDoubt(ctx, key)
	}
	return changed, err
}
