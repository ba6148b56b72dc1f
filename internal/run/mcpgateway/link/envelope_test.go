package link

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// TestEncodeOwn: a request that Ken sends past the SDK is written as the SDK would
// write it. What may be written in another way, or is no JSON, is left to the SDK.
func TestEncodeOwn(t *testing.T) {
	for _, tt := range []struct {
		id     any
		params string
		own    bool
	}{
		{"ken-1z", `{"_meta":{},"name":"a","arguments":{"text":"<é\n>"}}`, true},
		{"ken-2", `{}`, true},
		{"ken-3", "{\n}", false},
		{"ken-4", `{}},"x":{`, false},
		{"ken-5", ``, false},
		{"other", `{}`, false},
		{float64(7), `{}`, false},
	} {
		id, err := jsonrpc.MakeID(tt.id)
		if err != nil {
			t.Fatal(err)
		}
		req := &jsonrpc.Request{ID: id, Method: "tools/call", Params: []byte(tt.params)}
		got, own := encodeOwn(nil, req)
		if own != tt.own {
			t.Errorf("%v %s: written past the SDK: %v", tt.id, tt.params, own)
		}
		if want, err := jsonrpc.EncodeMessage(req); own && (err != nil || string(got) != string(want)) {
			t.Errorf("%v: wrote %s, the SDK writes %s (%v)", tt.id, got, want, err)
		}
	}
	if _, own := encodeOwn(nil, &jsonrpc.Response{}); own {
		t.Error("an answer is written past the SDK")
	}
}

// TestReadPage: a page is what encoding/json makes of it.
func TestReadPage(t *testing.T) {
	for _, in := range []string{
		`{"tools":[{"name":"a"},null,{"name":"]"}],"nextCursor":"x\u0041"}`, `{"tools":[]}`, `{}`, `{"tools":null,"nextCursor":null}`, `{"nextCursor":"a"}`,
		`{"Tools":[{"name":"a"}]}`, `{"tools":[1],"tools":[2]}`, `{"tools":[1],"NEXTCURSOR":"b","nextCursor":"a"}`, `{"tools":{},"nextCursor":"a"}`, `{"tools":[],"nextCursor":7}`, `[]`, `null`,
	} {
		var want page
		wrong := json.Unmarshal([]byte(in), &want)
		got, err := readPage([]byte(in))
		got.text = nil
		if (err != nil) != (wrong != nil) || err == nil && (len(got.Tools) != len(want.Tools) || got.Next != want.Next || len(want.Tools) > 0 && !reflect.DeepEqual(got, want)) {
			t.Errorf("%s = %q and %q, %v; want %q and %q, %v", in, got.Tools, got.Next, err, want.Tools, want.Next, wrong)
		}
	}
}

// TestReadTool: schemas stay as they were written, and null is none.
func TestReadTool(t *testing.T) {
	for in, want := range map[string][2]string{
		`{"name":"a","inputSchema":{ "type" : "object" },"outputSchema":{"b":1}}`: {`{ "type" : "object" }`, `{"b":1}`},
		`{"name":"a","inputSchema":null,"outputSchema":null}`:                     {},
		`{"name":"a"}`: {},
		`{"name":"a","inputSchema":"x","INPUTSCHEMA":7}`:   {"7", ""},
		`{"name":"a","inputSchema":{},"inputSchema":null}`: {},
	} {
		got, err := readTool([]byte(in))
		if err != nil {
			t.Fatal(err)
		}
		for i, schema := range []any{got.InputSchema, got.OutputSchema} {
			text, _ := schema.(json.RawMessage)
			if string(text) != want[i] || (schema == nil) != (want[i] == "") {
				t.Errorf("%s: schema %d is %v, want %q", in, i+1, schema, want[i])
			}
		}
	}
}
