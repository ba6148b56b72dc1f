//go:build unix

package link_test

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

var sizes = []struct {
	name string
	text string
}{{"small", "hello"}, {"64K", strings.Repeat("abcdefg ", 8<<10)}}

func benchServer(text string) *mcp.Server {
	s := newServer(false)
	addTool(s, "say", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return say(text), nil })
	return s
}

// cpu is what the process has used, in nanoseconds.
func cpu(b *testing.B) float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return float64(u.Utime.Nano() + u.Stime.Nano())
}

func measure(b *testing.B, call func() error) {
	b.ReportAllocs()
	before := cpu(b)
	for b.Loop() {
		if err := call(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric((cpu(b)-before)/float64(b.N), "cpu-ns/op")
}

// BenchmarkBare is the anchor: the SDK's client on the same server and pipes.
func BenchmarkBare(b *testing.B) {
	for _, size := range sizes {
		b.Run(size.name, func(b *testing.B) {
			inR, inW := io.Pipe()
			outR, outW := io.Pipe()
			ctx, cancel := context.WithCancel(context.Background())
			over := make(chan struct{})
			go func() {
				defer close(over)
				_ = benchServer(size.text).Run(ctx, &mcp.IOTransport{Reader: inR, Writer: outW})
			}()
			cs, err := mcp.NewClient(&mcp.Implementation{Name: "bare"}, nil).Connect(ctx, &mcp.IOTransport{Reader: outR, Writer: inW}, nil)
			if err != nil {
				b.Fatal(err)
			}
			args := json.RawMessage(`{"path":"/tmp/x","limit":10}`)
			measure(b, func() error {
				_, err := cs.CallTool(ctx, &mcp.CallToolParams{Name: "say", Arguments: args})
				return err
			})
			_ = cs.Close()
			cancel()
			<-over
		})
	}
}

// BenchmarkCall is the subject.
func BenchmarkCall(b *testing.B) {
	for _, size := range sizes {
		b.Run(size.name, func(b *testing.B) {
			l := to(b, sdkServer(benchServer(size.text)))
			call := callOf(`{"path":"/tmp/x","limit":10}`)
			measure(b, func() error {
				_, err := l.Call(context.Background(), call, "say")
				return err
			})
		})
	}
}
