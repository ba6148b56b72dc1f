package store_test

import (
	"strings"
	"testing"

	"ken/internal/store"
)

func TestDecode(t *testing.T) {
	type form struct {
		V    int    `json:"v"`
		Name string `json:"name"`
	}
	for _, test := range []struct {
		value, name, want string // want is a part of the error; empty: there is none
	}{
		{`{"v":2,"name":"a"}`, "a", ""},
		{" {\"v\":2}\n", "", ""},
		{`{"v":1,"name":"a"}`, "", "has version 1, this program knows 2"},
		{`{"v":3,"name":"a","more":true}`, "", "has version 3, this program knows 2"},
		{`{"name":"a"}`, "", "has version 0, this program knows 2"},
		{`{"v":2,"name":"a","more":true}`, "", `unknown field "more"`},
		{`{"v":20,"name":"a"}`, "", "has version 20, this program knows 2"},
		{`{"v":2} {}`, "", "after top-level value"},
		{`{"v":2}x`, "", "after top-level value"},
		{`{"v":2,"name":"a"`, "", "unexpected EOF"},
		{`{"v":2,"name":7}`, "", "cannot unmarshal number"},
		{`[]`, "", "cannot unmarshal array"},
		{``, "", "unexpected end"},
	} {
		var got form
		err := store.Item{Key: "a/b", Value: []byte(test.value)}.Decode(2, &got)
		switch {
		case test.want == "" && (err != nil || got.V != 2 || got.Name != test.name):
			t.Errorf("Decode(%s) = %+v, %v; want the name %q", test.value, got, err, test.name)
		case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
			t.Errorf("Decode(%s) fails with %v, want %q", test.value, err, test.want)
		}
	}
}
