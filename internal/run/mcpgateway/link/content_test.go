//go:build unix

package link

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"ken/capability"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"pgregory.net/rapid"
)

func TestContentTable(t *testing.T) {
	for _, test := range []struct {
		block string
		want  capability.Part
	}{
		{`{"type":"text","text":"a"}`, capability.Part{Text: "a"}},
		{`{"type":"text","text":""}`, capability.Part{}},
		{`{"type":"text","text":"a","annotations":{"priority":0}}`, capability.Part{Text: "a", Extra: json.RawMessage(`{"annotations":{"priority":0}}`)}},
		{`{"type":"image","data":"AQI=","mimeType":"image/png"}`, capability.Part{Data: []byte{1, 2}, MIME: "image/png"}},
		{`{"type":"image","data":"","mimeType":"image/png"}`, capability.Part{Data: []byte{}, MIME: "image/png"}},
		{`{"type":"image","data":"AQI=","mimeType":"x/y"}`, capability.Part{Data: []byte{1, 2}, MIME: "x/y", Extra: json.RawMessage(`{"type":"image"}`)}},
		{`{"type":"audio","data":"AQI=","mimeType":"audio/wav","_meta":{"a":1}}`, capability.Part{Data: []byte{1, 2}, MIME: "audio/wav", Extra: json.RawMessage(`{"_meta":{"a":1}}`)}},
		{`{"type":"image","data":"?","mimeType":"image/png"}`, capability.Part{JSON: json.RawMessage(`{"type":"image","data":"?","mimeType":"image/png"}`), MIME: MIMEContent}},
		{`{"type":"resource_link","uri":"a:b","name":"n","size":3}`, capability.Part{Link: "a:b", Extra: json.RawMessage(`{"name":"n","size":3}`)}},
		{`{"type":"resource","resource":{"uri":"a:b","text":"t","mimeType":"m/n","_meta":{"x":1}}}`,
			capability.Part{Text: "t", Link: "a:b", MIME: "m/n", Extra: json.RawMessage(`{"resource":{"_meta":{"x":1}}}`)}},
		{`{"type":"resource","resource":{"uri":"a:b","blob":"AQI="}}`, capability.Part{Data: []byte{1, 2}, Link: "a:b"}},
		{`{"type":"resource","resource":{"uri":"a:b","text":""}}`, capability.Part{Link: "a:b", Extra: json.RawMessage(`{"type":"resource"}`)}},
		{`{"type":"later","x":1e400}`, capability.Part{JSON: json.RawMessage(`{"type":"later","x":1e400}`), MIME: MIMEContent}},
	} {
		a, err := decodeCall(json.RawMessage(`{"content":[` + test.block + `],"structuredContent":[1],"isError":true,"_meta":{"m":1}}`))
		want := capability.Result{Parts: []capability.Part{test.want, {JSON: json.RawMessage(`[1]`), MIME: MIMEStructured}}, Failed: true, Meta: map[string]string{"_meta": `{"m":1}`}}
		if err != nil || !reflect.DeepEqual(a.result, want) {
			t.Errorf("decodeCall(%s) = %+v, %v, want %+v", test.block, a.result, err, want)
			continue
		}
		again, err := Encode(a.result)
		if err != nil || !sameJSON(again, []byte(`{"content":[`+test.block+`],"structuredContent":[1],"isError":true,"_meta":{"m":1}}`)) {
			t.Errorf("Encode(%s) = %s, %v", test.block, again, err)
		}
	}
}

func sameJSON(a, b []byte) bool {
	var x, y any
	da, db := json.NewDecoder(bytes.NewReader(a)), json.NewDecoder(bytes.NewReader(b))
	da.UseNumber()
	db.UseNumber()
	return da.Decode(&x) == nil && db.Decode(&y) == nil && reflect.DeepEqual(x, y)
}

// What was decoded, said again and decoded again is the same.
func TestContentRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		block := func(t *rapid.T) map[string]any {
			b := map[string]any{"type": rapid.SampledFrom([]string{"text", "image", "audio", "resource", "resource_link", "odd", ""}).Draw(t, "type")}
			text := rapid.SampledFrom([]string{"", "a", "é\u0000", "<&>"})
			for _, name := range []string{"text", "mimeType", "uri", "name", "title"} {
				if rapid.Bool().Draw(t, name+"?") {
					b[name] = text.Draw(t, name)
				}
			}
			if rapid.Bool().Draw(t, "data?") {
				b["data"] = rapid.SliceOf(rapid.Byte()).Draw(t, "data")
			}
			if rapid.Bool().Draw(t, "resource?") {
				r := map[string]any{"uri": text.Draw(t, "ruri")}
				if rapid.Bool().Draw(t, "rtext?") {
					r["text"] = text.Draw(t, "rtext")
				} else {
					r["blob"] = rapid.SliceOf(rapid.Byte()).Draw(t, "blob")
				}
				b["resource"] = r
			}
			if rapid.Bool().Draw(t, "meta?") {
				b["_meta"] = map[string]any{"k": 1}
			}
			return b
		}
		raw, err := json.Marshal(map[string]any{"content": rapid.SliceOfN(rapid.Custom(block), 0, 4).Draw(t, "blocks"), "structuredContent": rapid.SampledFrom([]any{nil, 1, "x", []int{}}).Draw(t, "structured")})
		if err != nil {
			t.Fatal(err)
		}
		first, err := decodeCall(raw)
		if err != nil {
			t.Fatalf("decodeCall(%s) = %v", raw, err)
		}
		said, err := Encode(first.result)
		if err != nil {
			t.Fatalf("Encode(%+v) = %v", first.result, err)
		}
		second, err := decodeCall(said)
		if err != nil || !samePart(first.result.Parts, second.result.Parts) {
			t.Errorf("decodeCall(Encode(%+v)) = %+v, %v by %s", first.result, second.result, err, said)
		}
	})
}

func samePart(a, b []capability.Part) bool {
	x, err := json.Marshal(a)
	y, err2 := json.Marshal(b)
	return err == nil && err2 == nil && sameJSON(x, y)
}

// FuzzPlainResult: what is read as a plain result is what encoding/json reads.
func FuzzPlainResult(f *testing.F) {
	for _, text := range []string{
		`{"content":[{"type":"text","text":"a"}]}`, `{"content":[]}`, `{"content":[{"type":"text"}]}`, `{"content":null}`, `{}`, `null`,
		` { "_meta" : { "a" : 1 } , "isError" : true , "content" : [ { "text" : "\u00e4\n" , "type" : "text" } , {"type":"text","text":"ä"} ] } `,
		`{"content":[{"type":"text","text":"a","annotations":{}}]}`, `{"content":[{"type":"image","data":"AA=="}],"isError":null}`, `{"content":[{"type":"text","text":null}]}`,
		`{"content":[{"type":"text","text":"a"}],"resultType":"complete","_meta":null}`, `{"content":[{"type":"text","text":"a"}],"structuredContent":{}}`,
		`{"content":[{"type":"text","text":"` + "\xff" + `"}]}`, `{"content":[{"type":"text","text":"a"}],"Content":[]}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, ok := plainResult(data)
		if !ok {
			return
		}
		if want, err := decodeAnyCall(data); err != nil || want.asks || !reflect.DeepEqual(got, want.result) {
			t.Errorf("plainResult(%q) = %+v, want %+v, %v", data, got, want, err)
		}
	})
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"content":[{"type":"text","text":"a"}]}`))
	f.Add([]byte(`{"content":[{"type":"resource","resource":{"uri":"a","blob":"AA=="}}],"resultType":"input_required","inputRequests":{}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, decode := range []func(json.RawMessage) (answer, error){decodeCall, decodeRead, decodePrompt} {
			a, err := decode(data)
			if err != nil || a.asks {
				continue
			}
			for _, p := range a.result.Parts {
				if p.Extra != nil && !json.Valid(p.Extra) {
					t.Errorf("decode(%s) made Extra %s, which is no JSON", data, p.Extra)
				}
			}
			if _, err := Encode(a.result); err != nil {
				t.Errorf("Encode(%+v) = %v", a.result, err)
			}
		}
	})
}

func TestDecodeMessage(t *testing.T) {
	for _, text := range []string{
		`{"jsonrpc":"2.0","id":1,"result":{"a":1}}`, `{"jsonrpc":"2.0","id":"x","method":"m","params":[1]}`,
		`{"jsonrpc":"2.0","method":"n"}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"m","data":{}}}`,
		`{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"m"}}`, `{"jsonrpc":"1.0","id":1}`, `{"jsonrpc":"2.0","id":{}}`,
		`{"jsonrpc":"2.0","id":1,"method":7}`, `{`, `null`, `{"jsonrpc":"2.0"}`,
		` { "result" : [ 1 , "a" ] , "id" : "x\u0041" , "jsonrpc" : "2.0" } `, `{"jsonrpc":"2.0","id":"y","result":null}`, `{"jsonrpc":"2.0","result":{}}`,
		`{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":-1,"message":"m"}}`, `{"jsonrpc":"2.0","id":1,"result":{},"method":"m"}`,
		`{"jsonrpc":"2.0","id":1,"result":{"a":[1,"}"]}}`, ` { "result" : null , "id" : "ken-1" , "jsonrpc" : "2.0" } `, `{"jsonrpc":"2.0","\u0069d":7,"result":"x"}`,
		`{"jsonrpc":"2.0","id":1,"result":{},"error":null}`, `{"jsonrpc":"2.0","id":1e400,"result":{}}`, `{"jsonrpc":"2.0","id":1,"result":{}`,
	} {
		want, wantErr := jsonrpc.DecodeMessage([]byte(text))
		got, err := decodeMessage([]byte(text))
		if (err == nil) != (wantErr == nil) || (err == nil && !reflect.DeepEqual(got, want)) {
			t.Errorf("decodeMessage(%s) = %+v, %v, want %+v, %v", text, got, err, want, wantErr)
		}
	}
}
