package anthropic

import (
	"encoding/json"
	"net/http"
	"strings"

	"ken/internal/talk/provider"
	"ken/llm"
)

// features are the parts of the wire that a request needs and that not every
// model or server has.
type features struct {
	inline, search, effort bool
}

// A fault is the wire's form of an error, in a body as in an event.
type fault struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

// classify reads the body of an answer that is an error. Nil: it is not the
// wire's.
func (f features) classify(status int, _ http.Header, body []byte) *llm.Error {
	var said struct {
		Error fault `json:"error"`
	}
	if json.Unmarshal(body, &said) != nil || said.Error.Type == "" && said.Error.Message == "" {
		return nil
	}
	return f.failure(status, said.Error)
}

// failure turns the wire's error into ours.
func (f features) failure(status int, said fault) *llm.Error {
	e := &llm.Error{Status: status, Code: said.Type, Message: said.Message, Kind: kindOf(status, said.Type)}
	if e.Kind != llm.Invalid {
		return e
	}
	text := strings.ToLower(said.Message)
	switch {
	case has(text, "prompt is too long", "exceed context limit", "exceeds the context", "context window", "too many tokens"):
		e.Kind = llm.TooLong
	case has(text, "credit balance", "usage limits"):
		e.Kind = llm.Quota
	case f.inline && has(text, "tool_addition", "tool_definition", "inline-tools", "anthropic-beta", "role 'system'", `role "system"`, `unexpected role`, ".role"):
		e.Kind, e.Feature = llm.Unsupported, llm.Inline
	case f.search && has(text, "tool_reference", "defer_loading"):
		e.Kind, e.Feature = llm.Unsupported, llm.Search
	case f.effort && has(text, "effort", "output_config", "thinking"):
		e.Kind, e.Feature = llm.Unsupported, "effort"
		e.Fix = "leave the effort empty for this model"
	}
	return e
}

// kindOf goes by the wire's word, because events have no status.
func kindOf(status int, word string) llm.Kind {
	switch word {
	case "authentication_error", "permission_error":
		return llm.Auth
	case "billing_error":
		return llm.Quota
	case "rate_limit_error":
		return llm.Rate
	case "overloaded_error", "api_error", "timeout_error":
		return llm.Overloaded
	case "request_too_large":
		return llm.TooLong
	case "invalid_request_error", "not_found_error":
		return llm.Invalid
	}
	if status < 300 {
		return llm.Unknown
	}
	return provider.StatusKind(status)
}

func has(text string, any ...string) bool {
	for _, s := range any {
		if strings.Contains(text, s) {
			return true
		}
	}
	return false
}
