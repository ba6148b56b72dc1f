package servercard

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

// TestCard: the card and the catalog have what their specification requires, and
// the catalog leads to the card.
func TestCard(t *testing.T) {
	c := Config{Version: "1.2.3", Protocols: []string{"2026-07-28"}}
	get := func(host, path, proto string) (*http.Response, map[string]any) {
		t.Helper()
		r := httptest.NewRequest(http.MethodGet, "http://"+host+path, nil)
		r.Header.Set("X-Forwarded-Proto", proto)
		w := httptest.NewRecorder()
		c.ServeHTTP(w, r)
		var out map[string]any
		if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil {
			t.Fatal(err)
		}
		return w.Result(), out
	}
	for _, test := range []struct{ host, proto, name, urn, root string }{
		{"ken.example.com", "https", "com.example.ken/ken", "urn:air:ken.example.com:ken", "https://ken.example.com"},
		{"127.0.0.1:4000", "", "localhost/ken", "urn:air:localhost:ken", "http://127.0.0.1:4000"},
		{"[::1]:4000", "", "localhost/ken", "urn:air:localhost:ken", "http://[::1]:4000"},
	} {
		res, list := get(test.host, CatalogPath, test.proto)
		first := list["entries"].([]any)[0].(map[string]any)
		if list["specVersion"] != "draft" || first["identifier"] != test.urn || first["type"] != cardType || first["url"] != test.root+CardPath {
			t.Errorf("catalog of %s = %v", test.host, list)
		}
		if res.Header.Get("Access-Control-Allow-Origin") != "*" || !strings.Contains(res.Header.Get("Cache-Control"), "max-age") {
			t.Errorf("headers of %s = %v", test.host, res.Header)
		}
		res, card := get(test.host, CardPath, test.proto)
		remote := card["remotes"].([]any)[0].(map[string]any)
		if card["name"] != test.name || !regexp.MustCompile(`^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$`).MatchString(test.name) || card["version"] != "1.2.3" || card["$schema"] != schema ||
			remote["type"] != "streamable-http" || remote["url"] != test.root+"/mcp" || res.Header.Get("Content-Type") != cardType {
			t.Errorf("card of %s = %v, %v", test.host, card, res.Header)
		}
		if d := card["description"].(string); len(d) == 0 || len(d) > 100 {
			t.Errorf("the description has %d characters, want 1 to 100", len(d))
		}
		if header := remote["headers"].([]any)[0].(map[string]any); header["name"] != "Authorization" || header["isSecret"] != true || header["value"] != nil {
			t.Errorf("header = %v", header)
		}
	}
}
