package llmtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// A Server is a vendor's API on this machine that plays a script. It checks
// requests as strictly as the vendor does and answers those that are wrong in
// the vendor's own words, without asking the script.
type Server struct {
	http      *httptest.Server
	elsewhere *httptest.Server // where redirects lead
	wire      protocol
	script    Script
	closing   chan struct{}
	once      sync.Once
	lenient   bool // answers requests with fields that it does not know

	playing sync.Mutex // held while the script is asked

	mu       sync.Mutex
	seen     []Seen
	problems []string
	signed   map[string]string // what a call must come back with, by its ID
	open     int               // answers that are being written
	gone     int               // clients that left before the end of one
	quiet    *sync.Cond        // of mu: open or gone changed
}

// A protocol is one vendor's side of a wire.
type protocol interface {
	// read checks a request and says what it means. It panics with a refusal.
	read(in *incoming)
	// play writes an answer, event by event.
	play(out *sink, in *incoming, r Reply)
	// whole is the same answer in one piece, for a request that asks for no stream.
	whole(in *incoming, r Reply) any
	// failure is the body of an error.
	failure(f failure) any
	// failed writes an error as an event of a stream.
	failed(out *sink, f failure)
	// fault says how the vendor reports a fault that is an HTTP status.
	fault(f Fault) failure
	// path is where it is asked, for the kit.
	path() string
}

// An incoming is a request on its way to be understood.
type incoming struct {
	Seen
	server *Server
	method string
	id     string // of the answer
}

// A failure is an error of a vendor's API.
type failure struct {
	status  int
	code    string // the vendor's own
	kind    string // its type or status
	param   string
	message string
	detail  any // more of it
	retry   time.Duration
}

// Start begins to serve on a port of this machine. The caller closes it.
func Start(w Wire, s Script) *Server {
	server := &Server{script: s, closing: make(chan struct{}), signed: map[string]string{}}
	server.quiet = sync.NewCond(&server.mu)
	switch w {
	case Chat:
		server.wire = chat{}
	case Responses:
		server.wire = responses{}
	case Messages:
		server.wire = messages{}
	case Gemini:
		server.wire = gemini{}
	default:
		panic(fmt.Sprintf("llmtest.Start: no such wire: %q; there are %q", w, Wires()))
	}
	server.http = httptest.NewServer(http.HandlerFunc(server.serve))
	server.elsewhere = httptest.NewServer(http.HandlerFunc(server.strayed))
	return server
}

// Serve is [Start] for the time of a test. Problems that are left when it ends
// fail it.
func Serve(t testing.TB, w Wire, s Script) *Server {
	t.Helper()
	server := Start(w, s)
	t.Cleanup(func() {
		server.Close()
		for _, problem := range server.Problems() {
			t.Errorf("scripted %s: %s", w, problem)
		}
	})
	return server
}

// ServeOthers is [Serve] for programs that are not Ken. They use parts of a
// vendor's API that this package does not read, so the script is asked about every
// request with a body in JSON to the right path. [Seen.Unread] says what was not
// read.
func ServeOthers(t testing.TB, w Wire, s Script) *Server {
	t.Helper()
	server := Serve(t, w, s)
	server.lenient = true
	return server
}

// URL is what a client takes for the vendor's address: it ends as the vendor's
// own does (OpenAI: /v1), without a slash.
func (s *Server) URL() string {
	switch s.wire.(type) {
	case chat, responses:
		return s.http.URL + "/v1"
	}
	return s.http.URL
}

// Requests are those that came so far, refused ones too. They are not changed
// later.
func (s *Server) Requests() []Seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen)
}

// Problems are what should not have happened: wants that were not met, and
// clients that followed a redirect to another host.
func (s *Server) Problems() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.problems)
}

// Close ends what is being answered, and waits for it. A second time does nothing.
func (s *Server) Close() {
	s.once.Do(func() {
		close(s.closing)
		s.http.CloseClientConnections()
		s.http.Close()
		s.elsewhere.Close()
	})
}

// idle waits until no answer is being written, and says how many clients left
// one before its end. It gives up with the deadline.
func (s *Server) idle(most time.Duration) (gone int, ok bool) {
	late := false
	timer := time.AfterFunc(most, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		late = true
		s.quiet.Broadcast()
	})
	defer timer.Stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.open > 0 && !late {
		s.quiet.Wait()
	}
	return s.gone, s.open == 0
}

func (s *Server) problem(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.problems = append(s.problems, fmt.Sprintf(format, args...))
}

func (s *Server) strayed(w http.ResponseWriter, r *http.Request) {
	s.problem("a redirect to another host was followed: %s %s", r.Method, r.URL.Path)
	http.Error(w, "not the vendor", http.StatusTeapot)
}

// listModels answers a client that only checks whether the server is reachable.
// It lists no model, because a scripted server accepts any name. The request is
// not part of a conversation, so it is not in Requests.
func listModels(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"object":"list","data":[]}`)
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/models") {
		listModels(w)
		return
	}
	s.mu.Lock()
	s.open++
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.open--
		s.quiet.Broadcast()
	}()
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 64<<20))
	if err != nil {
		http.Error(w, "the body did not come: "+err.Error(), http.StatusBadRequest)
		return
	}
	in := &incoming{server: s, method: r.Method}
	in.At, in.Path, in.Header, in.Body = time.Now(), r.URL.RequestURI(), r.Header.Clone(), bytes.Clone(body)
	refusal := in.understand()
	if s.lenient && refusal != nil && refusal.status == http.StatusBadRequest && json.Valid(body) {
		in.Unread, refusal = refusal.message, nil
		in.Stream = asksForStream(in.Path, body)
	}

	s.playing.Lock()
	s.mu.Lock()
	in.Number = len(s.seen) + 1
	in.id = fmt.Sprintf("%d", in.Number)
	if refusal != nil {
		in.Refused = refusal.message
	}
	s.seen = append(s.seen, in.Seen)
	s.mu.Unlock()
	var reply Reply
	if refusal == nil {
		reply = s.script(in.Seen).filled()
	}
	s.playing.Unlock()

	if refusal != nil {
		s.fail(w, *refusal)
		return
	}
	if missing := reply.missing(body); len(missing) > 0 {
		s.problem("request %d lacks %q", in.Number, missing)
		reply = Reply{Fault: ServerError, Text: fmt.Sprintf("llmtest: request %d lacks %q", in.Number, missing)}
	}
	s.answer(w, r, in, reply)
}

// asksForStream reports whether a request that was not read wants events.
func asksForStream(path string, body []byte) bool {
	var o struct{ Stream bool }
	return strings.Contains(path, "streamGenerateContent") || json.Unmarshal(body, &o) == nil && o.Stream
}

// understand reads the request; a refusal is what the vendor would answer.
func (in *incoming) understand() (refused *failure) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case failure:
			refused = &p
		default:
			panic(p)
		}
	}()
	in.server.wire.read(in)
	return nil
}

// answer plays a reply or its fault.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, in *incoming, reply Reply) {
	out := &sink{w: w, request: r, closing: s.closing, hold: reply.Hold, crlf: isGemini(s.wire)}
	defer func() {
		if out.left {
			s.mu.Lock()
			s.gone++
			s.mu.Unlock()
		}
	}()
	switch reply.Fault {
	case None:
	case CutBefore:
		panic(http.ErrAbortHandler) // closes the connection without a word
	case Redirect:
		http.Redirect(w, r, s.elsewhere.URL+in.Path, http.StatusTemporaryRedirect)
		return
	case Garbage:
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<!DOCTYPE html>\n<html><body><h1>Welcome</h1>data: none\n\n</body></html>\n")
		return
	case Silence, Hang, NotJSON, Cut, CutClean, StreamOverloaded, StreamError:
		s.spoil(out, in, reply)
		return
	default:
		f := s.wire.fault(reply.Fault)
		f.retry = reply.RetryAfter
		if reply.Text != "" {
			f.message = reply.Text
		}
		s.fail(w, f)
		return
	}
	if in.Stream {
		out.begin()
		s.wire.play(out, in, reply)
		return
	}
	writeJSON(w, http.StatusOK, s.wire.whole(in, reply))
}

// spoil plays the faults that begin as an answer.
func (s *Server) spoil(out *sink, in *incoming, reply Reply) {
	out.begin()
	switch reply.Fault {
	case Hang:
		out.wait(nil)
	case NotJSON:
		out.raw("data: {\"half\": \n\n")
	case StreamOverloaded:
		s.wire.failed(out, s.wire.fault(Overloaded))
	case Cut, CutClean, StreamError:
		if reply.Text == "" && reply.Thought == "" {
			reply.Text = "an answer that does not come to its end"
		}
		out.most = max(1, reply.Fragments/2)
		s.wire.play(out, in, reply)
		switch out.ended = false; reply.Fault {
		case Cut:
			panic(http.ErrAbortHandler)
		case StreamError:
			out.most = 0
			s.wire.failed(out, s.wire.fault(ServerError))
		}
	}
}

// fail answers with an error of the vendor's.
func (s *Server) fail(w http.ResponseWriter, f failure) {
	if f.retry > 0 && !isGemini(s.wire) {
		w.Header().Set("Retry-After-Ms", fmt.Sprint(f.retry.Milliseconds()))
		w.Header().Set("Retry-After", strings.TrimRight(strings.TrimRight(fmt.Sprintf("%.3f", f.retry.Seconds()), "0"), "."))
	}
	writeJSON(w, f.status, s.wire.failure(f))
}

func isGemini(p protocol) bool { _, ok := p.(gemini); return ok }
