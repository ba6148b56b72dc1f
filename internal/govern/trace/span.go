package trace

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"ken/capability"
)

// An ID places a span: its trace is the turn's, so that all that happened in a
// turn is one tree, whichever part reports it.
type ID struct {
	Trace  string // 16 bytes, hexadecimal
	Span   string // 8 bytes
	Parent string // empty: it has none
}

// IDs returns the place of a call. It follows from the session, the turn and the
// call's key or effect, by which the span can be found.
func IDs(c *Call) ID {
	session, turn := Turn(c.Call)
	if turn == "" {
		own := c.Record + c.Effect + c.Call.Key + c.Began.Format(time.RFC3339Nano)
		return ID{Trace: digest(16, "call", own), Span: digest(8, "call", own)}
	}
	t := TurnID(session, turn)
	return ID{Trace: t.Trace, Span: digest(8, "call", c.Call.Key), Parent: t.Span}
}

// TurnID returns the place of a turn.
func TurnID(session, turn string) ID {
	return ID{Trace: digest(16, "turn", session, turn), Span: digest(8, "turn", session, turn)}
}

func digest(n int, words ...string) string {
	sum := sha256.Sum256([]byte("ken.trace.v1\x00" + strings.Join(words, "\x00")))
	return hex.EncodeToString(sum[:n])
}

// A Span is something that took its time.
type Span struct {
	ID           ID
	Name         string
	Began, Ended time.Time
	Attributes   map[string]any // strings and whole numbers
	Failed       string         // why; empty: it went well
}

// SpanOf returns the span of a call.
func SpanOf(c *Call) Span {
	session, turn := Turn(c.Call)
	s := Span{
		ID: IDs(c), Name: "execute_tool " + string(c.Call.Target), Began: c.Began, Ended: c.Ended,
		Attributes: map[string]any{
			"ken.session": session, "ken.turn": turn, "ken.intent": c.Call.Intent, "ken.capability": string(c.Call.Target), "ken.action": c.Call.Action,
			"ken.effect": c.Effect, "ken.audit": c.Record, "ken.class": c.Class, "ken.surface": c.Call.Surface, "ken.content_hash": c.ContentHash(),
			"ken.work": strings.Join(c.Work, ","), "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": string(c.Call.Target),
			"gen_ai.tool.type": "function", "gen_ai.tool.call.id": c.Call.Key, "gen_ai.conversation.id": session,
		},
	}
	if server, tool, ok := serverTool(c.Call.Target); ok {
		s.Attributes["mcp.method.name"], s.Attributes["gen_ai.tool.name"], s.Attributes["ken.mcp.server"] = "tools/call", tool, server
	}
	switch {
	case c.Err != nil:
		s.Failed, s.Attributes["error.type"] = c.Err.Error(), errorType(c.Err)
	case c.Result.Failed:
		s.Failed, s.Attributes["error.type"] = "the capability reported failure", "tool_error"
	}
	return s
}

// serverTool takes the id of an MCP server's tool apart.
func serverTool(id capability.ID) (server, tool string, ok bool) {
	rest, ok := strings.CutPrefix(string(id), "mcp:")
	if !ok {
		return "", "", false
	}
	return strings.Cut(rest, "/")
}

// errorType is the kind of an error, or _OTHER.
func errorType(err error) string {
	if e, ok := errors.AsType[*capability.Error](err); ok {
		return strings.ReplaceAll(e.Kind.String(), " ", "_")
	}
	return "_OTHER"
}

const (
	queued = 2048            // spans that wait to be sent
	batch  = 256             // spans of one request
	every  = 2 * time.Second // a batch waits no longer
	within = 5 * time.Second // for one request
)

// Spans sends spans to a collector, over OTLP as JSON. What it cannot send is
// lost, and counted. It is safe for any number of goroutines and must be
// closed.
type Spans struct {
	url     string
	version string
	client  *http.Client
	queue   chan Span
	lost    atomic.Int64
	stop    func()
	done    chan struct{}
	last    atomic.Pointer[string] // why the last request failed
}

// NewSpans sends to a collector at an address such as http://127.0.0.1:4318.
// version is the program's.
func NewSpans(url, version string) *Spans {
	stopped := make(chan struct{})
	s := &Spans{
		url: strings.TrimSuffix(url, "/") + "/v1/traces", version: version, client: &http.Client{Timeout: within},
		queue: make(chan Span, queued), done: make(chan struct{}), stop: sync.OnceFunc(func() { close(stopped) }),
	}
	go s.run(stopped)
	return s
}

// Add tells of a span. It never waits.
func (s *Spans) Add(span Span) {
	select {
	case s.queue <- span:
	default:
		s.lost.Add(1)
	}
}

// Lost counts the spans that were not sent, and says why the last request was
// not taken.
func (s *Spans) Lost() (int64, string) {
	why := ""
	if p := s.last.Load(); p != nil {
		why = *p
	}
	return s.lost.Load(), why
}

// Close sends what waits and ends.
func (s *Spans) Close() error {
	s.stop()
	<-s.done
	s.client.CloseIdleConnections()
	return nil
}

func (s *Spans) run(stopped <-chan struct{}) {
	defer close(s.done)
	tick := time.NewTicker(every)
	defer tick.Stop()
	var list []Span
	flush := func() {
		if len(list) > 0 {
			s.send(list)
			list = nil
		}
	}
	for {
		select {
		case span := <-s.queue:
			if list = append(list, span); len(list) >= batch {
				flush()
			}
		case <-tick.C:
			flush()
		case <-stopped:
			for {
				select {
				case span := <-s.queue:
					list = append(list, span)
					continue
				default:
				}
				flush()
				return
			}
		}
	}
}

func (s *Spans) send(list []Span) {
	err := s.post(encode(list, s.version))
	if err != nil {
		s.lost.Add(int64(len(list)))
		why := err.Error()
		s.last.Store(&why)
	}
}

func (s *Spans) post(body []byte) error {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := s.client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 1<<16)) // so that the connection is used again
	if res.StatusCode/100 != 2 {
		return fmt.Errorf("%s returned %s", s.url, res.Status)
	}
	return nil
}

// The names of OTLP's JSON.
type (
	otlpValue struct {
		String string `json:"stringValue,omitempty"`
		Int    string `json:"intValue,omitempty"` // 64 bits do not fit a number of JSON
	}
	otlpAttribute struct {
		Key   string    `json:"key"`
		Value otlpValue `json:"value"`
	}
	otlpStatus struct {
		Code    int    `json:"code"` // 1 is well, 2 is an error
		Message string `json:"message,omitempty"`
	}
	otlpSpan struct {
		TraceID    string          `json:"traceId"`
		SpanID     string          `json:"spanId"`
		Parent     string          `json:"parentSpanId,omitempty"`
		Name       string          `json:"name"`
		Kind       int             `json:"kind"` // 1 is internal
		Start      string          `json:"startTimeUnixNano"`
		End        string          `json:"endTimeUnixNano"`
		Attributes []otlpAttribute `json:"attributes,omitempty"`
		Status     otlpStatus      `json:"status"`
	}
)

func encode(list []Span, version string) []byte {
	spans := make([]otlpSpan, 0, len(list))
	for _, s := range list {
		out := otlpSpan{
			TraceID: s.ID.Trace, SpanID: s.ID.Span, Parent: s.ID.Parent, Name: s.Name, Kind: 1,
			Start: strconv.FormatInt(s.Began.UnixNano(), 10), End: strconv.FormatInt(s.Ended.UnixNano(), 10),
			Attributes: attributes(s.Attributes), Status: otlpStatus{Code: 1},
		}
		if s.Failed != "" {
			out.Status = otlpStatus{Code: 2, Message: s.Failed}
		}
		spans = append(spans, out)
	}
	b, _ := json.Marshal(map[string]any{"resourceSpans": []any{map[string]any{ // all of it is plain data
		"resource":   map[string]any{"attributes": attributes(map[string]any{"service.name": "ken", "service.version": version})},
		"scopeSpans": []any{map[string]any{"scope": map[string]string{"name": "ken"}, "spans": spans}},
	}}})
	return b
}

// attributes returns those that have a value, in the order of their names.
func attributes(m map[string]any) []otlpAttribute {
	var out []otlpAttribute
	for _, key := range slices.Sorted(maps.Keys(m)) {
		switch v := m[key].(type) {
		case string:
			if v != "" {
				out = append(out, otlpAttribute{key, otlpValue{String: v}})
			}
		case int:
			out = append(out, otlpAttribute{key, otlpValue{Int: strconv.Itoa(v)}})
		}
	}
	return out
}
