package app

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"ken/internal/door"
	"ken/internal/find/ranking"
)

// openOffice opens Ken over a small catalog with a configuration.
func openOffice(t *testing.T, home, settings, key string) (*App, error) {
	t.Helper()
	catalog := filepath.Join(home, "office.jsonl")
	lines := `{"id":"news_search","name":"news_search","description":"Searches current headlines from newspapers worldwide."}
{"id":"image_generate","name":"image_generate","description":"Creates a picture from a text prompt."}
{"id":"calendar_add_event","name":"calendar_add_event","description":"Adds an appointment to the calendar."}
{"id":"stock_quote","name":"stock_quote","description":"Gives the price of a share on the exchange."}
`
	file := filepath.Join(home, "settings.yaml")
	write(t, catalog, lines)
	write(t, file, settings)
	a, err := Open(t.Context(), Config{Dir: home, ConfigFile: file, Catalogs: []string{catalog}, Getenv: func(name string) string { return map[string]string{"KEN_HOME": home, "NOMIC_KEY": key}[name] }})
	if err == nil {
		t.Cleanup(func() {
			if err := a.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	return a, err
}

// found returns the ids of what a message finds, best first.
func found(t *testing.T, a *App, message string) []string {
	t.Helper()
	sel, err := a.Door.Find(t.Context(), a.View(), door.Query{Text: message})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, b := range sel.Briefs {
		out = append(out, string(b.ID))
	}
	return out
}

// serveEmbeddings speaks the interface of OpenAI, Ollama and others: texts about
// pictures lie in one direction, all others in another.
func serveEmbeddings(t *testing.T, asked *atomic.Int64) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			Model string
			Input []string
		}
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil || r.URL.Path != "/v1/embeddings" || in.Model != "nomic" || r.Header.Get("Authorization") != "Bearer s3cret" {
			http.Error(w, `{"error":{"message":"bad request"}}`, http.StatusBadRequest)
			return
		}
		type item struct {
			Index     int       `json:"index"`
			Embedding []float32 `json:"embedding"`
		}
		var out struct {
			Data []item `json:"data"`
		}
		for i, text := range in.Input {
			asked.Add(1)
			v := make([]float32, 64)
			for k := range v {
				v[k] = 0.1 + float32((k*7+len(text))%5)*0.02
				if strings.Contains(text, "picture") || strings.Contains(text, "draw") {
					v[k] = float32(1 - 2*(k%2))
				}
			}
			out.Data = append(out.Data, item{i, v})
		}
		if err := json.NewEncoder(w).Encode(out); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL + "/v1"
}

// TestEmbeddingService: a service is used where one is configured, and asked
// for the vector of a capability once, whatever is restarted.
func TestEmbeddingService(t *testing.T) {
	var asked atomic.Int64
	home := t.TempDir()
	settings := "discovery:\n  embeddingModelId: nomic\n  embeddingUrl: " + serveEmbeddings(t, &asked) + "\n  embeddingKeyEnv: NOMIC_KEY\n  embeddingTimeout: 5s\n"
	for round := range 2 {
		a, err := openOffice(t, home, settings, "s3cret")
		if err != nil {
			t.Fatal(err)
		}
		a.View().List()
		if n := asked.Load(); n != 0 {
			t.Fatalf("round %d: opening and listing asked the service for %d texts, want none", round, n)
		}
		// Vectors are made beside everything else; who answers once waits for them.
		a.Vectors.Wait(t.Context())
		if _, n := ranking.IndexOf(a.Catalog.Snapshot()).Segment.Vectors(); n != 4 {
			t.Fatalf("round %d: %d of 4 capabilities have vectors; the service was asked for %d texts", round, n, asked.Load())
		}
		if got := found(t, a, "draw me a cat"); len(got) == 0 || !strings.HasSuffix(got[0], "image_generate") {
			t.Errorf("Find gives %v, want image_generate", got)
		}
		if round == 0 {
			asked.Store(0)
		}
	}
	// The message, and the one probe that tells whether the model is the same.
	if n := asked.Load(); n > 2 {
		t.Errorf("after a restart the service was asked for %d texts, want none of a capability", n)
	}
}

func TestEmbeddingSettingsAreChecked(t *testing.T) {
	for settings, want := range map[string]string{
		"discovery: {embeddingModelId: nomic}\n":                                                                 "discovery.embeddingUrl does not say where",
		"discovery: {embeddingModelId: None}\n":                                                                  "write none",
		"discovery: {embeddingUrl: 'http://127.0.0.1:9/v1'}\n":                                                   "discovery.embeddingModelId names no model",
		"discovery: {embeddingModelId: nomic, embeddingUrl: 'ftp://x'}\n":                                        "not one of http or https",
		"discovery: {embeddingModelId: nomic, embeddingUrl: 'http://127.0.0.1:9/v1', embeddingKeyEnv: NO_KEY}\n": "NO_KEY, which is empty",
	} {
		if _, err := openOffice(t, t.TempDir(), settings, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Open with %s = %v, want an error with %q", settings, err, want)
		}
	}
}
