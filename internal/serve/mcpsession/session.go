package mcpsession

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ken/internal/jsonvalid"
	"ken/internal/serve/clearmessage"
	"ken/internal/untrusted"
)

// QuestionPrefix begins the ids of requests to the client that a [Stream] makes. Those of
// the SDK are numbers.
const QuestionPrefix = "ken-question-"

func (s *Session) take(call string, cancel context.CancelFunc) (began, twice bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls[call] != nil || s.over {
		return false, !s.over
	}
	if s.calls == nil {
		s.calls = map[string]context.CancelFunc{}
	}
	s.calls[call] = cancel
	return true, false
}

func (s *Session) drop(call string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.calls, call)
}

// end ends the calls of a session that is over.
func (s *Session) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	for _, cancel := range s.calls {
		cancel()
	}
}

// Cancel ends a call that is made past the SDK. It reports false if none has this id.
func (s *Session) Cancel(call string) bool {
	s.mu.Lock()
	cancel := s.calls[call]
	s.mu.Unlock()
	if cancel == nil {
		return false
	}
	cancel()
	return true
}

// expect returns the id of a new request to the client, and where its answer comes.
func (s *Session) expect() (string, chan *jsonrpc.Response) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.questions == nil {
		s.questions = map[string]chan *jsonrpc.Response{}
	}
	id, reply := QuestionPrefix+rand.Text(), make(chan *jsonrpc.Response, 1)
	s.questions[id] = reply
	return id, reply
}

func (s *Session) forget(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.questions, id)
}

// Take deals with what a client says of the calls that are made past the SDK: answers to
// the requests of a [Stream], and the end of a call. data is a message, or a batch if the
// protocol has those. It reports whether that was all that data says.
func (s *Session) Take(data []byte, batches bool) bool {
	if !jsonvalid.Valid(data) || clearmessage.Unclear(data) != "" {
		return false
	}
	list := []json.RawMessage{data}
	if bytes.TrimLeft(data, " \t\r\n")[0] == '[' {
		if list = slices.Collect(untrusted.Items(data)); !batches {
			return false
		}
	}
	messages := make([]jsonrpc.Message, len(list))
	for i, one := range list {
		var err error
		if messages[i], err = jsonrpc.DecodeMessage(one); err != nil {
			return false
		}
	}
	all := len(list) > 0
	for i, m := range messages {
		res, answers := m.(*jsonrpc.Response)
		if answers && !s.answer(res) || !answers && !s.Cancel(clearmessage.Cancels(list[i])) {
			all = false
		}
	}
	return all
}

// answer takes what answers a request of a [Stream]. Only the first answer counts.
func (s *Session) answer(res *jsonrpc.Response) bool {
	id, _ := res.ID.Raw().(string)
	s.mu.Lock()
	reply := s.questions[id]
	delete(s.questions, id)
	s.mu.Unlock()
	if reply == nil {
		return false
	}
	reply <- res
	return true
}

// hold notes that a stream of events goes on; release, that it has ended.
func (s *Session) hold(name string, stream *Stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.streams == nil {
		s.streams = map[string]*Stream{}
	}
	s.streams[name] = stream
}

func (s *Session) release(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.streams, name)
}

// keep stores an event of a stream, unless the session is over: events stored after its
// end would never be removed.
func (s *Session) keep(kept *mcp.MemoryEventStore, stream string, data []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return nil
	}
	return kept.Append(context.Background(), s.id, stream, data)
}

// resume serves a request for what followed an event of a stream that goes on. It reports
// false for all others.
func (s *Session) resume(w http.ResponseWriter, r *http.Request) bool {
	if r.Method != http.MethodGet || len(r.Header["Last-Event-Id"]) != 1 || !strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
		return false
	}
	name, number, _ := strings.Cut(r.Header.Get("Last-Event-Id"), "_")
	seen, err := strconv.Atoi(number)
	s.mu.Lock()
	stream := s.streams[name]
	s.mu.Unlock()
	return stream != nil && err == nil && seen >= 0 && stream.resume(w, r, seen)
}
