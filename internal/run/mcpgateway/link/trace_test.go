package link

import (
	"bytes"
	"io"
	"net/http"
	"testing"
)

// TestTraced: the trace context of a request's metadata is in its headers too, and
// only what is one.
func TestTraced(t *testing.T) {
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for meta, want := range map[string][3]string{
		`{"traceparent":"` + parent + `","tracestate":"a=b","baggage":"k=v"}`:        {parent, "a=b", "k=v"},
		`{"traceparent":"` + parent + `","tracestate":"a\r\nX-Evil: 1","baggage":7}`: {},
		`{"traceparent":"` + parent + `","tracestate":"a\r\nX-Evil: 1"}`:             {parent, "", ""},
		`{"traceparent":"x"}`:        {},
		`{"other":"` + parent + `"}`: {},
	} {
		body := []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":` + meta + `,"name":"x","arguments":{"traceparent":"` + parent + `"}}}`)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://mcp.example", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		out := traced(req, body)
		if got := [3]string{out.Header.Get("Traceparent"), out.Header.Get("Tracestate"), out.Header.Get("Baggage")}; got != want {
			t.Errorf("%s: headers %q, want %q", meta, got, want)
		}
		if sent, _ := io.ReadAll(out.Body); !bytes.Equal(sent, body) {
			t.Errorf("%s: the body is %s", meta, sent)
		}
	}
}
