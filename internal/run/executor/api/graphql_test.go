package api

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"ken/capability"
)

// graph adds an operation of a GraphQL API.
func (h *house) graph(kind, field, arguments, selection string) *capability.Capability {
	c := h.op(field, "POST", "/graphql", map[string]string{"operation": kind, "field": field, "arguments": arguments, "selection": selection})
	c.Run.Runner, c.Origin.Format = "api.graphql", "graphql"
	return c
}

// TestGraphQLRequest: the request is made of names that the source checked, and all
// values are variables.
func TestGraphQLRequest(t *testing.T) {
	var got struct {
		Query, OperationName string
		Variables            json.RawMessage
	}
	h := newHouse(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(body, &got); err != nil {
			t.Error(err)
		}
		fmt.Fprintf(w, `{"data":{%q:{"id":1}}}`, got.OperationName)
	})
	h.graph("query", "pet", `{"id":"ID!","fields":"[String!]","limit":"Int"}`, "{ id owner { id name } ... on Cat { lives } }")
	h.graph("mutation", "rename", `{"name":"String!"}`, "")
	h.graph("query", "hit", `{}`, "{ id owner { id name } ... on Cat { lives } }")
	for _, tt := range []struct {
		name, arguments, query, variables, err string
	}{
		{"pet", `{"id": "1"}`, "query pet($id: ID!) { pet(id: $id) { id owner { id name } ... on Cat { lives } } }", `{"id":"1"}`, ""},
		{"pet", `{"id": "1", "limit": 12345678901234567890, "fields": ["x"], "ken_fields": ["owner"]}`, "query pet($fields: [String!], $id: ID!, $limit: Int) { pet(fields: $fields, id: $id, limit: $limit) { owner { id name } } }", `{"fields":["x"],"id":"1","limit":12345678901234567890}`, ""},
		{"rename", `{"name": "\"}) { deleteAll } #<>&"}`, "mutation rename($name: String!) { rename(name: $name) }", `{"name":"\"}) { deleteAll } #<>&"}`, ""},
		{"hit", `{"fields": ["/owner/name", "on Cat/lives", "owner/id"]}`, "query hit { hit { owner { name id } ... on Cat { lives } } }", "{}", ""},
		{"hit", `{"fields": ["owner/name", "owner"]}`, "query hit { hit { owner { name } } }", "{}", ""},
		{"hit", `{"fields": "id,owner/name"}`, "query hit { hit { id owner { name } } }", "{}", ""},
		{"hit", `{"fields": ["id }"]}`, "", "", "names of fields"},
		{"hit", `{"fields": ["on Cat }"]}`, "", "", "names of fields"},
		{"hit", `{"fields": ["id(x: 1)"]}`, "", "", "names of fields"},
		{"hit", `{"fields": [""]}`, "", "", "names of fields"},
		{"hit", `{"fields": []}`, "", "", "0 paths"},
		{"hit", `{"fields": [7]}`, "", "", "list of names"},
		{"hit", `{"fields": ["` + strings.Repeat("a/", 20) + `a"]}`, "", "", "more than 12 parts"},
		{"hit", `{"pages": 2}`, "", "", `unknown argument "pages"`},
		{"rename", `{"name": null}`, "", "", "must not be null"},
		{"rename", `{"name": "x", "fields": ["id"]}`, "", "", `unknown argument "fields"`},
	} {
		got.Query, got.Variables = "", nil
		_, err := h.call(t, tt.name, json.RawMessage(tt.arguments))
		if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s %s: error %v, want %q", tt.name, tt.arguments, err, tt.err)
		}
		if got.Query != tt.query || string(got.Variables) != tt.variables {
			t.Errorf("%s %s:\ngot  %s %s\nwant %s %s", tt.name, tt.arguments, got.Query, got.Variables, tt.query, tt.variables)
		}
	}
}

// TestGraphQLAnswer: a server says with any status that a request failed.
func TestGraphQLAnswer(t *testing.T) {
	answer, status := "", 200
	h := newHouse(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprint(w, answer)
	})
	h.graph("query", "pet", `{}`, "{ id }")
	for _, tt := range []struct {
		answer string
		status int
		failed bool
		want   string
	}{
		{`{"data":{"pet":{"id":1}}}`, 200, false, `{"id":1}`},
		{`{"data":{"pet":null}}`, 200, false, `null`},
		{`{"data":{"pet":null},"errors":[{"message":"no"}]}`, 200, true, "The server refused the query:\n- no"},
		{`{"errors":[{"message":"no\nway","path":["pet",0,"id"]}]}`, 200, true, "- no way (at pet/0/id)"},
		{`{"data":{"pet":{"id":null}},"errors":[{"message":"no id"}]}`, 200, false, "The answer is partial: the server left out what these errors name:\n- no id"},
		{`{"errors":[{"message":"bad query"}]}`, 400, true, "- bad query"},
		{`{"data":{"other":1}}`, 200, true, "The answer has no value for pet."},
		{`{"data":[]}`, 200, true, "not one of GraphQL"},
		{`{"data":null}`, 200, true, "not one of GraphQL"},
		{`{"errors":"all of them"}`, 200, true, "not one of GraphQL"},
		{`[]`, 200, true, "not one of GraphQL"},
		{`<html>`, 200, true, "not one of GraphQL"},
		{`<html>gone`, 404, true, "HTTP 404 Not Found"},
		{``, 200, true, "not one of GraphQL"},
		{`{"errors":[` + strings.Repeat(`{"message":"`+strings.Repeat("x", 2000)+`"},`, 500) + `{}]}`, 200, true, "and 491 more errors"},
	} {
		answer, status = tt.answer, tt.status
		r, err := h.call(t, "pet", map[string]any{})
		if err != nil || r.Failed != tt.failed || !strings.Contains(text(r), tt.want) || len(text(r)) > 8000 {
			t.Errorf("%.80s: failed %v, %v, %.300s; want %v, %s", tt.answer, r.Failed, err, text(r), tt.failed, tt.want)
		}
	}
}

// TestGraphQLAgain: queries are repeated and cached as HTTP allows; mutations never
// are.
func TestGraphQLAgain(t *testing.T) {
	asked, busy, broken := 0, false, false
	h := newHouse(t, func(w http.ResponseWriter, r *http.Request) {
		asked++
		if busy {
			busy = false
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Cache-Control", "max-age=60")
		w.Header().Set("ETag", `"1"`)
		if broken {
			fmt.Fprint(w, `{"data":{"a":1},"errors":[{"message":"partial"}]}`)
			return
		}
		fmt.Fprint(w, `{"data":{"a":1,"b":2,"deleteA":3}}`)
	})
	h.graph("query", "a", `{"x":"Int"}`, "")
	h.graph("mutation", "b", `{}`, "")
	doubted := h.graph("query", "deleteA", `{}`, "")
	doubted.Claims = &capability.Claims{Doubt: `its name says "delete"`}
	step := func(name, arguments string, want int) {
		t.Helper()
		asked = 0
		if _, err := h.call(t, name, json.RawMessage(arguments)); err != nil || asked != want {
			t.Errorf("%s %s: asked %d times, want %d; %v", name, arguments, asked, want, err)
		}
	}
	busy = true
	step("a", `{"x": 1}`, 2) // repeated
	step("a", `{"x": 1}`, 0) // cached
	step("a", `{"x": 2}`, 1) // another request
	busy = true
	step("b", `{}`, 1)
	step("a", `{"x": 1}`, 1) // the mutation made it old
	busy = true
	step("deleteA", `{}`, 1)
	broken = true
	step("a", `{"x": 3}`, 1)
	step("a", `{"x": 3}`, 1) // what has errors is not cached
}

// TestGraphQLUnusable: what nothing can be asked with is unavailable.
func TestGraphQLUnusable(t *testing.T) {
	h := newHouse(t, echo)
	for name, change := range map[string]func(c *capability.Capability){
		"a subscription": func(c *capability.Capability) { c.Meta["operation"] = "subscription" },
		"no field":       func(c *capability.Capability) { delete(c.Meta, "field") },
		"bad arguments":  func(c *capability.Capability) { c.Meta["arguments"] = "[]" },
		"no address":     func(c *capability.Capability) { c.Run.URL = "" },
		"a recipe":       func(c *capability.Capability) { c.Origin.Format = "catalog" },
		"bad auth":       func(c *capability.Capability) { c.Meta["auth"] = `[{"scheme":"magic"}]` },
	} {
		c := h.graph("query", "a", `{}`, "")
		if why := Unusable(c); why != "" {
			t.Fatal(why)
		}
		if change(c); Unusable(c) == "" {
			t.Errorf("%s can be called", name)
		}
	}
}
