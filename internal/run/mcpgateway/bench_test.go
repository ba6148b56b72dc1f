//go:build unix

package mcpgateway

import (
	"encoding/json"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ken/internal/run/mcpgateway/link"
)

// benchLists are what a server with that many ordinary tools lists.
func benchLists(b *testing.B, n int) link.Lists {
	b.Helper()
	var got link.Lists
	for i := range n {
		name := "tool_" + string(rune('a'+i%26)) + "_" + string(rune('a'+i/26%26)) + "_" + string(rune('a'+i/676))
		got.Tools = append(got.Tools, &mcp.Tool{
			Name: name, Title: "Tool " + name, Annotations: &mcp.ToolAnnotations{ReadOnlyHint: i%2 == 0},
			Description: "Creates, looks up or changes a record of the store called " + name + " and gives it back with everything that belongs to it. Use it when a person asks for a record by its number or by a part of its name.",
			InputSchema: json.RawMessage(`{"type":"object","properties":{"record":{"type":"string","description":"The number of the record, or a part of its name."},"fields":{"type":"array","items":{"type":"string"},"description":"Which fields to give back; all when it is left out."},"limit":{"type":"integer","minimum":1,"maximum":100,"description":"How many at most."},"dry_run":{"type":"boolean","description":"Only say what would happen."}},"required":["record"],"additionalProperties":false}`),
		})
	}
	return got
}

// cpu returns the processor time that this process has used.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkLoad loads a server with 2,000 tools from its file, as a new process
// does, pins included.
func BenchmarkLoad(b *testing.B) {
	cfg := Config{CacheDir: b.TempDir(), Work: b.TempDir(), Pins: desk(b)}
	cfg.Servers = []Server{stdio(b, "s", "plain")}
	first := gateway(b, cfg, cfg.Servers...)
	if err := first.all()[0].take(b.Context(), link.Info{Name: "n", HasTools: true}, benchLists(b, 2000)); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	begun := cpu(b)
	for b.Loop() {
		g, err := New(cfg)
		if err != nil {
			b.Fatal(err)
		}
		if got := load(b, g); len(got.Capabilities) != 2000 {
			b.Fatalf("%d capabilities: %v", len(got.Capabilities), got.Problems)
		}
		g.Close() // what is kept would be the collector's work in each turn
	}
	b.ReportMetric(float64((cpu(b)-begun).Microseconds())/1000/float64(b.N), "cpu-ms/op")
}

// BenchmarkInvoke compares a call through the gateway with one on the link
// below it.
func BenchmarkInvoke(b *testing.B) {
	g := listed(b, Config{}, stdio(b, "s", "plain"))
	call := callAs("ada", "", "s/echo", `{"text":"hello"}`)
	invoke(b, g, call)
	l := g.all()[0].backs[key{principal: "ada"}].live()
	b.Run("link", func(b *testing.B) {
		b.ReportAllocs()
		begun := cpu(b)
		for b.Loop() {
			if _, err := l.Call(b.Context(), call, "echo"); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64((cpu(b)-begun).Microseconds())/float64(b.N), "cpu-µs/op")
	})
	b.Run("gateway", func(b *testing.B) {
		b.ReportAllocs()
		begun := cpu(b)
		for b.Loop() {
			if _, err := g.Invoke(b.Context(), call); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64((cpu(b)-begun).Microseconds())/float64(b.N), "cpu-µs/op")
	})
	b.Run("facts", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := g.Facts(b.Context(), call, nil); err != nil {
				b.Fatal(err)
			}
		}
	})
}
