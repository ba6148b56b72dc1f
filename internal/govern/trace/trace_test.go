package trace

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"ken/capability"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func written() *Call {
	return &Call{
		Call: capability.Call{
			Target: "tool:write_to_file", Arguments: json.RawMessage(`{"path":"a.txt","content":"x"}`), Session: "s1", Key: "s1/3/1", Intent: "CODE", Surface: "chat",
		},
		Result: capability.Result{Parts: []capability.Part{{Text: "ok"}}}, Began: noon, Ended: noon.Add(time.Second),
		Record: "c1:7", Effect: "e1", Class: "write", Work: []string{"INT-001"}, Files: []Changed{{"a.txt", "ab"}},
	}
}

// TestS342LineAndSpanShareIds: a line of agent_trace.jsonl, its span and the
// audit record can be found from each other (S3.42, S3.43, S3.U08).
func TestS342LineAndSpanShareIds(t *testing.T) {
	dir := t.TempDir()
	f, c := NewFile(dir), written()
	if err := f.Append(c); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, FileName))
	if err != nil {
		t.Fatal(err)
	}
	var line Line
	if err := json.Unmarshal(b, &line); err != nil {
		t.Fatal(err)
	}
	span := SpanOf(c)
	if line.TraceID != span.ID.Trace || line.SpanID != span.ID.Span || line.Audit != "c1:7" || span.Attributes["ken.audit"] != "c1:7" ||
		line.Turn != "3" || span.Attributes["ken.turn"] != "3" || line.Hash != span.Attributes["ken.content_hash"] ||
		line.Intent != "CODE" || line.Capability != "tool:write_to_file" || len(line.Work) != 1 || line.Files[0].SHA256 != "ab" || !line.OK {
		t.Errorf("line %s and span %+v do not belong together", b, span)
	}
	if turn := TurnID("s1", "3"); turn.Trace != span.ID.Trace || turn.Span != span.ID.Parent || len(turn.Trace) != 32 || len(turn.Span) != 16 {
		t.Errorf("the turn is %+v, the call %+v; want one trace", turn, span.ID)
	}
	other := written()
	other.Call.Key = "s1/3/2"
	if id := IDs(other); id.Span == span.ID.Span || id.Trace != span.ID.Trace {
		t.Errorf("another call of the turn is %+v, want another span of the same trace", id)
	}
	respelled := written()
	respelled.Call.Arguments = json.RawMessage(`{ "content":"x", "path":"a.txt" }`)
	if respelled.ContentHash() != c.ContentHash() {
		t.Error("the hash depends on the spelling of arguments")
	}
	respelled.Result.Parts[0].Text = "other"
	if respelled.ContentHash() == c.ContentHash() {
		t.Error("the hash does not depend on the result")
	}
}

// TestFileMakesNothing: without its folder nothing is written, and many writers
// do not mix lines.
func TestFileMakesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), ".orchestration")
	f := NewFile(dir)
	if err := f.Append(written()); err != nil || f.Lost() != 0 {
		t.Errorf("Append without a folder = %v, %d lost; want nothing", err, f.Lost())
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Fatalf("the folder was made: %v", err)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			mine := NewFile(dir)
			for range 25 {
				if err := mine.Append(written()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	file, err := os.Open(filepath.Join(dir, FileName))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	n := 0
	for s := bufio.NewScanner(file); s.Scan(); n++ {
		if !json.Valid(s.Bytes()) {
			t.Fatalf("line %d is %q", n, s.Text())
		}
	}
	if n != 200 {
		t.Errorf("%d lines, want 200", n)
	}
	if err := os.Remove(filepath.Join(dir, FileName)); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, FileName), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := f.Append(written()); err == nil || f.Lost() != 1 {
		t.Errorf("Append to a folder = %v, %d lost; want an error that is counted", err, f.Lost())
	}
}

// TestSpansAreSent: a collector gets them as OTLP has them.
func TestSpansAreSent(t *testing.T) {
	var got []byte
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s %s, want JSON to /v1/traces", r.URL.Path, r.Header.Get("Content-Type"))
		}
		got, _ = io.ReadAll(r.Body)
	}))
	defer srv.Close()
	s := NewSpans(srv.URL+"/", "v1")
	failed := written()
	failed.Err = errors.New("no")
	s.Add(SpanOf(written()))
	s.Add(SpanOf(failed))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	var doc struct {
		ResourceSpans []struct {
			Resource   struct{ Attributes []otlpAttribute }
			ScopeSpans []struct{ Spans []otlpSpan }
		}
	}
	if err := json.Unmarshal(got, &doc); err != nil {
		t.Fatalf("%s: %v", got, err)
	}
	spans := doc.ResourceSpans[0].ScopeSpans[0].Spans
	if len(spans) != 2 || spans[0].Status.Code != 1 || spans[1].Status.Code != 2 || spans[1].Status.Message != "no" ||
		spans[0].Start != "1772366400000000000" || spans[0].End != "1772366401000000000" || spans[0].Name != "execute_tool tool:write_to_file" {
		t.Errorf("spans = %+v", spans)
	}
	if n, why := s.Lost(); n != 0 || why != "" {
		t.Errorf("Lost = %d, %q; want nothing", n, why)
	}
}

// TestSpansAreLost: a collector that is not there costs spans and nothing else.
func TestSpansAreLost(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	defer srv.Close()
	s := NewSpans(srv.URL, "v1")
	s.Add(SpanOf(written()))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if n, why := s.Lost(); n != 1 || !strings.Contains(why, "418") {
		t.Errorf("Lost = %d, %q; want one, and the status", n, why)
	}
}
