package opener

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/config"
	"ken/internal/find/outcome"
	"ken/internal/secret"
	"ken/llm"
	"ken/llm/llmtest"
)

// A bench is an Opener with what it was made of.
type bench struct {
	*Opener
	dir      string
	settings *config.Config // those in force
	secrets  *secret.Store
	held     []string // what the redactor was told
	log      bytes.Buffer
}

// newBench makes an Opener whose provider "lab" speaks wire at url.
func newBench(t *testing.T, wire, url string, change ...func(*Config)) *bench {
	t.Helper()
	settings := config.Default()
	settings.Model = "lab/Any-1"
	settings.Providers = []config.Provider{{Name: "lab", Wire: wire, URL: url, CondenseAt: -1}}
	b := &bench{dir: t.TempDir(), settings: &settings}
	b.secrets = secret.New(secret.Config{Dir: b.dir})
	cfg := Config{
		StateDir: filepath.Join(b.dir, "state"), Settings: func() *config.Config { return b.settings }, Secrets: b.secrets,
		Hold: func(values ...string) { b.held = append(b.held, values...) }, Log: slog.New(slog.NewTextHandler(&b.log, nil)),
	}
	for _, f := range change {
		f(&cfg)
	}
	b.Opener = New(cfg)
	return b
}

// withKey gives the provider a key.
func (b *bench) withKey(t *testing.T, key string) {
	t.Helper()
	if err := b.secrets.Set("LAB_KEY", secret.Of(key)); err != nil {
		t.Fatal(err)
	}
	b.set(func(c *config.Config) { c.Providers[0].Key = "LAB_KEY" })
}

// set puts other settings in force.
func (b *bench) set(change func(*config.Config)) {
	now := *b.settings
	now.Providers = slices.Clone(now.Providers)
	change(&now)
	b.settings = &now
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// asked has a model answer and returns its text.
func asked(t *testing.T, m llm.Model) string {
	t.Helper()
	var b strings.Builder
	for c, err := range m.Generate(t.Context(), llm.Request{Model: "Any-1", Messages: []llm.Message{{Role: llm.User, Blocks: []llm.Block{{Text: "hello"}}}}}) {
		if err != nil {
			t.Fatal(err)
		}
		b.WriteString(c.Text)
	}
	return b.String()
}

// TestSettingsApplyToTheNextTurn: each turn opens the model, with the key and the
// headers, that the settings and the secrets hold when it begins. Keys and
// headers are made known to the redactor.
func TestSettingsApplyToTheNextTurn(t *testing.T) {
	server := llmtest.Serve(t, llmtest.Chat, llmtest.Always(llmtest.Reply{Text: "Hello."}))
	b := newBench(t, config.WireChat, server.URL())
	b.withKey(t, "first-key")
	if err := b.secrets.Set("TEAM", secret.Of("team-token")); err != nil {
		t.Fatal(err)
	}
	b.set(func(c *config.Config) { c.Providers[0].Headers = map[string]string{"X-Team": "${secret:TEAM}"} })
	first, err := b.ForTurn(nil)
	if err != nil {
		t.Fatal(err)
	}
	if first.Name != "Any-1" || first.Ref != "lab/Any-1" || first.MaxTokens != b.settings.Chat.MaxTokens {
		t.Errorf("ForTurn = %+v", first)
	}
	asked(t, first)
	b.withKey(t, "second-key")
	b.set(func(c *config.Config) { c.Model, c.Chat.Effort = "lab/other", "high" })
	second, err := b.ForTurn(nil)
	if err != nil {
		t.Fatal(err)
	}
	if second.Name != "other" || second.Effort != "high" || b.Name() != "lab/other" {
		t.Errorf("after the settings changed, ForTurn = %+v and Name() = %s", second, b.Name())
	}
	asked(t, second)
	var got []string
	for _, r := range server.Requests() {
		got = append(got, r.Header.Get("Authorization")+" "+r.Header.Get("X-Team"))
	}
	if want := []string{"Bearer first-key team-token", "Bearer second-key team-token"}; !slices.Equal(got, want) {
		t.Errorf("requests had %q, want %q", got, want)
	}
	for _, v := range []string{"first-key", "second-key", "team-token"} {
		if !slices.Contains(b.held, v) {
			t.Errorf("the redactor does not know %s", v)
		}
	}
}

// TestModelsThatCannotBeOpened: the error names what is wrong and how to fix it.
func TestModelsThatCannotBeOpened(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*config.Config)
		want   string
	}{
		{"none", func(c *config.Config) { c.Model = "" }, "ken model set"},
		{"no provider", func(c *config.Config) { c.Model = "nobody/x" }, "fix model, or providers, in ken.yaml"},
		{"a header's secret", func(c *config.Config) { c.Providers[0].Headers = map[string]string{"X": "${secret:ABSENT}"} }, "fix providers.lab.headers"},
		{"a table", func(c *config.Config) { c.Chat.ModelTable = "/nowhere/models.yaml" }, "fix it, or chat.modelTable in ken.yaml"},
		{"the summarizer", func(c *config.Config) { c.Chat.CondenseModel = "nobody/x" }, "nobody"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, config.WireChat, "http://127.0.0.1:1")
			b.set(c.change)
			_, err := b.ForTurn(nil)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("ForTurn = %v, want %q", err, c.want)
			}
			if errors.Is(err, ErrNoModel) != (c.name == "none") {
				t.Errorf("ForTurn = %v; ErrNoModel means that none is named", err)
			}
			if c.name == "the summarizer" {
				return // the model itself is in order
			}
			if check := b.Check(); check == nil || check.Error() != err.Error() {
				t.Errorf("Check() = %v, want %v", check, err)
			}
			if row := b.Row(); row.Window != 0 {
				t.Errorf("Row() = %+v, want none", row)
			}
		})
	}
}

// TestGivenModel: a model of the program's own answers whatever the settings
// name; plugins stand around it and around the summarizer.
func TestGivenModel(t *testing.T) {
	server := llmtest.Serve(t, llmtest.Chat, llmtest.Always(llmtest.Reply{Text: "A summary."}))
	wrapped := 0
	b := newBench(t, config.WireChat, server.URL(), func(c *Config) {
		c.Given = &llmtest.Fake{Script: llmtest.Always(llmtest.Reply{Text: "Given."})}
		c.Wrap = func(m llm.Model) llm.Model { wrapped++; return m }
	})
	b.withKey(t, "k")
	b.set(func(c *config.Config) { c.Model, c.Chat.CondenseModel = "", "lab/small" })
	turn, err := b.ForTurn(nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := asked(t, turn.Model); got != "Given." || turn.Ref != "" || turn.Row.Window == 0 {
		t.Errorf("the model says %q, with %+v", got, turn)
	}
	if got := asked(t, turn.Condenser); got != "A summary." {
		t.Errorf("the summarizer says %q", got)
	}
	if wrapped != 2 {
		t.Errorf("Wrap was called %d times, want 2", wrapped)
	}
	if m, err := b.Model(); err != nil || asked(t, m) != "Given." || wrapped != 3 {
		t.Errorf("Model() = %v, %v", m, err)
	}
	if text, err := b.Reach(t.Context()); err != nil || text != "the program's own model" {
		t.Errorf("Reach() = %q, %v", text, err)
	}
}

// TestReach: the check finds a server that does not answer, a key that is missing
// or rejected, and a model that the server does not list. It sends the key as
// each wire does.
func TestReach(t *testing.T) {
	var path string
	var header http.Header
	status := http.StatusOK
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path, header = r.URL.Path, r.Header
		w.WriteHeader(status)
		fmt.Fprint(w, `{"data":[{"id":"Any-1"},{"id":"tagged:latest"}]}`)
	}))
	defer srv.Close()
	for _, c := range []struct{ wire, base, path, header, value string }{
		{config.WireChat, "", "/models", "Authorization", "Bearer k1"},
		{config.WireResponses, "/v1/", "/v1/models", "Authorization", "Bearer k1"},
		{config.WireMessages, "", "/v1/models", "X-Api-Key", "k1"},
		{config.WireGemini, "", "/v1beta/models", "X-Goog-Api-Key", "k1"},
		{config.WireGemini, "/v1beta/", "/v1beta/models", "X-Goog-Api-Key", "k1"},
	} {
		b := newBench(t, c.wire, srv.URL+c.base)
		b.set(func(s *config.Config) { s.Providers[0].Key = "LAB_KEY" })
		if _, err := b.Reach(t.Context()); err == nil || !strings.Contains(err.Error(), "ken secret set LAB_KEY") {
			t.Errorf("%s without its key: Reach = %v", c.wire, err)
		}
		b.withKey(t, "k1")
		text, err := b.Reach(t.Context())
		if err != nil || !strings.HasPrefix(text, "lab/Any-1 answers at "+srv.URL) {
			t.Errorf("%s: Reach = %q, %v", c.wire, text, err)
		}
		if path != c.path || header.Get(c.header) != c.value {
			t.Errorf("%s asked %s with %s: %q, want %s with %q", c.wire, path, c.header, header.Get(c.header), c.path, c.value)
		}
	}

	b := newBench(t, config.WireChat, srv.URL)
	for name, listed := range map[string]bool{"Any-1": true, "tagged": true, "absent": false} {
		b.set(func(c *config.Config) { c.Model = "lab/" + name })
		if _, err := b.Reach(t.Context()); (err == nil) != listed || !listed && !strings.Contains(err.Error(), "it lists Any-1, tagged:latest") {
			t.Errorf("Reach of %s = %v", name, err)
		}
	}
	if doubt := b.Doubt(t.Context(), "chat.steps"); doubt != "" {
		t.Errorf("a setting that is not about models is doubted: %s", doubt)
	}
	b.set(func(c *config.Config) { c.Model = "lab/absent" })
	if doubt := b.Doubt(t.Context(), "model"); !strings.Contains(doubt, "does not list this model") || !strings.HasSuffix(doubt, "ken chat runs commands only") {
		t.Errorf("Doubt = %q", doubt)
	}
	status = http.StatusUnauthorized
	if _, err := b.Reach(t.Context()); err == nil || !strings.Contains(err.Error(), srv.URL) {
		t.Errorf("with a rejected key Reach = %v", err)
	}
	srv.Close()
	if _, err := b.Reach(t.Context()); err == nil || !strings.Contains(err.Error(), srv.URL) {
		t.Errorf("without a server Reach = %v", err)
	}
	b.set(func(c *config.Config) { c.Model = "" })
	if text, err := b.Reach(t.Context()); text != "" || err != nil || b.Doubt(t.Context(), "model") != "" {
		t.Errorf("without a model Reach = %q, %v; want nothing", text, err)
	}
}

// TestPrices: a person's own price counts at once, for what is asked by any
// name, and after a restart.
func TestPrices(t *testing.T) {
	b := newBench(t, config.WireChat, "http://127.0.0.1:1")
	if p, known := b.Price("lab/Any-1"); known {
		t.Fatalf("Price = %+v before anybody said it", p)
	}
	if err := b.SetPrice(outcome.Price{Model: "lab/Any-1", Input: 2, Output: 8, CachedRead: 0.5, CacheWrite: 3}); err != nil {
		t.Fatal(err)
	}
	if err := b.SetPrice(outcome.Price{Model: "other", Input: 1}); err != nil {
		t.Fatal(err)
	}
	for _, o := range []*Opener{b.Opener, New(b.cfg)} {
		p, known := o.Price("lab/any-1")
		if !known || !p.Own || p.Input != 2 || p.Output != 8 || p.CachedRead != 0.5 || p.CacheWrite != 3 || p.Source != "your own" {
			t.Errorf("Price = %+v, %v; want the person's own", p, known)
		}
		if row := o.Row(); row.Price.Input != 2 {
			t.Errorf("turns are priced at %+v, want the person's own", row.Price)
		}
		list, err := o.Prices()
		if err != nil || len(list) != 2 || list[0].Model != "lab/Any-1" || list[1].Model != "other" {
			t.Errorf("Prices = %+v, %v", list, err)
		}
	}

	file := b.pricesFile()
	many := map[string]any{}
	for i := range 1000 {
		many[fmt.Sprint("m", i)] = struct{}{}
	}
	text, err := json.Marshal(many)
	if err != nil {
		t.Fatal(err)
	}
	write(t, file, string(text))
	if err := b.SetPrice(outcome.Price{Model: "one more", Input: 1}); capability.KindOf(err) != capability.Denied {
		t.Errorf("SetPrice beside a thousand = %v, want Denied", err)
	}
	if err := b.SetPrice(outcome.Price{Model: "m7", Input: 1}); err != nil {
		t.Errorf("SetPrice of one that is there = %v", err)
	}
	write(t, file, "{")
	if _, err := b.Prices(); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("Prices of a broken file = %v, want its name", err)
	}
	if err := b.SetPrice(outcome.Price{Model: "x", Input: 1}); err == nil {
		t.Error("SetPrice writes over a file that it cannot read")
	}
}

// TestPricesOfAnotherProcess: a price that somebody else wrote, and a row of the
// person's own table, count for the next turn; a table that is wrong leaves the
// one before, and the log and the check say so.
func TestPricesOfAnotherProcess(t *testing.T) {
	b := newBench(t, config.WireChat, "http://127.0.0.1:1")
	table := filepath.Join(b.dir, "models.yaml")
	row := "models:\n  - {pattern: mine, window: 1000, price: {input: 5, output: 6}}\n"
	write(t, table, row)
	b.set(func(c *config.Config) { c.Model, c.Chat.ModelTable = "openai/mine", table })
	price := func() float64 {
		p, _ := b.Price("openai/mine")
		return p.Input
	}
	if p := price(); p != 5 {
		t.Fatalf("the row of the table gives %v, want 5", p)
	}
	write(t, table, strings.Replace(row, "input: 5", "input: 50", 1))
	if p := price(); p != 50 {
		t.Errorf("after a change of the table the price is %v, want 50", p)
	}
	write(t, table, "models: [")
	if p := price(); p != 50 {
		t.Errorf("with a wrong table the price is %v, want the one before", p)
	}
	if _, err := b.Reach(t.Context()); err == nil || !strings.Contains(err.Error(), table) {
		t.Errorf("with a wrong table Reach = %v, want its name", err)
	}
	if !strings.Contains(b.log.String(), table) {
		t.Errorf("the log says %q, want what is wrong with the table", b.log.String())
	}
	write(t, table, row)
	other := New(b.cfg)
	if err := other.SetPrice(outcome.Price{Model: "openai/mine", Input: 7, Output: 8}); err != nil {
		t.Fatal(err)
	}
	if p := price(); p != 7 {
		t.Errorf("after another process wrote one the price is %v, want 7", p)
	}
}
