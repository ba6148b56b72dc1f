package opener

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"ken/internal/config"
	"ken/internal/secret"
)

// modelServer lists models to callers that have the key, or to all if it is empty.
func modelServer(t *testing.T, key string, seen *[]http.Header) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*seen = append(*seen, r.Header)
		if key != "" && r.Header.Get("Authorization") != "Bearer "+key {
			http.Error(w, `{"error":{"message":"Incorrect API key"}}`, http.StatusUnauthorized)
			return
		}
		fmt.Fprint(w, `{"data":[{"id":"small"},{"id":"gpt-5"}]}`)
	}))
	t.Cleanup(s.Close)
	return s
}

// TestChoices: servers on this machine are asked without any secret, and one that
// does not answer is not waited for.
func TestChoices(t *testing.T) {
	var seen []http.Header
	s := modelServer(t, "", &seen)
	stop := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-stop }))
	defer slow.Close()
	defer close(stop)
	b := newBench(t, config.WireChat, s.URL)
	b.withKey(t, "not-for-a-probe")
	b.set(func(c *config.Config) {
		c.Providers[0].Headers = map[string]string{"X-Team": "${secret:LAB_KEY}"}
		c.Providers = append(c.Providers, config.Provider{Name: "slow", Wire: config.WireChat, URL: slow.URL})
	})
	got := map[string]Choice{}
	for _, c := range b.Choices(t.Context()) {
		got[c.Name] = c
	}
	lab := got["lab"]
	if !lab.Answers || !lab.Local || len(lab.Models) != 2 || lab.Models[0].Ref != "lab/small" || lab.KeySet != "stored" {
		t.Errorf("lab = %+v", lab)
	}
	if c := got["slow"]; c.Answers || !c.Local {
		t.Errorf("slow = %+v", c)
	}
	if c := got["anthropic"]; c.Local || c.KeySet != "" || c.Key != "ANTHROPIC_API_KEY" {
		t.Errorf("anthropic = %+v", c)
	}
	for _, h := range seen {
		for name, values := range h {
			if strings.Contains(strings.Join(values, " "), "not-for-a-probe") {
				t.Errorf("a probe sent the key in %s", name)
			}
		}
	}
}

// TestSetKey: a key is stored after the provider has accepted it, and a rejected one
// is not.
func TestSetKey(t *testing.T) {
	var seen []http.Header
	s := modelServer(t, "right", &seen)
	b := newBench(t, config.WireChat, s.URL)
	b.set(func(c *config.Config) { c.Providers[0].Key = "LAB_KEY" })
	if _, err := b.SetKey(t.Context(), "lab", secret.Of("wrong")); err == nil || strings.Contains(err.Error(), "wrong") {
		t.Errorf("a rejected key: %v", err)
	}
	if b.secrets.Has("LAB_KEY") {
		t.Error("a rejected key was stored")
	}
	list, err := b.SetKey(t.Context(), "lab", secret.Of("right"))
	if err != nil || len(list) != 2 {
		t.Fatalf("SetKey = %v, %v", list, err)
	}
	if v, err := b.secrets.Lookup("LAB_KEY"); err != nil || v.Reveal() != "right" {
		t.Errorf("stored = %v, %v", v, err)
	}
	if _, err := b.Offers(t.Context(), "lab", secret.Value{}); err != nil {
		t.Errorf("Offers with the stored key: %v", err)
	}
	if _, err := b.SetKey(t.Context(), "ollama", secret.Of("x")); err == nil || !strings.Contains(err.Error(), "needs no key") {
		t.Errorf("a provider without a key: %v", err)
	}
	if _, err := b.Offers(t.Context(), "nobody", secret.Value{}); err == nil || !strings.Contains(err.Error(), "unknown provider") {
		t.Errorf("an unknown provider: %v", err)
	}
}
