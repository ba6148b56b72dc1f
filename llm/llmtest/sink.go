package llmtest

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
)

// A sink writes server-sent events, in pieces that do not fit the events:
// networks cut where they like.
type sink struct {
	w       http.ResponseWriter
	request *http.Request
	closing <-chan struct{}
	hold    <-chan struct{}
	crlf    bool

	most  int  // fragments until nothing more is written; zero: all
	count int  // fragments so far
	ended bool // nothing more is written
	left  bool // because the client is gone
}

func (s *sink) begin() {
	s.w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	s.w.Header().Set("Cache-Control", "no-cache")
	s.w.WriteHeader(http.StatusOK)
	s.flush()
}

func (s *sink) flush() {
	if err := http.NewResponseController(s.w).Flush(); err != nil {
		s.ended, s.left = true, true
	}
}

// raw writes bytes as they are.
func (s *sink) raw(text string) {
	if s.ended {
		return
	}
	if s.request.Context().Err() != nil {
		s.ended, s.left = true, true
		return
	}
	if s.crlf {
		text = strings.ReplaceAll(text, "\n", "\r\n")
	}
	for _, piece := range []string{text[:len(text)/2], text[len(text)/2:]} {
		if _, err := s.w.Write([]byte(piece)); err != nil {
			s.ended, s.left = true, true
			return
		}
		s.flush()
	}
}

// event writes an event; a name is optional.
func (s *sink) event(name string, data any) {
	text := "data: " + compact(data) + "\n\n"
	if name != "" {
		text = "event: " + name + "\n" + text
	}
	s.raw(text)
}

// fragment is an event that carries a part of what the model says.
func (s *sink) fragment(name string, data any) {
	s.event(name, data)
	s.said()
}

// said counts a fragment, and stops where the fault or the test wants it.
func (s *sink) said() {
	s.count++
	if s.count == 1 {
		s.pause()
	}
	if s.most > 0 && s.count >= s.most {
		s.ended = true
	}
}

// finish is called before the end of an answer.
func (s *sink) finish() {
	if s.count == 0 {
		s.pause()
	}
	if s.most > 0 {
		s.ended = true
	}
}

// pause waits for the reply's hold, where it has one.
func (s *sink) pause() {
	if s.hold != nil {
		s.wait(s.hold)
	}
}

// wait stops until the channel is closed (nil: never), the client is gone, or
// the server closes.
func (s *sink) wait(until <-chan struct{}) {
	if s.ended {
		return
	}
	select {
	case <-until:
	case <-s.request.Context().Done():
		s.ended, s.left = true, true
	case <-s.closing:
		s.ended = true
	}
}

// compact is JSON without escapes for browsers, as vendors send it.
func compact(data any) string {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(data); err != nil {
		panic("llmtest: an event that is not JSON: " + err.Error())
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func writeJSON(w http.ResponseWriter, status int, data any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(compact(data))) // a client that is gone needs no answer
}

// fields is short for an object of JSON.
type fields = map[string]any
