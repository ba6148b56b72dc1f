package session

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ken/capability"
	"ken/internal/store"
	"ken/llm"
)

// TestKeptIsDecoded: what a turn keeps of an entry is what will be read of it,
// to the byte and to what is nil; and it shares nothing with what was given.
func TestKeptIsDecoded(t *testing.T) {
	known := 0
	rapid.Check(t, func(t *rapid.T) {
		e := anyEntry(t)
		data, err := encode(stored{formatVersion, e})
		if err != nil {
			t.Skip("rapid draws another: ", err) // the draw is thrown away, the test goes on
		}
		want, err := decodeEntry(store.Item{Value: data})
		if err != nil {
			t.Fatal(err)
		}
		got, ok := kept(e)
		if !ok {
			return
		}
		known++
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("kept(%+v) = %+v\nwant %+v", e, got, want)
		}
		scribble(reflect.ValueOf(&e).Elem())
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("what was kept changed with what was given: %+v", got)
		}
		if again, err := encode(stored{formatVersion, got}); err != nil || string(again) != string(data) {
			t.Fatalf("encode(kept) = %s, %v, want %s", again, err, data)
		}
	})
	t.Logf("%d entries were kept without decoding them", known)
	if known == 0 {
		t.Error("no entry was kept without decoding it")
	}
}

// scribble changes everything that v leads to.
func scribble(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			scribble(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			scribble(v.Index(i))
		}
	case reflect.Map:
		v.Clear()
	case reflect.Struct:
		for i := range v.NumField() {
			scribble(v.Field(i))
		}
	case reflect.String:
		if v.CanSet() {
			v.SetString("changed")
		}
	case reflect.Uint8:
		if v.CanSet() {
			v.SetUint(v.Uint() + 1)
		}
	case reflect.Int, reflect.Int64:
		if v.CanSet() {
			v.SetInt(v.Int() + 1)
		}
	}
}

func anyEntry(t *rapid.T) Entry {
	str := func() string {
		return rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "<a & b>", "\u2028\x00\"\\\n", "\ufffd", "é\U0001F600"}),
			rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 3), func(b []byte) string {
				if len(b) < 3 { // seldom: then it is decoded
					return "x"
				}
				return string(b)
			})).Draw(t, "text")
	}
	data := func() []byte { return rapid.SampledFrom([][]byte{nil, {}, {0, 255}, []byte("{x")}).Draw(t, "bytes") }
	raw := func() json.RawMessage {
		return rapid.SampledFrom([]json.RawMessage{nil, {}, []byte("null"), []byte(" { \"a\" : [1, 2.0e1 ,\t\"<&>\u2028\xff\"]}\n"), []byte(`"\u003c\ud800"`), []byte("[ ]")}).Draw(t, "json")
	}
	some := func(n int) int { return rapid.IntRange(0, n).Draw(t, "n") }
	tools := func() []llm.Tool {
		list := make([]llm.Tool, 0, 4)
		for range some(2) {
			list = append(list, llm.Tool{Name: str(), Description: str(), Schema: raw()})
		}
		return list
	}
	var blocks func(depth int) []llm.Block
	blocks = func(depth int) []llm.Block {
		list := make([]llm.Block, 0, 4)
		for range some(3) {
			var b llm.Block
			switch some(5) {
			case 0:
				b.Text = str()
			case 1:
				b.Image = &llm.Image{MIME: str(), Data: data()}
			case 2:
				b.Call = &llm.ToolCall{ID: str(), Name: str(), Arguments: data(), Opaque: raw()}
			case 3:
				b.Reasoning = &llm.Reasoning{Text: str(), Wire: str(), Opaque: raw()}
			case 4:
				b.Tools = tools()
			default:
				b.Result = &llm.ToolResult{ID: str(), Name: str(), Failed: some(1) == 1}
				if depth > 0 {
					b.Result.Blocks = blocks(depth - 1)
				}
			}
			list = append(list, b)
		}
		return list
	}
	e := Entry{
		Seq: 3, Turn: some(9), Kind: Kind(str()), Tokens: some(9), From: some(2), To: some(2), Blocks: blocks(2), System: str(), About: some(9), Tools: tools(),
		Name: str(), Text: str(), Cost: rapid.Float64().Draw(t, "cost"),
		Time: time.UnixMicro(rapid.Int64Range(0, 4e15).Draw(t, "time")).UTC(),
	}
	for range some(2) {
		e.Offers = append(e.Offers, Offer{Tool: str(), ID: capability.ID(str()), Action: str()})
	}
	e.Shown = map[capability.ID]string{}
	for range some(2) {
		e.Shown[capability.ID(str())] = str()
	}
	if some(1) == 1 {
		e.Usage = &llm.Usage{Input: some(9), Output: some(9)}
	}
	return e
}

// TestKeptKnowsAll: a field that is new must be thought of here.
func TestKeptKnowsAll(t *testing.T) {
	for _, tt := range []struct {
		value any
		want  int
	}{
		{Entry{}, 17}, {Offer{}, 3}, {llm.Block{}, 6}, {llm.Image{}, 2}, {llm.ToolCall{}, 4}, {llm.ToolResult{}, 4},
		{llm.Reasoning{}, 3}, {llm.Tool{}, 3}, {llm.Usage{}, 5},
	} {
		if got := reflect.TypeOf(tt.value).NumField(); got != tt.want {
			t.Errorf("%T has %d fields, kept knows %d: look at it", tt.value, got, tt.want)
		}
	}
}
