package source

import (
	"slices"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/know/source/openapi"
	"ken/internal/testkit/sourcetest"
)

const apiDocument = `{"openapi": "3.0.0", "info": {"title": "Shop", "version": "1"}, "servers": [{"url": "/v1"}],
 "paths": {"/a~b/{id}": {"get": {"operationId": "getItem", "parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "string"}}]}},
  "/other": {"servers": [{"url": "https://other.example"}], "post": {"operationId": "other"}}}}`

// TestAPIFolder: the operations of a folder with API.yaml can be called while the
// document is the one that was accepted, and never otherwise.
func TestAPIFolder(t *testing.T) {
	digest := openapi.Digest([]byte(apiDocument))
	for _, tt := range []struct {
		name, marker, document string
		url, unavailable       string // of getItem
		problem                string
	}{
		{"pinned", "document: openapi.json\nsha256: " + digest + "\nserver: https://shop.example/base/\nfrom: /tmp/x\n", apiDocument, "https://shop.example/base/a~b/{id}", "", ""},
		{"no server", "document: openapi.json\nsha256: " + digest + "\n", apiDocument, "/v1/a~b/{id}", "no http address", "no-server"},
		{"server with a password", "document: openapi.json\nsha256: " + digest + "\nserver: https://me:pw@shop.example\n", apiDocument, "/v1/a~b/{id}", "no http address", "bad-value"},
		{"changed", "document: openapi.json\nsha256: " + digest + "\nserver: https://shop.example\n", strings.Replace(apiDocument, "other.example", "evil.example", 1), "", "changed since it was added", "changed-document"},
		{"no digest", "document: openapi.json\nserver: https://shop.example\n", apiDocument, "", "nobody accepted", "changed-document"},
		{"no document", "sha256: " + digest + "\n", apiDocument, "-", "", "missing-key"},
		{"document elsewhere", "document: ../openapi.json\nsha256: " + digest + "\n", apiDocument, "-", "", "escape"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			sourcetest.Write(t, dir, "shop/API.yaml", tt.marker)
			sourcetest.Write(t, dir, "shop/openapi.json", tt.document)
			tree, b := load(t, TreeConfig{Path: dir, Trust: capability.TrustUser})
			if tt.url == "-" {
				if len(b.Capabilities) > 0 || len(b.Problems) == 0 {
					t.Fatalf("got %s, problems %v", sourcetest.IDs(b), b.Problems)
				}
				return
			}
			if sourcetest.IDs(b) != "tool:getItem tool:other" {
				t.Fatalf("got %s, problems %v", sourcetest.IDs(b), b.Problems)
			}
			c := b.Capabilities[0]
			if tt.url != "" && c.Run.URL != tt.url || !strings.Contains(c.Unavailable, tt.unavailable) || tt.unavailable == "" && c.Unavailable != "" {
				t.Errorf("URL %q, unavailable %q", c.Run.URL, c.Unavailable)
			}
			if strings.Contains(tt.problem, "changed") && b.Capabilities[1].Unavailable == "" {
				t.Errorf("other can be called")
			}
			if (tt.problem == "") != (len(b.Problems) == 0) || tt.problem != "" && !slices.ContainsFunc(b.Problems, func(p capability.Problem) bool { return p.Code == tt.problem }) {
				t.Errorf("problems %v, want %s", b.Problems, tt.problem)
			}
			if d, err := tree.Detail(t.Context(), c); err != nil || !strings.Contains(string(d.Schema), `"id"`) {
				t.Errorf("detail: %s, %v", d.Schema, err)
			}
		})
	}
}
