package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"ken/capability"
	"ken/internal/dirs"
	"ken/internal/govern/policy"
	"ken/internal/yamledit"
)

// at makes the places of a user whose files are in home and who works in work,
// both below a temporary directory.
func at(t testing.TB) (places dirs.Places, home, work string) {
	t.Helper()
	dir := t.TempDir()
	home, work = filepath.Join(dir, "home"), filepath.Join(dir, "work")
	for _, d := range []string{home, work} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	places, err := dirs.New(func(name string) string {
		if name == "HOME" {
			return home
		}
		return ""
	}, work)
	if err != nil {
		t.Fatal(err)
	}
	return places, home, work
}

func write(t testing.TB, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// bare is a Config without its memory of files.
func bare(c Config) Config {
	c.files, c.origins, c.other, c.spoken = nil, nil, nil, policyText{}
	c.Catalog.Sources = slices.Clone(c.Catalog.Sources)
	for i := range c.Catalog.Sources {
		c.Catalog.Sources[i].Origin = capability.Origin{}
	}
	c.Policy.Modes, c.Policy.Access.Tools = maps.Clone(c.Policy.Modes), maps.Clone(c.Policy.Access.Tools)
	for name, m := range c.Policy.Modes {
		m.Where = ""
		c.Policy.Modes[name] = m
	}
	c.Policy.Access.Name = ""
	for name, t := range c.Policy.Access.Tools {
		t.Line = 0
		c.Policy.Access.Tools[name] = t
	}
	c.Policy.Rules = slices.Clone(c.Policy.Rules)
	for i := range c.Policy.Rules {
		c.Policy.Rules[i].Where = ""
	}
	return c
}

// TestT16ConfigRefused reads testdata/refused: each file is refused whole, and
// everything that is wrong with it is said at once with its line and the mend.
func TestT16ConfigRefused(t *testing.T) {
	files, err := filepath.Glob("testdata/refused/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("Glob = %q, %v", files, err)
	}
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			places, _, _ := at(t)
			want := ""
			for _, f := range archive.Files {
				if f.Name == "want" {
					want = strings.TrimSpace(string(f.Data))
				} else {
					write(t, filepath.Join(places.Home, f.Name), string(f.Data))
				}
			}
			got, err := Load(places, "")
			var refused *Error
			if !errors.As(err, &refused) {
				t.Fatalf("Load = %v, want an *Error", err)
			}
			if said := strings.ReplaceAll(err.Error(), places.Home+"/", ""); said != want {
				t.Errorf("Load said\n%s\nwant\n%s", said, want)
			}
			if !reflect.DeepEqual(got, Config{}) {
				t.Errorf("Load gave %+v besides its error, want the zero Config", got)
			}
			for _, p := range refused.Problems {
				if p.Code == "" || p.Severity != capability.Grave || strings.Contains(p.String(), "hunter2") {
					t.Errorf("problem %+v: want a code, an error, and no password", p)
				}
			}
		})
	}
}

// TestT16ConfigWhole shows that a good part of a bad file has no effect.
func TestT16ConfigWhole(t *testing.T) {
	places, _, _ := at(t)
	write(t, filepath.Join(places.Home, "ken.yaml"), "capabilities: {enabled: false}\nserve: {adr: x}\n")
	if c, err := Load(places, ""); err == nil || c.Capabilities.Enabled || c.Serve.Addr != "" {
		t.Errorf("Load = %+v, %v, want the zero Config and an error", c, err)
	}
}

// TestS171SeedExample: the seed's JSON example is accepted as it stands, under
// either name.
func TestS171SeedExample(t *testing.T) {
	text, err := os.ReadFile("testdata/seed/ken.json")
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.Capabilities.ForceInclude = []string{"token-economy"}
	want.Capabilities.Exclude = []string{"experimental-feature"}
	want.Capabilities.LogLevel = LogDetailed
	for _, name := range []string{"ken.json", "ken.yaml"} {
		places, _, _ := at(t)
		file := filepath.Join(places.Home, name)
		write(t, file, string(text))
		got, err := Load(places, "")
		if err != nil || !reflect.DeepEqual(bare(got), bare(want)) {
			t.Errorf("%s: Load = %+v, %v, want %+v", name, got, err, want)
		}
		if !slices.Equal(got.Files(), []string{file}) {
			t.Errorf("%s: Files() = %q, want %q", name, got.Files(), file)
		}
	}
}

// TestConfigDefaults pins the numbers of the seeds (S1.65–S1.70, S1.U09,
// S2.62–S2.71).
func TestConfigDefaults(t *testing.T) {
	places, _, _ := at(t)
	c, err := Load(places, "")
	if err != nil || !reflect.DeepEqual(bare(c), bare(Default())) || len(c.Files()) != 0 {
		t.Fatalf("Load without files = %+v, %v, want the defaults", c, err)
	}
	want := map[string]string{
		"capabilities.enabled": "true", "capabilities.maxTokens": "1500", "capabilities.confidenceThreshold": "null",
		"capabilities.forceInclude": "[]", "capabilities.exclude": "[]", "capabilities.logLevel": "summary",
		"capabilities.allowWorkspaceCards": "false", "capabilities.scorer": "evidence", "capabilities.budgetPolicy": "skip",
		"capabilities.rollout": "full", "capabilities.rolloutSessionTypes": "[]", "capabilities.killSwitch": "warn",

		"catalog.starter": "on", "catalog.sources": "[]", "catalog.watch": "true", "catalog.debounce": "500ms", "catalog.poll": "2s",
		"catalog.compatibilityPaths": "true", "catalog.pins": "{}", "catalog.overrides": "{}", "catalog.sanitizer": "reveal",

		"discovery.tier0TokenBudget": "200", "discovery.tier1TokenBudget": "800", "discovery.tier2TokenBudget": "2000",
		"discovery.totalTokenBudget": "3000", "discovery.tier1TopK": "5", "discovery.tier2TopK": "2",
		"discovery.tier1MinRelevance": "0.3", "discovery.lowConfidence": "0.6", "discovery.useGraphReranking": "true", "discovery.graphBoostFactor": "0.15",
		"discovery.collectionName": "capability_index", "discovery.reader": "auto", "discovery.embeddingModelId": `""`, "discovery.embeddingUrl": `""`, "discovery.embeddingKeyEnv": `""`,
		"discovery.profile": "standard", "discovery.graphLiteral": "false", "discovery.tier1TailRelevance": "0.02", "discovery.tier2MinRelevance": "0.1",
		"discovery.promptMode": "full", "discovery.maxTokenBudget": "0", "discovery.tokenizer": "o200k",
		"discovery.embeddingTimeout": "50ms", "discovery.stickyTopK": "3", "discovery.agents": "{}",

		"policy.profile": "personal", "policy.deployment": "local_open", "policy.intents": "strict", "policy.intentSurfaces": "[chat, run, api, library]",
		"policy.intentMap": "{}", "policy.modes": "{}", "policy.permissions": "{}", "policy.readRoots": "[]", "policy.writeRoots": "[]",
		"policy.protect": "[]", "policy.secrets": "[]", "policy.sendSecrets": "{}", "policy.askAbove": "70", "policy.denyAbove": "100", "policy.rules": "[]", "policy.cedar": "[]",
		"policy.toolAccess": "{global: {enabled: true, mode: full}, tools: {shell: {enabled: true, mode: allowlist, " +
			"allowedPrefixes: [echo, pwd, ls, date, uname, whoami], timeoutMs: 15000, maxOutputChars: 20000, allowAnyCwd: false}}}",

		"limits.concurrent": "64", "limits.perExtension": "16", "limits.perPrincipal": "none", "limits.perTenant": "none", "limits.queue": "4096", "limits.queuePerExtension": "1024", "limits.wait": "0s",
		"limits.timeout": "5m", "limits.maxTimeout": "0s", "limits.slow": "5s", "limits.argumentBytes": "1MiB", "limits.argumentDepth": "64",
		"limits.inline": "20000", "limits.dataBytes": "8MiB", "limits.remember": "24h", "limits.browsers": "4", "limits.browserIdle": "5m",
		"requests.bytes": "8MiB", "requests.rate": "10", "requests.retries": "2", "requests.pages": "20",

		"sandbox.require": "require-landlock", "sandbox.cpu": "0s", "sandbox.memory": "half", "sandbox.addressSpace": "none", "sandbox.processes": "512",
		"sandbox.openFiles": "1024", "sandbox.fileSize": "1GiB", "sandbox.disk": "none", "sandbox.output": "1MiB", "sandbox.outputStop": "none", "sandbox.scratch": "64MiB",
		"sandbox.networkBytes": "64MiB", "sandbox.networks": "[]", "sandbox.networkRate": "none",

		"shell.env": "[]", "shell.hosts": "[]", "extensions.path": "[]", "extensions.review": "required",
		"approval.wait": "24h", "approval.onceFor": "1h", "approval.sessionFor": "720h", "approval.alwaysFor": "720h", "approval.retain": "2160h", "approval.pending": "100", "approval.approvers": "[]",
		"audit.checkpointDir": `""`, "audit.segmentBytes": "64MiB", "audit.keep": "0s",
		"jobs.concurrent": "8", "jobs.perExtension": "8", "jobs.perPrincipal": "8", "jobs.pending": "1000", "jobs.keep": "168h", "jobs.serve": "true",
		"results.keep": "24h", "results.perSession": "64", "results.maxBytes": "64MiB", "results.maxTotal": "2GiB", "results.bucket": `""`,

		"experiment.name": `""`, "experiment.config": `""`,
		"serve.addr": "127.0.0.1:7777", "serve.auth": "on", "serve.hosts": "[]", "serve.origins": "[]", "serve.oidc": "{}", "serve.rate": "{requests: 50, burst: 200, open: 1000}", "serve.tenantRate": "{requests: 0, burst: 0}", "serve.stopDelay": "250ms", "serve.drain": "30s", "store": `""`,
		"mcp.servers": "{}", "mcp.import": "[]", "mcp.surface": "auto", "mcp.surfaces": "{}", "mcp.pinned": "[]", "mcp.new": "quarantine", "mcp.changed": "quarantine", "mcp.trustHints": "[]", "mcp.idle": "10m", "mcp.instructions": "500", "mcp.registry": "https://registry.modelcontextprotocol.io", "mcp.maxTools": "10000", "databases": "{}",

		"model": `""`, "providers": "{}",
		"chat.condenseModel": `""`, "chat.effort": "default", "chat.maxTokens": "0", "chat.modelTable": `""`, "chat.toolDelivery": "auto",
		"chat.condenseAt": "100", "chat.promptTokens": "6000", "chat.intentScope": "turn", "chat.rememberIntents": "false", "chat.escalation": "allow", "chat.toolFailureMode": "fail_open",
		"chat.steps": "50", "chat.mistakes": "3", "chat.repeats": "3", "chat.calls": "64", "chat.rounds": "10", "chat.parallel": "8", "chat.requests": "0", "chat.tokens": "0", "chat.cost": "0",
		"chat.answerBytes": "4MiB", "chat.resultBytes": "100000", "chat.inputBytes": "64MiB", "chat.messageBytes": "256KiB", "chat.keep": "2160h", "chat.memory": "false", "skills.always": "[]", "skills.off": "[]", "hooks": "{}",
		"trace.otlp": `""`, "trace.orchestration": "auto",
	}
	byPolicy := []string{"policy.deployment", "policy.intents", "policy.intentSurfaces", "policy.permissions", "policy.askAbove", "policy.denyAbove"}
	for _, s := range c.Settings() {
		origin := "default"
		if slices.Contains(byPolicy, s.Key) {
			origin = "profile personal"
		}
		if s.Value != want[s.Key] || s.Origin != origin || s.Doc == "" {
			t.Errorf("%s = %s (%s, %q), want %s by %s", s.Key, s.Value, s.Origin, s.Doc, want[s.Key], origin)
		}
		delete(want, s.Key)
	}
	if len(want) > 0 {
		t.Errorf("Settings() lacks %v", want)
	}
}

func TestLoadReadsEveryKey(t *testing.T) {
	places, home, _ := at(t)
	file := filepath.Join(places.Home, "ken.yaml")
	write(t, file, `capabilities:
  enabled: false
  maxTokens: 900
  confidenceThreshold: 0.75
  forceInclude: [a]
  exclude:
    - b
    - "c d"
  logLevel: none
  allowWorkspaceCards: true
  scorer: seed
  budgetPolicy: stop
  rollout: soft
  rolloutSessionTypes: [main, isolated]
  killSwitch: disable
catalog:
  starter: off
  sources:
    - path: team
    - {name: home, path: ~/x, trust: remote, optional: true}
    - {url: https://example.com/c.jsonl, sha256: `+strings.Repeat("ab", 32)+`, refresh: 1h}
    - {url: "http://127.0.0.1:8080/c.json"}
    - {name: db, database: ../c.db, table: public.tools, refresh: 5m}
    - {name: pg, database: "postgres://ada@db/x?host=/run", trust: workspace}
  watch: false
  debounce: 1s
  poll: 1m30s
  compatibilityPaths: false
  pins:
    tool:x: sha256:00112233445566778899aabbccddeeff
  sanitizer: seed
  overrides: {tool:y: sha256:ffeeddccbbaa99887766554433221100}
discovery:
  tier0TokenBudget: 1
  tier1TokenBudget: 2
  tier2TokenBudget: 3
  totalTokenBudget: 4
  tier1TopK: 5
  tier2TopK: 6
  tier1MinRelevance: 0
  useGraphReranking: false
  graphBoostFactor: 1
  collectionName: other
  reader: fast
  embeddingModelId: some/model
  embeddingUrl: http://127.0.0.1:9/v1
  embeddingKeyEnv: SOME_KEY
  profile: full
  graphLiteral: true
  lowConfidence: 0.75
  tier1TailRelevance: 0.5
  tier2MinRelevance: 0.25
  promptMode: names
  maxTokenBudget: 7
  tokenizer: chars4
  embeddingTimeout: 1s
  stickyTopK: 8
  agents:
    helper: {profile: lean, forceInclude: [d], exclude: [e, f]}
    "a b":
serve:
  addr: "[::1]:0"
  auth: off
  hosts: [ken.example.com]
  origins: [https://tools.example.com]
  oidc:
    issuer: https://id.example/realm
    clientID: ken
    clientSecret: KEN_OIDC
    audience: [ken, ken-api]
    userClaim: email
    tenantClaim: org
    rolesClaim: realm_access.roles
    nameClaim: nickname
    operators: [ken-admins]
    admit: [ken-users, ken-admins]
    scopes: [openid, groups]
    name: Example Inc
  rate: {requests: 5}
  tenantRate: {requests: 9, burst: 10}
  stopDelay: 2s
  drain: 1m
experiment:
  name: first
  config: ../other.yaml
`)
	write(t, filepath.Join(home, "other.yaml"), "")
	threshold := 0.75
	want := Config{
		Capabilities: Capabilities{
			MaxTokens: 900, ConfidenceThreshold: &threshold, ForceInclude: []string{"a"}, Exclude: []string{"b", "c d"},
			LogLevel: LogNone, AllowWorkspaceCards: true, Scorer: ScorerSeed, BudgetPolicy: BudgetStop,
			Rollout: RolloutSoft, RolloutSessionTypes: []string{"main", "isolated"}, KillSwitch: KillSwitchDisable,
		},
		Catalog: Catalog{
			Starter: StarterOff,
			Sources: []Source{
				{Name: "team", Path: filepath.Join(places.Home, "team"), Trust: capability.TrustUser},
				{Name: "home", Path: filepath.Join(home, "x"), Trust: capability.TrustRemote, Optional: true},
				{Name: "https://example.com/c.jsonl", URL: "https://example.com/c.jsonl", SHA256: strings.Repeat("ab", 32), Refresh: time.Hour},
				{Name: "http://127.0.0.1:8080/c.json", URL: "http://127.0.0.1:8080/c.json"},
				{Name: "db", Database: filepath.Join(home, "c.db"), Table: "public.tools", Refresh: 5 * time.Minute, Trust: capability.TrustUser},
				{Name: "pg", Database: "postgres://ada@db/x?host=/run", Table: "capabilities", Trust: capability.TrustWorkspace},
			},
			Debounce: time.Second, Poll: 90 * time.Second, Sanitizer: SanitizeSeed,
			Pins:      map[capability.ID]string{"tool:x": "sha256:00112233445566778899aabbccddeeff"},
			Overrides: map[capability.ID]string{"tool:y": "sha256:ffeeddccbbaa99887766554433221100"},
		},
		Discovery: Discovery{
			Profile: ProfileFull, Tier0TokenBudget: 1, Tier1TokenBudget: 2, Tier2TokenBudget: 3, TotalTokenBudget: 4, MaxTokenBudget: 7,
			Tier1TopK: 5, Tier2TopK: 6, StickyTopK: 8, LowConfidence: 0.75, Tier1TailRelevance: 0.5, Tier2MinRelevance: 0.25, GraphBoostFactor: 1, GraphLiteral: true,
			PromptMode: PromptNames, Tokenizer: TokenizerChars4,
			Agents:         map[string]Agent{"helper": {ProfileLean, []string{"d"}, []string{"e", "f"}}, "a b": {}},
			CollectionName: "other", Reader: ReaderFast, EmbeddingModelID: "some/model", EmbeddingURL: "http://127.0.0.1:9/v1", EmbeddingKeyEnv: "SOME_KEY", EmbeddingTimeout: time.Second,
		},
		Experiment: Experiment{Name: "first", Config: filepath.Join(home, "other.yaml")},
		Serve: Serve{
			Addr: "[::1]:0", Auth: AuthOff, Hosts: []string{"ken.example.com"}, Origins: []string{"https://tools.example.com"},
			OIDC: OIDC{
				Issuer: "https://id.example/realm", ClientID: "ken", ClientSecret: "KEN_OIDC", Audience: []string{"ken", "ken-api"},
				UserClaim: "email", TenantClaim: "org", RolesClaim: "realm_access.roles", NameClaim: "nickname",
				Operators: []string{"ken-admins"}, Admit: []string{"ken-users", "ken-admins"}, Scopes: []string{"openid", "groups"}, Name: "Example Inc",
			},
			Rate: ServeRate{Requests: 5, Burst: 200, Open: 1000}, TenantRate: ServeRate{Requests: 9, Burst: 10}, StopDelay: 2 * time.Second, Drain: time.Minute,
		},
	}
	allowedBySchema(t, file)
	got, err := Load(places, "")
	if err != nil {
		t.Fatal(err)
	}
	rest := Default() // see TestLoadReadsEveryKeyOfRunning
	rest.Capabilities, rest.Catalog, rest.Discovery, rest.Experiment, rest.Serve = want.Capabilities, want.Catalog, want.Discovery, want.Experiment, want.Serve
	want = rest
	if !reflect.DeepEqual(bare(got), bare(want)) {
		t.Errorf("Load = %+v\nwant %+v", got, want)
	}
	sections := []string{"capabilities", "catalog", "discovery", "experiment", "serve"}
	for _, s := range got.Settings() {
		section, _, _ := strings.Cut(s.Key, ".")
		if slices.Contains(sections, section) && !strings.HasPrefix(s.Origin, file+":") {
			t.Errorf("%s has origin %s, want a line of %s", s.Key, s.Origin, file)
		}
	}
	if o := got.Catalog.Sources[1].Origin.String(); o != file+":20" {
		t.Errorf("origin of the second source = %s, want line 20", o)
	}
	for key, want := range map[string][2]string{
		"capabilities.maxTokens":   {"900", file + ":3"},
		"capabilities.exclude":     {`[b, "c d"]`, file + ":6"},
		"catalog.pins":             {`{tool:x: sha256:00112233445566778899aabbccddeeff}`, file + ":29"},
		"catalog.pins.tool:x":      {"sha256:00112233445566778899aabbccddeeff", file + ":29"},
		"catalog.overrides.tool:y": {"sha256:ffeeddccbbaa99887766554433221100", file + ":32"},
		"catalog.poll":             {"1m30s", file + ":27"},
		"discovery.agents":         {`{"a b": {}, helper: {profile: lean, forceInclude: [d], exclude: [e, f]}}`, file + ":58"},
	} {
		if value, origin, err := got.Explain(key); err != nil || value != want[0] || origin != want[1] {
			t.Errorf("Explain(%s) = %s, %s, %v, want %q", key, value, origin, err, want)
		}
	}
}

func TestExplainUnknown(t *testing.T) {
	for key, want := range map[string]string{
		"capabilities.maxToken":    "did you mean capabilities.maxTokens?",
		"maxTokens":                "did you mean capabilities.maxTokens?",
		"catalog":                  "name one of its keys: starter, sources,",
		"catalog.pins.tool:x":      "no such pin",
		"catalog.overrides.tool:x": "no such override",
		"\x1b[2J":                  `get "\x1b[2J": there is no such key`,
	} {
		_, _, err := Default().Explain(key)
		if err == nil || !strings.Contains(err.Error(), want) || capability.KindOf(err) != capability.Invalid {
			t.Errorf("Explain(%q) = %v, want %q", key, err, want)
		}
	}
}

// TestLoadLayers: a project's file narrows, an explicit file replaces both.
func TestLoadLayers(t *testing.T) {
	places, _, work := at(t)
	user, project := filepath.Join(places.Home, "ken.yaml"), filepath.Join(places.Project, "ken.yaml")
	write(t, user, `capabilities:
  maxTokens: 1000
  forceInclude: [a, b]
  exclude: [c]
discovery:
  tier1TopK: 3
catalog:
  sources: [{name: mine, path: /mine}]
`)
	write(t, project, `capabilities:
  enabled: false
  maxTokens: 1200 # within the default, but the user has less
  forceInclude: [b]
  exclude: [c, d]
  logLevel: detailed
discovery:
  tier1TopK: 2
  tier1MinRelevance: 0.5
catalog:
  starter: off
  watch: false
  debounce: 1s
  pins: {}
  sources: [{path: tools}, {name: docs, path: ../docs, trust: remote}]
serve:
  addr: 127.0.0.1:7777
`)
	c, err := Load(places, "")
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string][2]string{
		"capabilities.enabled":        {"false", project + ":2"},
		"capabilities.maxTokens":      {"1000", user + ":2"},
		"capabilities.forceInclude":   {"[b]", project + ":4"},
		"capabilities.exclude":        {"[c, d]", user + ":4, " + project + ":5"},
		"capabilities.logLevel":       {"detailed", project + ":6"},
		"discovery.tier1TopK":         {"2", project + ":8"},
		"discovery.tier1MinRelevance": {"0.5", project + ":9"},
		"discovery.tier2TopK":         {"2", "default"},
		"catalog.starter":             {"off", project + ":11"},
		"serve.addr":                  {"127.0.0.1:7777", project + ":17"},
	} {
		if value, origin, err := c.Explain(key); err != nil || value != want[0] || origin != want[1] {
			t.Errorf("Explain(%s) = %s, %s, %v, want %q", key, value, origin, err, want)
		}
	}
	var got []string
	for _, s := range c.Catalog.Sources {
		got = append(got, fmt.Sprintf("%s %s %v", s.Name, s.Path, s.Trust))
	}
	want := []string{"mine /mine user", "tools " + work + "/.ken/tools workspace", "docs " + work + "/docs remote"}
	if !slices.Equal(got, want) {
		t.Errorf("sources = %q, want %q", got, want)
	}

	write(t, filepath.Join(work, "other.yaml"), "capabilities: {maxTokens: 7, allowWorkspaceCards: true}\n")
	c, err = Load(places, "other.yaml")
	if err != nil || c.Capabilities.MaxTokens != 7 || !c.Capabilities.AllowWorkspaceCards || len(c.Catalog.Sources) > 0 || !c.Capabilities.Enabled {
		t.Errorf("Load(other.yaml) = %+v, %v, want only what it says", c, err)
	}
	if _, err = Load(places, "gone.yaml"); err == nil || !strings.Contains(err.Error(), "gone.yaml: the file is not there; create it") {
		t.Errorf("Load(gone.yaml) = %v, want that it is not there", err)
	}
}

// TestT16ConfigProjectMayNotWiden: each value that would allow more than the
// user has is refused, with the place where it belongs.
func TestT16ConfigProjectMayNotWiden(t *testing.T) {
	tests := []struct{ user, project, want string }{
		{"", "capabilities: {allowWorkspaceCards: true}", "capabilities.allowWorkspaceCards is true here and false without it"},
		{"capabilities: {allowWorkspaceCards: true}", "capabilities: {allowWorkspaceCards: true}", ""},
		{"capabilities: {enabled: false}", "capabilities: {enabled: true}", ""}, // no wider than the default: the user's stands
		{"", "capabilities: {maxTokens: 1501}", "capabilities.maxTokens is 1501 here and 1500 without it"},
		{"capabilities: {maxTokens: 4000}", "capabilities: {maxTokens: 2000}", ""},
		{"", "capabilities: {confidenceThreshold: 1}", "confidenceThreshold is 1 here and null without it"},
		{"capabilities: {confidenceThreshold: 0.5}", "capabilities: {confidenceThreshold: 0.6}", ""},
		{"", "capabilities: {forceInclude: [x]}", "forceInclude is [x] here and [] without it"},
		{"", "capabilities: {logLevel: none}", "logLevel is none here and summary without it"},
		{"", `catalog: {pins: {"tool:x": sha256:00112233445566778899aabbccddeeff}}`, "catalog.pins is"},
		{"", `catalog: {overrides: {"tool:x": sha256:00112233445566778899aabbccddeeff}}`, "catalog.overrides is"},
		{"", "catalog: {sanitizer: seed}", "catalog.sanitizer is seed here and reveal without it"},
		{"catalog: {sanitizer: seed}", "catalog: {sanitizer: reveal}", ""},
		{"", "catalog: {starter: off}", ""},
		{"catalog: {starter: off}", "catalog: {starter: on}", ""},
		{"", "catalog: {debounce: 1ms}", "catalog.debounce is 1ms here"},
		{"", "catalog: {sources: [{path: x, trust: user}]}", "a project's file may not trust a source as user"},
		{"", "catalog: {sources: [{path: /etc}]}", "/etc is outside the project"},
		{"", "catalog: {sources: [{path: ../..}]}", "is outside the project"},
		{"", "catalog: {sources: [{path: ~/x}]}", "is outside the project"},
		{"", "catalog: {sources: [{path: out/x}]}", "is outside the project"}, // a link; see below
		{"", "catalog: {sources: [{url: https://example.com/c}]}", "may not have Ken read a remote address"},
		{"", "catalog: {sources: [{name: d, database: d.db}]}", "may not have Ken read a database"},
		{"catalog: {sources: [{name: a, path: /a}]}", "catalog: {sources: [{name: a, path: a}]}", "the name a is taken at"},
		{"", "discovery: {totalTokenBudget: 1000000}", "discovery.totalTokenBudget is 1000000 here"},
		{"", "discovery: {tier1MinRelevance: 0}", "discovery.tier1MinRelevance is 0 here and 0.3 without it"},
		{"", "discovery: {embeddingModelId: spy}", "discovery.embeddingModelId is spy here"},
		{"", "discovery: {embeddingUrl: https://spy.example}", "discovery.embeddingUrl is https://spy.example here"},
		{"", "discovery: {embeddingKeyEnv: OPENAI_API_KEY}", "discovery.embeddingKeyEnv is OPENAI_API_KEY here"},
		{"", "capabilities: {scorer: seed}", "capabilities.scorer is seed here and evidence without it"},
		{"capabilities: {scorer: seed}", "capabilities: {scorer: evidence}", ""},
		{"", "capabilities: {budgetPolicy: stop}", ""},
		{"capabilities: {budgetPolicy: stop}", "capabilities: {budgetPolicy: skip}", ""},
		{"", "capabilities: {rollout: monitor}", ""},
		{"capabilities: {rollout: monitor}", "capabilities: {rollout: soft, rolloutSessionTypes: [main]}", ""},
		{"", "capabilities: {rollout: soft, rolloutSessionTypes: [main]}", ""},
		{"capabilities: {rollout: soft, rolloutSessionTypes: [main, x]}", "capabilities: {rolloutSessionTypes: [main]}", ""},
		{"capabilities: {rollout: soft, rolloutSessionTypes: [main]}", "capabilities: {rolloutSessionTypes: [main, x]}", ""},
		{"", "capabilities: {killSwitch: disable}", ""},
		{"", "capabilities: {killSwitch: off}", "capabilities.killSwitch is off here and warn without it"},
		{"", "discovery: {profile: lean}", ""},
		{"", "discovery: {profile: minimal}", ""},
		{"", "discovery: {profile: full}", "discovery.profile is full here and standard without it"},
		{"", "discovery: {profile: seed}", "discovery.profile is seed here and standard without it"},
		{"discovery: {profile: lean}", "discovery: {profile: full}", "discovery.profile is full here and lean without it"},
		{"discovery: {profile: lean}", "discovery: {profile: standard}", ""},
		{"discovery: {profile: full}", "discovery: {profile: standard, totalTokenBudget: 5000}", ""},
		{"discovery: {profile: full}", "discovery: {totalTokenBudget: 6001}", "totalTokenBudget is 6001 here and 6000 without it"},
		{"discovery: {profile: seed}", "discovery: {profile: minimal}", ""},
		{"discovery: {profile: minimal}", "discovery: {totalTokenBudget: 3000, tier1TopK: 5}", ""},
		{"", "discovery: {graphLiteral: true}", "discovery.graphLiteral is true here and false without it"},
		{"", "discovery: {tier1TailRelevance: 0.01}", "discovery.tier1TailRelevance is 0.01 here and 0.02 without it"},
		{"", "discovery: {tier1TailRelevance: 0.5}", ""},
		{"", "discovery: {promptMode: lazy}", ""},
		{"discovery: {promptMode: names}", "discovery: {promptMode: compact}", ""},
		{"", "discovery: {maxTokenBudget: 1}", "discovery.maxTokenBudget is 1 here and 0 without it"},
		{"", "discovery: {tokenizer: chars4}", "discovery.tokenizer is chars4 here and o200k without it"},
		{"", "discovery: {embeddingTimeout: 51ms}", "discovery.embeddingTimeout is 51ms here and 50ms without it"},
		{"", "discovery: {embeddingTimeout: 1ms}", ""},
		{"", "discovery: {stickyTopK: 4}", "discovery.stickyTopK is 4 here and 3 without it"},
		{"", "discovery: {agents: {a: {profile: lean, exclude: [x]}}}", ""},
		{"", "discovery: {agents: {a: {profile: full}}}", "discovery.agents is {a: {profile: full}} here and {} without it"},
		{"", "discovery: {agents: {a: {forceInclude: [x]}}}", "discovery.agents is {a: {forceInclude: [x]}} here"},
		{"capabilities: {forceInclude: [x]}", "discovery: {agents: {a: {forceInclude: [x]}}}", ""},
		{"discovery: {agents: {a: {profile: full}}}", "discovery: {agents: {a: {profile: full}}}", ""},
		{"discovery: {agents: {a: {profile: full}}}", "discovery: {agents: {b: {profile: full}}}", "discovery.agents is {b: {profile: full}} here"},
		{"", "experiment: {name: x}", "experiment.name is x here and empty without it"},
		{"", "experiment: {config: b.yaml}", "experiment.config is "},
		{"experiment: {name: x}", "experiment: {name: ''}", ""},
		{"", "serve: {addr: localhost:7777}", "serve.addr is localhost:7777 here and 127.0.0.1:7777 without it"},

		{"", "policy: {profile: locked}", ""},
		{"", "policy: {profile: personal}", ""},
		{"policy: {profile: locked}", "policy: {profile: personal}", ""},
		{"", "policy: {profile: team}", "policy.profile is team here and personal without it"},
		{"", "policy: {profile: seed}", "policy.profile is seed here and personal without it"},
		{"", "policy: {deployment: remote_exposed}", ""},
		{"policy: {deployment: local_locked}", "policy: {deployment: local_open}", ""},
		{"", "policy: {intents: relaxed}", "policy.intents is relaxed here and strict without it"},
		{"policy: {intents: off}", "policy: {intents: relaxed}", ""},
		{"", "policy: {intentSurfaces: [chat, run, api, library, mcp]}", ""},
		{"", "policy: {intentSurfaces: [chat, run, api]}", "policy.intentSurfaces is [chat, run, api] here and [chat, run, api, library] without it"},
		{"policy: {profile: team}", "policy: {intentSurfaces: [chat]}", "policy.intentSurfaces is [chat] here and [chat, run, api, mcp, library] without it"},
		{"", "policy: {intentMap: {PLAN: [exec]}}", "policy.intentMap is {PLAN: [exec]} here and {} without it"},
		{"policy: {intentMap: {PLAN: [exec]}}", "policy: {intentMap: {PLAN: [exec]}}", ""},
		{"", "policy: {sendSecrets: {T: ['tool:x']}}", "policy.sendSecrets is {T: [tool:x]} here and {} without it"},
		{"", "policy: {modes: {x: {groups: [read]}}}", ""},
		{"", "policy: {modes: {ask: {groups: [read, command]}}}", "policy.modes is {ask: {groups: [read, command]}} here and {} without it"},
		{"policy: {modes: {x: {groups: [read]}}}", "policy: {modes: {x: {groups: [read]}, y: {groups: [edit], files: ['*.md']}}}", ""},
		{"policy: {modes: {x: {groups: [read]}}}", "policy: {modes: {x: {groups: [read, edit]}}}", "policy.modes is {x: {groups: [read, edit]}} here"},
		{"policy: {modes: {ask: {groups: [read]}}}", "policy: {modes: {ask: {groups: [read, mcp]}}}", "policy.modes is"},
		{"", "policy: {permissions: {network: deny, exec: ask}}", ""},
		{"policy: {permissions: {network: ask, llm: deny}}", "policy: {permissions: {network: deny}}", ""},
		{"policy: {permissions: {network: deny}}", "policy: {permissions: {network_http: ask, exec: deny}}", ""}, // no wider than the default
		{"", "policy: {readRoots: [/srv]}", "policy.readRoots is [/srv] here and [] without it"},
		{"policy: {readRoots: [/srv]}", "policy: {readRoots: [/srv]}", ""},
		{"policy: {readRoots: [/srv]}", "policy: {readRoots: []}", ""},
		{"", "policy: {writeRoots: [~/x]}", "policy.writeRoots is ["},
		{"", "policy: {protect: ['*.tf'], secrets: [vault/**]}", ""},
		{"policy: {protect: [a]}", "policy: {protect: [b]}", ""},
		{"", "policy: {askAbove: 40, denyAbove: 60}", ""},
		{"", "policy: {denyAbove: 50}", ""},
		{"", "policy: {askAbove: 71}", "policy.askAbove is 71 here and 70 without it"},
		{"policy: {profile: locked}", "policy: {denyAbove: 90}", ""},
		{"policy: {denyAbove: 80}", "policy: {denyAbove: 90}", ""},
		{"", "policy: {toolAccess: {tools: {read_file: {enabled: false}}}}", ""},
		{"", "policy: {toolAccess: {tools: {shell: {mode: full}}}}", ""}, // without effect
		{"", "policy: {rules: [{effect: deny, argv: [git push]}, {id: b, effect: ask, capabilities: ['mcp:*']}]}", ""},
		{"", "policy: {rules: [{id: x, effect: allow, argv: [rm]}]}", "policy.rules is [{id: x, effect: allow, argv: [rm]}] here and [] without it"},
		{"policy: {rules: [{id: x, effect: allow, argv: [ls]}]}", "policy: {rules: [{id: x, effect: allow, argv: [ls]}, {effect: deny, argv: [rm]}]}", ""},
		{"policy: {rules: [{effect: allow, argv: [ls]}]}", "policy: {rules: [{effect: deny, argv: [rm]}]}", ""},
		{"policy: {rules: [{id: x, effect: allow, argv: [ls]}]}", "policy: {rules: [{id: x, effect: deny, argv: [ls]}]}", "the id x is taken at"},
		{"", "policy: {cedar: [own.cedar]}", "policy.cedar is ["},
		{"", "model: ollama/x", "model is ollama/x here and empty without it"},
		{"", "providers: {anthropic: {url: 'https://example.com'}}", "providers is"},
		{"", "hooks: {a: {command: ['true']}}", "hooks is"},
		{"", "chat: {keep: 1s}", "chat.keep is 1s here and 2160h without it"}, // it would delete what was said elsewhere
		{"", "chat: {keep: 0s}", "chat.keep is 0s here"},
		{"", "chat: {steps: 5, mistakes: 1, cost: 0.1, intentScope: request, escalation: ask, toolFailureMode: fail_closed}", ""},
		{"", "chat: {steps: 51}", "chat.steps is 51 here and 50 without it"},
		{"", "chat: {rememberIntents: true}", "chat.rememberIntents is true here"},
		{"", "chat: {memory: true}", "chat.memory is true here"},
		{"", "skills: {off: [shell]}", ""},
		{"", "skills: {always: [x]}", "skills.always is [x] here"},
		{"", "trace: {otlp: 'http://127.0.0.1:1'}", "trace.otlp is"},
		{"", "trace: {orchestration: off}", "trace.orchestration is off here and auto without it"},
		{"", "store: postgres://ada:hunter2@db/ken", "store is postgres://ada:•••@db/ken here and empty without it"},
		{"store: postgres://ada:hunter2@db/ken", "store: postgres://ada:hunter2@db/ken", ""},
		{"store: postgres://ada:hunter2@db/ken", "store: postgres://ada:hunter3@db/ken", "store is postgres://ada:•••@db/ken here and postgres://ada:•••@db/ken without it"},
		{"", "limits: {concurrent: 1, perExtension: 1, queue: 1, queuePerExtension: 1, wait: 1s, timeout: 1s, maxTimeout: 1s, slow: 1s}", ""},
		{"", "limits: {perPrincipal: 5, perTenant: 9}", ""},
		{"limits: {perPrincipal: 4}", "limits: {perPrincipal: 5}", ""}, // no more than the default: the user's stands
		{"", "limits: {argumentBytes: 1KB, argumentDepth: 2, inline: 100, dataBytes: 1KiB, remember: 48h, browsers: 1, browserIdle: 1m}", ""},
		{"", "limits: {browsers: 9}", "limits.browsers is 9 here and 4 without it"},
		{"", "limits: {concurrent: 65}", "limits.concurrent is 65 here and 64 without it"},
		{"", "requests: {bytes: 1KiB, rate: 1, retries: 0, pages: 1}", ""},
		{"", "requests: {bytes: 1GiB}", "requests.bytes is 1GiB here and 8MiB without it"},
		{"", "requests: {rate: none}", "requests.rate is none here and 10 without it"},
		{"", "requests: {pages: 21}", "requests.pages is 21 here and 20 without it"},
		{"limits: {wait: 2s}", "limits: {wait: 0s}", ""},
		{"limits: {wait: 2s}", "limits: {wait: 3s}", ""},
		{"", "limits: {timeout: 6m}", "limits.timeout is 6m here and 5m without it"},
		{"", "limits: {maxTimeout: 6m}", "limits.maxTimeout is 6m here and 0s without it"},
		{"limits: {timeout: 10m, maxTimeout: 5m}", "limits: {maxTimeout: 0s}", ""},
		{"limits: {timeout: 10m}", "limits: {maxTimeout: 8m}", ""},
		{"limits: {maxTimeout: 1h}", "limits: {maxTimeout: 2h}", "limits.maxTimeout is 2h here and 1h without it"},
		{"", "limits: {remember: 1h}", "limits.remember is 1h here and 24h without it"},
		{"", "sandbox: {require: require-full, cpu: 1s, memory: 1GiB, addressSpace: 4GiB, processes: 8, openFiles: 64, fileSize: 1MiB, disk: 10MB}", ""},
		{"", "sandbox: {output: 1KiB, scratch: 1MiB, networkBytes: 1MiB, networkRate: 10KB}", ""},
		{"", "sandbox: {require: best-effort}", "sandbox.require is best-effort here and require-landlock without it"},
		{"", "sandbox: {require: off}", "sandbox.require is off here and require-landlock without it"},
		{"", "sandbox: {processes: none}", "sandbox.processes is none here and 512 without it"},
		{"", "sandbox: {fileSize: 2GiB}", "sandbox.fileSize is 2GiB here and 1GiB without it"},
		{"sandbox: {memory: 1GiB}", "sandbox: {memory: none}", "sandbox.memory is none here and 1GiB without it"},
		{"", "sandbox: {memory: 1GiB}", ""},
		{"", "sandbox: {memory: half}", ""},
		{"sandbox: {networkRate: 1MB}", "sandbox: {networkRate: 2MB}", ""},
		{"sandbox: {networkBytes: none}", "sandbox: {networkBytes: 128MiB}", ""},
		{"sandbox: {cpu: 1s}", "sandbox: {cpu: 0s}", ""},
		{"", "shell: {hosts: [example.com]}", "shell.hosts is [example.com] here and [] without it"},
		{"", "shell: {env: [TZ]}", "shell.env is [TZ] here and [] without it"},
		{"shell: {env: [LANG, TZ]}", "shell: {env: [TZ]}", ""},
		{"", "extensions: {review: off}", "extensions.review is off here and required without it"},
		{"extensions: {review: off}", "extensions: {review: required}", ""},
		{"", "extensions: {path: [bin]}", "extensions.path is ["},
		{"extensions: {path: [/opt/bin]}", "extensions: {path: [/opt/bin]}", ""},
		{"", "approval: {wait: 1h, onceFor: 1m, sessionFor: 1h}", ""},
		{"", "approval: {sessionFor: 721h}", "approval.sessionFor is 721h here and 720h without it"},
		{"", "approval: {alwaysFor: 721h}", "approval.alwaysFor is 721h here and 720h without it"},
		{"", "approval: {retain: 1h}", "approval.retain is 1h here and 2160h without it"},
		{"", "approval: {approvers: [intern]}", "approval.approvers is [intern] here and [] without it"},
		{"", "audit: {keep: 1h}", "audit.keep is 1h here and 0s without it"},
		{"", "audit: {checkpointDir: x}", "audit.checkpointDir is "},
		{"", "audit: {segmentBytes: 1MiB}", "audit.segmentBytes is 1MiB here and 64MiB without it"},
		{"", "results: {keep: 1h, perSession: 2, maxBytes: 1MiB, maxTotal: 1GiB}", ""},
		{"", "results: {perSession: 65}", "results.perSession is 65 here and 64 without it"},
	}
	for _, tt := range tests {
		places, home, _ := at(t)
		own := filepath.Join(places.Home, "ken.yaml")
		write(t, own, tt.user+"\n")
		write(t, filepath.Join(places.Project, "ken.yaml"), "\n"+tt.project+"\n")
		if err := os.Symlink(home, filepath.Join(places.Project, "out")); err != nil {
			t.Fatal(err)
		}
		alone, err := Load(places, own)
		if err != nil {
			t.Fatal(err)
		}
		c, err := Load(places, "")
		if tt.want == "" {
			if _, cerr := policy.Compile(c.Policy); cerr != nil {
				t.Errorf("%s over %q: Compile = %v", tt.project, tt.user, cerr)
			}
			if err != nil || !reflect.DeepEqual(narrowest(t, c, alone), c) {
				t.Errorf("%s over %q: Load = %+v, %v, want it no wider than without", tt.project, tt.user, c, err)
			}
			continue
		}
		var refused *Error
		if !errors.As(err, &refused) || len(refused.Problems) != 1 {
			t.Errorf("%s over %q: Load = %v, want one problem", tt.project, tt.user, err)
			continue
		}
		p := refused.Problems[0]
		mend := "put it into " + own
		if strings.Contains(p.Fix, "put the source into") {
			mend = "put the source into " + own
		}
		if p.Code == "duplicate-name" {
			mend = "another"
		}
		if strings.Contains(p.String(), "hunter") {
			t.Errorf("%s over %q: %v tells a password", tt.project, tt.user, p)
		}
		if !strings.Contains(p.Message, tt.want) || !strings.Contains(p.Fix, mend) || p.Origin.Line != 2 {
			t.Errorf("%s over %q: %+v, want %q on line 2 and %q", tt.project, tt.user, p, tt.want, mend)
		}
	}
}

// narrowest fails where a is wider than b in any key, and gives a.
func narrowest(t testing.TB, a, b Config) Config {
	t.Helper()
	for _, s := range settings() {
		if !s.noWider(&a, &b) {
			t.Errorf("%s is %s, wider than %s", s.name, yamledit.Flow(s.show(&a)), yamledit.Flow(s.show(&b)))
		}
	}
	return a
}

// TestLoadAtHome: the user's own file is not a project's, however it is
// reached.
func TestLoadAtHome(t *testing.T) {
	_, home, work := at(t)
	env := map[string]string{"HOME": home}
	write(t, filepath.Join(home, ".ken/ken.yaml"), "capabilities: {allowWorkspaceCards: true}\n")
	link := filepath.Join(work, "link")
	if err := os.Symlink(home, link); err != nil {
		t.Fatal(err)
	}
	for _, cwd := range []string{home, link} {
		places, err := dirs.New(func(s string) string { return env[s] }, cwd)
		if err != nil {
			t.Fatal(err)
		}
		if c, err := Load(places, ""); err != nil || !c.Capabilities.AllowWorkspaceCards {
			t.Errorf("Load in %s = %+v, %v, want the user's file as the user's", cwd, c, err)
		}
	}
}

// TestLoadUnreadable: what cannot be read is an error and never "no file", and
// nothing waits.
func TestLoadUnreadable(t *testing.T) {
	tests := []struct {
		name string
		make func(file string) error
		want string
	}{
		{"directory", func(f string) error { return os.Mkdir(f, 0o755) }, "not a regular file"},
		{"pipe", func(f string) error { return makePipe(f) }, "not a regular file"},
		{"dangling link", func(f string) error { return os.Symlink("nowhere", f) }, "the file is not there"},
		{"loop", func(f string) error { return os.Symlink(filepath.Base(f), f) }, "too many levels"},
		{"huge", func(f string) error {
			if err := os.WriteFile(f, nil, 0o644); err != nil {
				return err
			}
			return os.Truncate(f, 10<<30)
		}, "larger than 1048576 bytes"},
		{"NUL", func(f string) error { return os.WriteFile(f, []byte("serve:\n  addr: a\x00b\n"), 0o644) }, "ken.yaml:2: the text holds a NUL byte"},
		{"not UTF-8", func(f string) error { return os.WriteFile(f, []byte("serve: \xff\n"), 0o644) }, "ken.yaml:1: the text is not valid UTF-8"},
		{"indentation", func(f string) error { return os.WriteFile(f, []byte("serve:\n  addr: a:1\n watch: true\n"), 0o644) }, "ken.yaml:3: "},
		{"two keys", func(f string) error { return os.WriteFile(f, []byte("serve:\n  addr: a:1\nserve:\n"), 0o644) }, "ken.yaml:3: "},
		{"bomb", func(f string) error { return os.WriteFile(f, []byte("a: &a [x]\nb: [*a, *a]\n"), 0o644) }, "anchors"},
		{"deep", func(f string) error { return os.WriteFile(f, []byte(strings.Repeat("[", 5000)), 0o644) }, "nested deeper"},
		{"wide", func(f string) error { return os.WriteFile(f, []byte(strings.Repeat("k: 1\n", 60_000)), 0o644) }, "more than 40000 keys"},
	}
	for _, tt := range tests {
		for _, layer := range []string{"user", "project", "explicit"} {
			t.Run(tt.name+"/"+layer, func(t *testing.T) {
				places, _, work := at(t)
				dir, explicit := map[string]string{"user": places.Home, "project": places.Project, "explicit": work}[layer], ""
				if err := os.MkdirAll(dir, 0o755); err != nil {
					t.Fatal(err)
				}
				if err := tt.make(filepath.Join(dir, "ken.yaml")); errors.Is(err, errors.ErrUnsupported) {
					t.Skip("this system cannot make one: ", err)
				} else if err != nil {
					t.Fatal(err)
				}
				if layer == "explicit" {
					explicit = filepath.Join(dir, "ken.yaml")
				}
				_, err := Load(places, explicit)
				var refused *Error
				if !errors.As(err, &refused) || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("Load = %v, want %q", err, tt.want)
				}
			})
		}
	}
	t.Run("home is a file", func(t *testing.T) {
		places, _, _ := at(t)
		write(t, places.Home, "")
		if _, err := Load(places, ""); err == nil || !strings.Contains(err.Error(), "not a directory") {
			t.Errorf("Load = %v, want that it is not a directory", err)
		}
	})
}

func TestLoadLenientBytes(t *testing.T) {
	places, _, _ := at(t)
	for _, text := range []string{
		"\ufeffserve:\r\n  addr: localhost:1\r\n", "---\nserve: {addr: 'localhost:1'}\n...\n", "{\"serve\":\t{\"addr\": \"localhost:1\"}}",
		"serve:\n    \"addr\": \"localhost:1\" # here\ncatalog:\ndiscovery: ~\n",
	} {
		write(t, filepath.Join(places.Home, "ken.yaml"), text)
		if c, err := Load(places, ""); err != nil || c.Serve.Addr != "localhost:1" {
			t.Errorf("Load of %q = %q, %v, want localhost:1", text, c.Serve.Addr, err)
		}
	}
}

func TestSettingsMarshal(t *testing.T) {
	raw, err := json.Marshal(Default().Settings()[3])
	want := `{"key":"capabilities.maxTokens","value":"1500","origin":"default","doc":"Maximum tokens of all cards of one prompt."}`
	if err != nil || string(raw) != want {
		t.Errorf("Marshal = %s, %v, want %s", raw, err, want)
	}
}

func TestFile(t *testing.T) {
	p, _, _ := at(t)
	if got, err := File(p); err != nil || got != filepath.Join(p.Home, "ken.yaml") {
		t.Errorf("File = %s, %v, want ken.yaml although it is not there", got, err)
	}
	write(t, filepath.Join(p.Home, "ken.json"), "{}")
	if got, err := File(p); err != nil || got != filepath.Join(p.Home, "ken.json") {
		t.Errorf("File = %s, %v, want ken.json", got, err)
	}
	write(t, filepath.Join(p.Home, "ken.yaml"), "")
	if got, err := File(p); err == nil {
		t.Errorf("File = %s with both, want an error", got)
	}
}
