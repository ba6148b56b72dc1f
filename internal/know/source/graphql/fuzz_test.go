package graphql

import (
	"encoding/json"
	"testing"

	"ken/capability"
	"ken/internal/know/source/format"
	"ken/internal/know/source/safefs"
)

// FuzzGraphQL: no document is read without end, none is a panic, and every schema is
// JSON of a bounded size.
func FuzzGraphQL(f *testing.F) {
	f.Add("type Query { a(b: [C!]! = [{d: 1}]): D @x(y: $z) } enum C { E } union D = | A | B extend type Query { e: F }")
	f.Add(`{"data":{"__schema":{"queryType":{"name":"Q"},"types":[{"kind":"OBJECT","name":"Q","fields":[{"name":"a","type":{"kind":"NON_NULL","ofType":{"name":"Q"}}}]}]}}}`)
	root, err := safefs.Open(f.TempDir(), "", false)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, document string) {
		u := &format.Unit{Context: t.Context(), Root: root, Path: "graphql.json", Format: Name, Trust: capability.TrustUser, Data: []byte(document)}
		Read(u, Options{Prefix: "x", Address: "https://x.example"})
		for i, c := range u.Capabilities {
			if d := u.Details[i]; !json.Valid(d.Schema) || len(d.Schema) > maxSchemaBytes || len(c.Meta["selection"]) > 64<<10 {
				t.Errorf("%s: schema %.200s, selection %.200s", c.ID, d.Schema, c.Meta["selection"])
			}
		}
	})
}
