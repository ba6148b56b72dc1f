package provider

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"ken/llm"
)

// TestList: it returns the models that a server lists, or its error.
func TestList(t *testing.T) {
	for _, tt := range []struct {
		name   string
		status int
		body   string
		want   []string
		kind   llm.Kind // of the error; 0: none
	}{
		{"openai", 200, `{"data":[{"id":"a"},{"id":"b"}]}`, []string{"a", "b"}, 0},
		{"gemini", 200, `{"models":[{"name":"models/a"}]}`, []string{"models/a"}, 0},
		{"something else", 200, `<html>`, nil, 0},
		{"no list", 404, `no`, nil, 0},
		{"a wrong key", 401, `bad key sesame`, nil, llm.Auth},
		{"broken", 502, `oops`, nil, llm.Overloaded},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/v1/models" || r.Header.Get("Authorization") != "Bearer sesame" {
					t.Errorf("%s %s with %v, want the list and the key", r.Method, r.URL, r.Header)
				}
				w.WriteHeader(tt.status)
				_, _ = w.Write([]byte(tt.body))
			}))
			defer s.Close()
			got, err := List(t.Context(), Config{Name: "lab", BaseURL: s.URL + "/v1"}, "/models", http.Header{"Authorization": {"Bearer sesame"}})
			e, _ := errors.AsType[*llm.Error](err)
			if !slices.Equal(got, tt.want) || (e != nil) != (tt.kind != 0) || e != nil && e.Kind != tt.kind {
				t.Errorf("List() = %v, %v, want %v and kind %v", got, err, tt.want, tt.kind)
			}
			if err != nil && strings.Contains(err.Error(), "sesame") {
				t.Errorf("the error holds the key: %v", err)
			}
		})
	}
}
