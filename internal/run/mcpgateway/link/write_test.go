package link

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// pipeProcess is a server that is the other end of pipes.
type pipeProcess struct {
	in  *os.File
	out io.Reader
}

func (p *pipeProcess) Stdin() io.WriteCloser { return p.in }
func (p *pipeProcess) Stdout() io.Reader     { return p.out }
func (p *pipeProcess) Close() error          { return nil }
func (p *pipeProcess) Done() <-chan struct{} { return nil }
func (p *pipeProcess) Stderr() string        { return "" }

// TestWritesKeepTheirOrder: messages of one sender arrive whole and in their order,
// whether the pipe takes them at once or they wait for a server that reads slowly.
func TestWritesKeepTheirOrder(t *testing.T) {
	const senders, each = 3, 400
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	none, _ := io.Pipe()
	s := newStdio(&pipeProcess{in: w, out: none}, 1<<20)
	defer s.Close()
	var work sync.WaitGroup
	for n := range senders {
		work.Go(func() {
			for i := range each {
				pad, _ := json.Marshal(strings.Repeat("x", i*i%9000)) // a text is JSON
				msg := &jsonrpc.Request{Method: fmt.Sprintf("%d", n), Params: json.RawMessage(fmt.Sprintf(`{"i":%d,"pad":%s}`, i, pad))}
				if err := s.Write(context.Background(), msg); err != nil {
					t.Errorf("Write() = %v", err)
					return
				}
			}
		})
	}
	next := make([]int, senders)
	lines := bufio.NewReader(r)
	for range senders * each {
		line, err := lines.ReadBytes('\n')
		var m struct {
			Method string
			Params struct {
				I   int
				Pad string
			}
		}
		if err == nil {
			err = json.Unmarshal(line, &m)
		}
		if err != nil {
			t.Fatalf("a line of %d bytes: %v", len(line), err)
		}
		var n int
		fmt.Sscan(m.Method, &n)
		if m.Params.I != next[n] || len(m.Params.Pad) != m.Params.I*m.Params.I%9000 {
			t.Fatalf("sender %d: message %d with %d bytes, want message %d", n, m.Params.I, len(m.Params.Pad), next[n])
		}
		next[n]++
	}
	work.Wait()
}
