package clearmessage

import (
	"encoding/json"
	"reflect"
	"testing"

	"ken/internal/untrusted"
)

var toolCalls = []struct {
	text string
	want *ToolCall // nil: for the SDK
}{
	{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"a":[1]},"_meta":{"b":"c"}}}`, &ToolCall{
		ID: json.RawMessage(`1`), Name: "echo", Arguments: json.RawMessage(`{"a":[1]}`), Meta: json.RawMessage(`{"b":"c"}`),
	}},
	{` { "params" : { "name" : "ä" } , "method" : "tools/call" , "id" : "x" , "jsonrpc" : "2.0" } `, &ToolCall{ID: json.RawMessage(`"x"`), Name: "ä"}},
	{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":null}}`, &ToolCall{
		ID: json.RawMessage(`1`), Name: "echo", Arguments: json.RawMessage(`null`),
	}},
	{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"e\u0063ho"}}`, nil},
	{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","name":"other"}}`, nil},
	{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"","name":"other"}}`, nil},
	{`{"jsonrpc":"2.0","id":1,"id":2,"method":"tools/call","params":{"name":"echo"}}`, nil},
	{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","task":{}}}`, nil},
	{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","Arguments":{}}}`, nil},
	{`{"jsonrpc":"2.0","id":1,"Method":"tools/call","params":{"name":"echo"}}`, nil},
	{`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"name":"echo"}}`, nil},
	{`{"jsonrpc":"1.0","id":1,"method":"tools/call","params":{"name":"echo"}}`, nil},
	{`{"jsonrpc":"2.0","id":null,"method":"tools/call","params":{"name":"echo"}}`, nil},
	{`{"jsonrpc":"2.0","id":{},"method":"tools/call","params":{"name":"echo"}}`, nil},
	{`{"jsonrpc":"2.0","method":"tools/call","params":{"name":"echo"}}`, nil},
	{`{"jsonrpc":"2.0","id":-9007199254740991,"method":"tools/call","params":{"name":"echo"}}`, &ToolCall{ID: json.RawMessage(`-9007199254740991`), Name: "echo"}},
	{`{"jsonrpc":"2.0","id":9007199254740992,"method":"tools/call","params":{"name":"echo"}}`, nil},
	{`{"jsonrpc":"2.0","id":-0,"method":"tools/call","params":{"name":"echo"}}`, nil},
	{`{"jsonrpc":"2.0","id":1.0,"method":"tools/call","params":{"name":"echo"}}`, nil},
	{`{"jsonrpc":"2.0","id":1e999,"method":"tools/call","params":{"name":"echo"}}`, nil},
	{`{"jsonrpc":"2.0","id":"\u0061","method":"tools/call","params":{"name":"echo"}}`, nil},
	{`{"jsonrpc":"2.0","id":"\ud800","method":"tools/call","params":{"name":"echo"}}`, nil},
	{`{"jsonrpc":"2.0","id":"�","method":"tools/call","params":{"name":"echo"}}`, nil},
	{"{\"jsonrpc\":\"2.0\",\"id\":\"\xff\",\"method\":\"tools/call\",\"params\":{\"name\":\"echo\"}}", nil},
	{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":7}}`, nil},
	{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":["echo"]}`, nil},
	{`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`, nil},
	{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}`, nil},
	{`[]`, nil}, {`null`, nil}, {``, nil},
}

func TestReadToolCall(t *testing.T) {
	for _, tt := range toolCalls {
		got, ok := ReadToolCall([]byte(tt.text))
		if ok != (tt.want != nil) || ok && !reflect.DeepEqual(got, *tt.want) {
			t.Errorf("ReadToolCall(%s) = %+v, %t, want %+v", tt.text, got, ok, tt.want)
		}
	}
}

// FuzzReadToolCall: what is read is what encoding/json reads, and nothing that Unclear
// refuses.
func FuzzReadToolCall(f *testing.F) {
	for _, tt := range toolCalls {
		f.Add([]byte(tt.text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, ok := ReadToolCall(data)
		if !ok {
			return
		}
		if _, twice := untrusted.TwiceNamed(data, 0); twice {
			return // members deeper than those of the parameters are not looked at
		}
		if why := Unclear(data); why != "" {
			t.Fatalf("ReadToolCall(%q) took what is refused: %s", data, why)
		}
		var m struct {
			Version string          `json:"jsonrpc"`
			ID      json.RawMessage `json:"id"`
			Method  string          `json:"method"`
			Params  struct {
				Name      string          `json:"name"`
				Arguments json.RawMessage `json:"arguments"`
				Meta      json.RawMessage `json:"_meta"`
			} `json:"params"`
		}
		if err := json.Unmarshal(data, &m); err != nil {
			t.Fatalf("ReadToolCall(%q) took what is no call: %v", data, err)
		}
		want := ToolCall{ID: m.ID, Name: m.Params.Name, Arguments: m.Params.Arguments, Meta: m.Params.Meta}
		if m.Version != "2.0" || m.Method != "tools/call" || !reflect.DeepEqual(got, want) {
			t.Errorf("ReadToolCall(%q) = %+v, want %+v", data, got, m)
		}
	})
}
