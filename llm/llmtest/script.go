package llmtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"ken/llm"
)

// A Wire is a protocol that a scripted server speaks, in the words of the
// program's own configuration.
type Wire string

const (
	Chat      Wire = "openai-chat"      // OpenAI Chat Completions
	Responses Wire = "openai-responses" // OpenAI Responses
	Messages  Wire = "anthropic"        // Anthropic Messages
	Gemini    Wire = "gemini"           // Gemini generateContent and streamGenerateContent
)

// Wires are all that there are.
func Wires() []Wire { return []Wire{Chat, Responses, Messages, Gemini} }

// A Reply is what a scripted model answers: its thought, then its text, then
// its calls. The zero Reply is an answer that says nothing and ends.
type Reply struct {
	Thought string
	Text    string
	Calls   []llm.ToolCall // without an ID: the server makes one where its wire needs it
	Usage   llm.Usage      // zero: 10 in, 5 out
	Stop    llm.StopReason // zero: [llm.StopCalls] with calls, else [llm.StopEnd]

	Fault      Fault
	RetryAfter time.Duration // the hint that goes with [Rate], [Overloaded] and [ServerError]
	Fragments  int           // of each text, thought and call's arguments; zero: 3

	// Hold, where it is not nil, stops the answer after its first fragment (one
	// without any: before its end) until it is closed or the client is gone.
	Hold <-chan struct{}

	// Want must all stand in the body of the request. What does not is answered
	// with a server error that says what was missing, and is kept for
	// [Server.Problems].
	Want []string
}

// A Fault is something that goes wrong instead of an answer.
type Fault string

const (
	None              Fault = ""
	Rate              Fault = "rate"               // too many requests, with the hint
	Overloaded        Fault = "overloaded"         // the vendor's own way to say so
	ServerError       Fault = "server-error"       // HTTP 500
	TooLong           Fault = "too-long"           // the conversation does not fit
	Auth              Fault = "auth"               // the key is wrong
	Quota             Fault = "quota"              // the account is used up
	UnsupportedInline Fault = "unsupported:inline" // the model does not take tools in a message
	UnsupportedSearch Fault = "unsupported:search" // nor in a result
	CutBefore         Fault = "cut-before"         // the connection ends without an answer
	Cut               Fault = "cut"                // it ends after some fragments
	CutClean          Fault = "cut-clean"          // the answer ends properly for HTTP, without the wire's end
	Garbage           Fault = "garbage"            // HTTP 200 and a page of HTML
	NotJSON           Fault = "not-json"           // an event that is not JSON
	Silence           Fault = "silence"            // HTTP 200, no event, a proper end
	Hang              Fault = "hang"               // HTTP 200 and then nothing, until the client goes
	Redirect          Fault = "redirect"           // to another host, which counts who comes
	StreamOverloaded  Fault = "stream-overloaded"  // HTTP 200, then an error event instead of an answer
	StreamError       Fault = "stream-error"       // an error event after some fragments
)

// Faults are all but [None].
func Faults() []Fault {
	return []Fault{
		Rate, Overloaded, ServerError, TooLong, Auth, Quota, UnsupportedInline, UnsupportedSearch,
		CutBefore, Cut, CutClean, Garbage, NotJSON, Silence, Hang, Redirect, StreamOverloaded, StreamError,
	}
}

// A Seen is a request as a server took it. Requests that it refused have what
// could be read of them and Refused.
type Seen struct {
	Number   int // from 1
	At       time.Time
	Path     string // with its query
	Header   http.Header
	Body     []byte
	Request  llm.Request // what the body means
	Stream   bool
	Marks    int    // cache marks
	CacheKey string // the name that the request gives to the vendor's cache
	Choice   string // the wire's own words on which tools may be called; empty: none
	Refused  string // why it was answered with an error of the client's
	Unread   string // why a server of [ServeOthers] did not read all of it
}

// A Script says what to answer. It may be called from several goroutines, but
// never twice at once.
type Script func(Seen) Reply

// Replies is a script that gives each reply once, in order. A request too many
// is a [ServerError] that says so.
func Replies(list ...Reply) Script {
	next := 0
	return func(Seen) Reply {
		if next >= len(list) {
			return Reply{Fault: ServerError, Text: fmt.Sprintf("the script is over: it has %d replies", len(list))}
		}
		next++
		return list[next-1]
	}
}

// Always is a script that gives the same reply to all requests.
func Always(r Reply) Script { return func(Seen) Reply { return r } }

// ReadReplies reads replies from JSON, one object after another, with the
// fields of [Reply] in lower case but for Hold. The arguments of a call are an
// object, or a string that is sent as it is; retryAfter is "20ms". Empty lines and
// lines that begin with # are skipped. A field that is not known is an error.
func ReadReplies(r io.Reader) ([]Reply, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("read replies: %w", err)
	}
	lines := bytes.Split(data, []byte("\n"))
	for i, line := range lines {
		if bytes.HasPrefix(bytes.TrimSpace(line), []byte("#")) {
			lines[i] = nil
		}
	}
	decoder := json.NewDecoder(bytes.NewReader(bytes.Join(lines, []byte("\n"))))
	decoder.DisallowUnknownFields()
	var list []Reply
	for {
		var reply Reply
		if err := decoder.Decode(&reply); errors.Is(err, io.EOF) {
			return list, nil
		} else if err != nil {
			return nil, fmt.Errorf("read reply %d: %w", len(list)+1, err)
		}
		list = append(list, reply)
	}
}

// replyJSON is a Reply as a file says it.
type replyJSON struct {
	Thought    string         `json:"thought"`
	Text       string         `json:"text"`
	Calls      []callJSON     `json:"calls"`
	Usage      llm.Usage      `json:"usage"`
	Stop       llm.StopReason `json:"stop"`
	Fault      Fault          `json:"fault"`
	RetryAfter string         `json:"retryAfter"`
	Fragments  int            `json:"fragments"`
	Want       []string       `json:"want"`
}

type callJSON struct {
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// UnmarshalJSON reads the form that [ReadReplies] describes.
func (r *Reply) UnmarshalJSON(data []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	var in replyJSON
	if err := decoder.Decode(&in); err != nil {
		return err
	}
	out := Reply{
		Thought: in.Thought, Text: in.Text, Usage: in.Usage, Stop: in.Stop,
		Fault: in.Fault, Fragments: in.Fragments, Want: in.Want,
	}
	if in.Fault != None && !slices.Contains(Faults(), in.Fault) {
		return fmt.Errorf("unknown fault %q, want one of %q", in.Fault, Faults())
	}
	switch in.Stop {
	case "", llm.StopEnd, llm.StopCalls, llm.StopLength, llm.StopRefuse:
	default:
		return fmt.Errorf("unknown stop reason %q, want end, calls, length or refused", in.Stop)
	}
	if in.Fragments < 0 {
		return fmt.Errorf("fragments is %d, want 0 or more", in.Fragments)
	}
	if in.RetryAfter != "" {
		d, err := time.ParseDuration(in.RetryAfter)
		if err != nil {
			return fmt.Errorf("retryAfter: %w", err)
		}
		out.RetryAfter = d
	}
	for i, c := range in.Calls {
		if c.Name == "" {
			return fmt.Errorf("call %d has no name", i+1)
		}
		call := llm.ToolCall{ID: c.ID, Name: c.Name, Arguments: []byte(c.Arguments)}
		var raw string
		switch {
		case len(c.Arguments) == 0:
			call.Arguments = []byte("{}")
		case json.Unmarshal(c.Arguments, &raw) == nil:
			call.Arguments = []byte(raw)
		}
		out.Calls = append(out.Calls, call)
	}
	*r = out
	return nil
}

// filled is the reply with what its zero values mean.
func (r Reply) filled() Reply {
	if r.Usage == (llm.Usage{}) {
		r.Usage = llm.Usage{Input: 10, Output: 5}
	}
	if r.Stop == "" {
		r.Stop = llm.StopEnd
		if len(r.Calls) > 0 {
			r.Stop = llm.StopCalls
		}
	}
	if r.Fragments == 0 {
		r.Fragments = 3
	}
	r.Calls = slices.Clone(r.Calls)
	return r
}

// missing are the wants that the body does not have.
func (r Reply) missing(body []byte) []string {
	var list []string
	for _, want := range r.Want {
		if !bytes.Contains(body, []byte(want)) && !bytes.Contains(body, []byte(quoted(want))) {
			list = append(list, want)
		}
	}
	return list
}

// quoted is how a text looks within a JSON string.
func quoted(text string) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(text) // a string always can
	return strings.Trim(b.String(), "\"\n")
}

// fragments cuts a text into at most n pieces at the borders of its runes.
func fragments(text string, n int) []string {
	if text == "" {
		return nil
	}
	n = max(1, n)
	size := (len(text) + n - 1) / n
	var list []string
	for len(text) > size {
		cut := size
		for cut < len(text) && text[cut]&0xC0 == 0x80 {
			cut++
		}
		list, text = append(list, text[:cut]), text[cut:]
	}
	if text != "" {
		list = append(list, text)
	}
	return list
}
