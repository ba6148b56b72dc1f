package gemini

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"ken/internal/talk/provider"
	"ken/llm"
)

// A fault is an error of the vendor's.
type fault struct {
	Error struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
		Status  string `json:"status"`
		Details []struct {
			Reason     string `json:"reason"`
			RetryDelay string `json:"retryDelay"`
			Violations []struct {
				QuotaID string `json:"quotaId"`
			} `json:"violations"`
		} `json:"details"`
	} `json:"error"`
}

// classify reads an error, or gives nil where the body is none.
func classify(status int, _ http.Header, body []byte) *llm.Error {
	body = bytes.TrimSpace(body)
	var f fault
	if len(body) > 0 && body[0] == '[' { // a stream that failed may be a list
		var list []fault
		if json.Unmarshal(body, &list) != nil || len(list) == 0 {
			return nil
		}
		f = list[0]
	} else if json.Unmarshal(body, &f) != nil {
		return nil
	}
	if f.Error.Status == "" && f.Error.Message == "" && f.Error.Code == 0 {
		return nil
	}
	if status == 0 {
		status = f.Error.Code
	}
	e := &llm.Error{Code: f.Error.Status, Message: f.Error.Message, Status: status, RetryAfter: f.delay()}
	f.kind(status, e)
	return e
}

// delay is how long the vendor asks to wait.
func (f *fault) delay() time.Duration {
	for _, d := range f.Error.Details {
		if wait, err := time.ParseDuration(d.RetryDelay); err == nil && wait > 0 {
			return wait
		}
	}
	return 0
}

// perDay reports whether the limit of a day is used up.
func (f *fault) perDay() bool {
	for _, d := range f.Error.Details {
		for _, v := range d.Violations {
			if strings.Contains(v.QuotaID, "PerDay") {
				return true
			}
		}
	}
	return false
}

func (f *fault) reason(want string) bool {
	for _, d := range f.Error.Details {
		if d.Reason == want {
			return true
		}
	}
	return false
}

// kind says what sort of failure it is. The words are looked at only where the
// wire uses one code for several.
func (f *fault) kind(status int, e *llm.Error) {
	text := strings.ToLower(f.Error.Message)
	has := func(words ...string) bool {
		for _, w := range words {
			if !strings.Contains(text, w) {
				return false
			}
		}
		return true
	}
	switch f.Error.Status {
	case "RESOURCE_EXHAUSTED":
		e.Kind = llm.Rate
		if f.perDay() || e.RetryAfter == 0 && (has("quota") || has("billing") || has("credits")) {
			e.Kind = llm.Quota
		}
	case "UNAUTHENTICATED", "PERMISSION_DENIED":
		e.Kind = llm.Auth
	case "UNAVAILABLE", "INTERNAL", "DEADLINE_EXCEEDED", "ABORTED", "CANCELLED":
		e.Kind = llm.Overloaded
	case "NOT_FOUND":
		e.Kind = llm.Invalid
		e.Fix = "check the name of the model and the base URL"
	case "INVALID_ARGUMENT", "FAILED_PRECONDITION", "OUT_OF_RANGE":
		e.Kind = llm.Invalid
		switch {
		case f.reason("API_KEY_INVALID") || has("api key not valid") || has("api key expired"):
			e.Kind = llm.Auth
		case has("token count", "exceeds") || has("tokens", "exceeds the maximum") || has("payload size exceeds"):
			e.Kind = llm.TooLong
		case has("billing"):
			e.Kind = llm.Quota
		case has("thinking", "not supported"):
			e.Kind, e.Feature = llm.Unsupported, "effort"
		}
	default:
		e.Kind = provider.StatusKind(status)
	}
}
