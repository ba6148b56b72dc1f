package openai

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"ken/internal/talk/provider"
	"ken/llm"
)

// A said is what a server said about a failure, whichever of the shapes in use
// it took.
type said struct {
	message string
	more    string // further words, of a server behind the server
	kind    string
	code    string
	param   string
	status  int // by its code, where that is a status of HTTP
}

// text is all words in lower case, to look for some.
func (s said) text() string { return strings.ToLower(s.message + "\n" + s.more + "\n" + s.param) }

// readFault reads the shapes {"error":{…}}, {"error":"…"}, {"message":…} and
// {"detail":…}, the first from OpenAI, the others from those who copy it.
// Anything else is a message as it is.
func readFault(body []byte) said {
	var top struct {
		Error  json.RawMessage `json:"error"`
		Detail json.RawMessage `json:"detail"`
	}
	body = bytes.TrimSpace(body)
	if json.Unmarshal(body, &top) != nil {
		return said{message: string(body)}
	}
	inner := top.Error
	if len(inner) == 0 || string(inner) == "null" {
		inner = body
	}
	var text string
	if json.Unmarshal(inner, &text) == nil {
		return said{message: text}
	}
	var e struct {
		Message  json.RawMessage `json:"message"`
		Type     json.RawMessage `json:"type"`
		Code     json.RawMessage `json:"code"`
		Param    json.RawMessage `json:"param"`
		Metadata struct {
			Raw json.RawMessage `json:"raw"`
		} `json:"metadata"`
	}
	if json.Unmarshal(inner, &e) != nil {
		return said{message: string(body)}
	}
	s := said{
		message: plain(e.Message), more: plain(e.Metadata.Raw), kind: plain(e.Type),
		code: plain(e.Code), param: strings.ToLower(plain(e.Param)),
	}
	if s.message == "" {
		s.message = plain(top.Detail)
	}
	if s.message == "" {
		s.message = string(body)
	}
	if n, err := strconv.Atoi(s.code); err == nil {
		s.status = n
	}
	return s
}

// plain is the text of a JSON string, and any other value as it is written.
func plain(raw json.RawMessage) string {
	var text string
	if len(raw) == 0 || json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}

// faultOf makes the error of an answer that is none, whether it came with a
// status of its own or within a stream, where status is zero. sent is what the
// request had that a server may refuse.
func faultOf(status int, body []byte, sent omit) *llm.Error {
	s := readFault(body)
	if status == 0 || status/100 == 2 {
		status = s.status
	}
	e := &llm.Error{Status: status, Code: s.code, Message: s.message, RetryAfter: hint(s.message)}
	if e.Code == "" || s.status != 0 {
		e.Code = s.kind
	}
	if s.more != "" && s.more != s.message {
		e.Message += ": " + s.more
	}
	e.Kind, e.Feature = kindOf(status, s, sent)
	e.Fix = fixOf(e)
	return e
}

func kindOf(status int, s said, sent omit) (llm.Kind, string) {
	text := s.text()
	switch {
	case s.code == "insufficient_quota" || s.kind == "insufficient_quota" || s.code == "billing_hard_limit_reached" ||
		status == http.StatusTooManyRequests && has(text, "exceeded your current quota", "insufficient balance", "billing"):
		return llm.Quota, ""
	case tooLong(status, s, text):
		return llm.TooLong, ""
	case s.code == "invalid_api_key":
		return llm.Auth, ""
	}
	if status == 0 || status == http.StatusBadRequest || status == http.StatusUnprocessableEntity ||
		status == http.StatusNotFound || status == http.StatusNotImplemented || status == http.StatusInternalServerError {
		if s.code == "invalid_encrypted_content" && sent&omitThoughts != 0 {
			return llm.Unsupported, "reasoning_content"
		}
		switch name, bit := refusedName(s, sent); {
		case bit == hasInline:
			return llm.Unsupported, llm.Inline
		case bit == hasSearch:
			return llm.Unsupported, llm.Search
		case bit != 0:
			return llm.Unsupported, name
		case has(text, "does not support tools", "tool choice requires", "no endpoints found that support tool"):
			return llm.Unsupported, "tools"
		case s.param != "" && (s.code == "unsupported_parameter" || s.code == "unknown_parameter"):
			return llm.Unsupported, s.param
		}
	}
	return byCode(status, s, text), ""
}

// byCode is the kind that the code means, for errors within a stream, or else
// the status.
func byCode(status int, s said, text string) llm.Kind {
	for _, word := range []string{s.code, s.kind} {
		switch word {
		case "rate_limit_exceeded", "rate_limit_error", "too_many_requests":
			return llm.Rate
		case "server_error", "internal_error", "internal_server_error", "overloaded_error", "service_unavailable",
			"server_is_overloaded", "vector_store_timeout", "slow_down", "timeout":
			return llm.Overloaded
		case "authentication_error", "permission_error":
			return llm.Auth
		}
	}
	switch {
	case status >= 300:
		return provider.StatusKind(status)
	case has(text, "overloaded", "try again later", "temporarily", "timed out", "an error occurred while processing"):
		return llm.Overloaded
	case s.code != "" || strings.HasPrefix(s.kind, "invalid"):
		return llm.Invalid
	}
	return llm.Unknown
}

// tooLong knows the words of OpenAI, vLLM, llama.cpp, Ollama, OpenRouter and
// DeepSeek for a conversation that does not fit.
func tooLong(status int, s said, text string) bool {
	switch s.code {
	case "context_length_exceeded", "string_above_max_length", "request_too_large":
		return true
	}
	switch {
	case s.kind == "exceed_context_size_error" || status == http.StatusRequestEntityTooLarge:
		return true
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return false
	case status == http.StatusTooManyRequests:
		// More than a minute's allowance: later it would not pass either.
		return has(text, "request too large")
	}
	return has(text,
		"maximum context length", "context length is only", "context window", "context_length_exceeded",
		"exceeds the available context size", "exceed context", "exceeds the context", "exceeds context",
		"maximum prompt length", "maximum model length", "max_model_len", "prompt is too long", "input is too long",
		"input length exceeds", "longer than the maximum", "reduce the length of the",
		"larger than the max context", "max_tokens must be at least 1", "greater than the context length", "too many tokens in the prompt",
	)
}

func has(text string, words ...string) bool {
	for _, w := range words {
		if strings.Contains(text, w) {
			return true
		}
	}
	return false
}

func fixOf(e *llm.Error) string {
	switch {
	case e.Kind == llm.TooLong:
		return "shorten the conversation with /compact, ask for a shorter answer, or take a model with a larger window"
	case e.Kind == llm.Unsupported && e.Feature == "tools":
		return "choose a model that can call tools, or switch them on in the server"
	case e.Kind == llm.Unsupported && (e.Feature == llm.Inline || e.Feature == llm.Search):
		return "set chat.toolDelivery to bridge for this model"
	case e.Kind == llm.Invalid && e.Status == http.StatusNotFound:
		return "check the name of the model and the base URL, which mostly ends in /v1"
	}
	return ""
}

// hint reads "try again in 1.5s" out of a message: OpenAI does not always say
// it in a header.
func hint(message string) time.Duration {
	_, rest, ok := strings.Cut(message, "try again in ")
	if !ok {
		return 0
	}
	word, _, _ := strings.Cut(rest, " ")
	d, err := time.ParseDuration(strings.TrimRight(word, ".,;"))
	if err != nil {
		return 0
	}
	return max(0, d)
}
