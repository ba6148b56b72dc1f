// Package refusal writes errors of JSON-RPC, alone and as answers over HTTP.
package refusal

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// Write answers a request that is not served: with a status, and with the error
// of JSON-RPC that the protocol lets stand there. It has no id, since the
// message it is about was not read, or not as one.
func Write(w http.ResponseWriter, status int, why string) {
	code := int64(jsonrpc.CodeInvalidRequest)
	switch {
	case status >= http.StatusInternalServerError:
		code = jsonrpc.CodeInternalError
	case strings.HasPrefix(why, "malformed payload"):
		code = jsonrpc.CodeParseError
	}
	b := append([]byte(`{"jsonrpc":"2.0","id":null,"error":`), Object(&jsonrpc.Error{Code: code, Message: why})...)
	b = append(b, "}\n"...)
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Length", strconv.Itoa(len(b)))
	w.WriteHeader(status)
	_, _ = w.Write(b) // a client that has gone needs none
}

// A translator has the refusals that the SDK writes as plain text said by
// [Write]. All else goes through as it is.
type translator struct {
	http.ResponseWriter
	status int    // of a refusal; 0: none
	text   []byte // of it
}

// mostRefusal bounds the text of one; the SDK's own are a line.
const mostRefusal = 4 << 10

// WriteHeader holds back the status of a refusal until its text is there.
func (t *translator) WriteHeader(status int) {
	if status >= http.StatusBadRequest && strings.HasPrefix(t.Header().Get("Content-Type"), "text/plain") {
		t.status = status
		return
	}
	t.ResponseWriter.WriteHeader(status)
}

func (t *translator) Write(p []byte) (int, error) {
	if t.status == 0 {
		return t.ResponseWriter.Write(p)
	}
	t.text = append(t.text, p[:min(len(p), mostRefusal-len(t.text))]...)
	return len(p), nil
}

// Unwrap is for [http.ResponseController].
func (t *translator) Unwrap() http.ResponseWriter { return t.ResponseWriter }

// finish says the refusal, if there was one.
func (t *translator) finish() {
	if t.status == 0 {
		return
	}
	why := cmp.Or(strings.TrimSpace(string(t.text)), http.StatusText(t.status))
	if t.status == http.StatusNotFound {
		why += "; begin a new one with initialize"
	}
	Write(t.ResponseWriter, t.status, why)
}

// Serve serves with what the SDK refuses in the words of the protocol.
func Serve(w http.ResponseWriter, r *http.Request, h http.Handler) {
	t := &translator{ResponseWriter: w}
	defer t.finish()
	h.ServeHTTP(t, r)
}

// Object returns an error as JSON-RPC has it.
func Object(err error) []byte {
	wire, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok {
		wire = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}
	}
	out, err := json.Marshal(wire)
	if err != nil {
		return []byte(`{"code":-32603,"message":"the error cannot be told"}`)
	}
	return out
}
