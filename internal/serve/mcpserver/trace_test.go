package mcpserver

import (
	"fmt"
	"io"
	"strings"
	"testing"
)

// TestTraceHeaders: trace context in headers of a request reaches the server of the
// tool, unless the request says something else itself. What is no trace context is
// ignored.
func TestTraceHeaders(t *testing.T) {
	b := newBench(t, office)
	h := web(t, New(b.config()))
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for _, c := range []struct{ parent, meta, want string }{
		{parent, "", `{"baggage":"k=v","traceparent":"` + parent + `","tracestate":"a=b"}`},
		{parent, `,"traceparent":"own"`, `{"traceparent":"own"}`},
		{"not a trace", "", ""},
	} {
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"invoke_capability","arguments":{"id":"tool:greet","arguments":{"name":"x"}},`+
			`"_meta":{"io.modelcontextprotocol/protocolVersion":%q,"io.modelcontextprotocol/clientInfo":{"name":"tracer","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}%s}}}`, sessionless, c.meta)
		data, _ := io.ReadAll(post(t, h.URL, body, map[string]string{
			headerVersion: sessionless, "Mcp-Method": "tools/call", "Mcp-Name": "invoke_capability", "Traceparent": c.parent, "Tracestate": "a=b", "Baggage": "k=v",
		}).Body)
		if got := string(b.last().Meta); got != c.want || !strings.Contains(string(data), "hello x") {
			t.Errorf("with %q and %q the server gets %s, want %s; the answer is %s", c.parent, c.meta, got, c.want, data)
		}
	}
}
