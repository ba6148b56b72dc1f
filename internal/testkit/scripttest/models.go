package scripttest

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"

	"github.com/rogpeppe/go-internal/testscript"
)

// models KEY NAME…: starts a server that lists models to those who have the key, or
// to all where it is -, and sets $MODELS to its address.
func startModels(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: models KEY NAME…")
	}
	key, names := args[0], args[1:]
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if key != "-" && r.Header.Get("Authorization") != "Bearer "+key {
			http.Error(w, `{"error":{"message":"Incorrect API key"}}`, http.StatusUnauthorized)
			return
		}
		type one struct {
			ID string `json:"id"`
		}
		var list []one
		for _, name := range names {
			list = append(list, one{name})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"data": list}) // the client is gone
	}))
	ts.Defer(server.Close)
	ts.Setenv("MODELS", server.URL+"/v1")
}
