package app

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"

	"ken/capability"
	"ken/internal/config"
	"ken/internal/door"
	"ken/internal/govern/audit"
	"ken/internal/serve/auth"
	"ken/internal/serve/httpapi/systemapi"
)

// A standing is what counts for as long as the files of the configuration say
// the same: keys that count at once as the files have them, all others as they
// were when Ken was opened. It is made once, when a file changes, and never
// changed. Whoever needs several values that belong together asks once and takes
// them from the same one; a turn or a call asks for each of its parts, its limits,
// its model, its network, when that begins, and keeps it.
type standing struct {
	config.Config
	find func(capability.Scope) door.Settings
}

// stand makes what counts of what the files say. The lawbook is locked
// meanwhile, or not there yet.
func (a *App) stand(said config.Config) *standing {
	c := a.Settings.Adopt(said, CountsAtOnce)
	if a.talking.named != "" {
		c.Model = a.talking.named
	}
	return &standing{Config: c, find: findSettings(c)}
}

// now returns what counts at this moment. It costs a look at the files at most;
// one that cannot be followed changes nothing.
func (a *App) now() *standing { return a.laws.current().said }

// atOnce and atStart say of every key when a new value counts in a Ken that
// runs: at once, which is for the next turn or call, or when it is started
// again. A name with a star stands for the keys of a section that no other name
// is for. A folder that is taken out of policy.readRoots or writeRoots is refused
// at once; one that is added has to wait until the file tools open it.
func atOnce() []string {
	return []string{
		"model", "providers", "capabilities.*", "discovery.*", "policy.*", "mcp.servers", "mcp.import", "mcp.new", "mcp.changed", "mcp.trustHints", "databases",
		"chat.*", "skills.*", "sandbox.networkBytes", "sandbox.networks", "sandbox.networkRate", "shell.hosts",
		"limits.*", "requests.*", "approval.*", "audit.keep", "experiment.*",
	}
}

func atStart() []string {
	return []string{
		"capabilities.killSwitch", "capabilities.allowWorkspaceCards", "catalog.*",
		"discovery.tokenizer", "discovery.collectionName", "discovery.embeddingModelId", "discovery.embeddingUrl", "discovery.embeddingKeyEnv",
		"policy.readRoots", "policy.writeRoots", "mcp.*", "chat.keep", "hooks", "trace.*", "sandbox.*", "shell.*", "extensions.*",
		"limits.timeout", "limits.maxTimeout", "approval.approvers", "audit.*", "results.*", "serve.*", "store",
	}
}

// CountsAtOnce reports whether a new value of a key counts at once in a Ken that
// runs. One that does not counts when Ken is started again.
func CountsAtOnce(key string) bool {
	for _, whole := range []string{"catalog.pins", "catalog.overrides"} {
		if strings.HasPrefix(key, whole+".") {
			key = whole
		}
	}
	section, _, _ := strings.Cut(key, ".")
	switch {
	case slices.Contains(atOnce(), key):
		return true
	case slices.Contains(atStart(), key):
		return false
	}
	return slices.Contains(atOnce(), section+".*")
}

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
	now := a.laws.current()
	standing := now.said
	said, err := config.Load(a.Places, a.configFile)
	if err != nil || now.err != nil {
		said = standing.Config // the file is broken at this moment, as the doctor tells
	}
	inForce := map[string]string{}
	for _, s := range a.Settings.Settings() {
		inForce[s.Key] = s.Value
	}
	for _, s := range standing.Settings() {
		if CountsAtOnce(s.Key) {
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
	if err := a.now().CheckSet(key, value); err != nil {
		return changed, err
	}
	if err := config.Set(file, key, value); err != nil {
		return changed, unwritten(file, err)
	}
	a.laws.looking() // whoever is answered finds it in force
	success := true
	rec := audit.Record{
		Event: audit.Changed, Command: "config", Action: "set", Target: "config:" + key, Origin: string(capability.ByPerson),
		UserID: who.Principal.ID, Tenant: who.Principal.Tenant, Status: audit.Completed, Success: &success,
	}
	rec.Metadata.Notes = map[string]string{"value": value}
	_, err = log.Append(ctx, rec)
	changed.Restart = !CountsAtOnce(key)
	if err == nil {
		changed.Warning = a.SettingDoubt(ctx, key)
	}
	return changed, err
}
