//go:build unix

package scripttest

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"ken/internal/testkit/graphqltest"
)

// startAPI starts an API that answers with the request that it was sent; $API is
// its address, and $API in the files that are named becomes it.
//
//	apiserver FILE…
func startAPI(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("usage: apiserver FILE…")
	}
	server := httptest.NewServer(http.HandlerFunc(serveAPI))
	ts.Defer(server.Close)
	ts.Setenv("API", server.URL)
	for _, name := range args {
		ts.Check(os.WriteFile(ts.MkAbs(name), []byte(strings.ReplaceAll(ts.ReadFile(name), "$API", server.URL)), 0o644))
	}
}

func serveAPI(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	switch {
	case strings.HasSuffix(r.URL.Path, "/openapi.json"):
		// As frameworks serve it: without an address of its own.
		extra := ""
		if r.URL.Query().Get("v") == "2" {
			extra = `,"/cats": {"get": {"operationId": "listCats", "responses": {}}}`
		}
		fmt.Fprintf(w, `{"openapi": "3.1.0", "info": {"title": "Framework Thing", "version": "1"}, "servers": [{"url": "/base"}],
			"paths": {"/dogs/{id}": {"get": {"operationId": "getDog", "parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "string"}}], "responses": {}}}%s}}`, extra)
	case strings.HasSuffix(r.URL.Path, "/page.html"):
		fmt.Fprint(w, "<html><title>Not found</title></html>")
	case strings.HasSuffix(r.URL.Path, "/token"):
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"access_token":"fetched-4711-token","expires_in":3600}`)
	case strings.HasSuffix(r.URL.Path, "/away"):
		http.Redirect(w, r, "http://localhost:1/elsewhere", http.StatusFound)
	case strings.HasSuffix(r.URL.Path, "/metadata"):
		http.Redirect(w, r, "http://169.254.169.254/latest", http.StatusFound)
	case strings.HasSuffix(r.URL.Path, "/gone"):
		http.Error(w, `{"error":"it is gone"}`, http.StatusGone)
	case strings.HasSuffix(r.URL.Path, "/bomb"):
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		zeros := make([]byte, 1<<20)
		for range 64 {
			z.Write(zeros)
		}
		z.Close()
	case strings.HasSuffix(r.URL.Path, "/large"):
		items := make([]map[string]any, 8000)
		for i := range items {
			items[i] = map[string]any{"id": i, "name": fmt.Sprintf("item %d", i), "text": strings.Repeat("long ", 50)}
		}
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(map[string]any{"items": items, "total": len(items)})
	default:
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(map[string]any{
			"method": r.Method, "path": r.URL.EscapedPath(), "query": r.URL.RawQuery, "authorization": r.Header.Get("Authorization"),
			"key": r.Header.Get("X-Key"), "type": r.Header.Get("Content-Type"), "body": string(body),
		})
	}
}

// startGraphQL serves a GraphQL schema, and sets GRAPHQL to its address. With a
// token, that must be sent.
//
//	graphql FILE [TOKEN]
func startGraphQL(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: graphql FILE [TOKEN]")
	}
	s, err := graphqltest.New(ts.ReadFile(args[0]))
	ts.Check(err)
	if len(args) == 2 {
		s.Token = args[1]
	}
	server := httptest.NewServer(s)
	ts.Defer(server.Close)
	ts.Setenv("GRAPHQL", server.URL+"/graphql")
}
