package mcpserver

import (
	"bytes"
	"errors"
	"strconv"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// An Answered is told of each request that was answered: its method, what kind
// of error it ended with (empty: none), and how long it took. The kinds are
// those of OpenTelemetry: tool_error, or the code of a JSON-RPC error.
type Answered func(method, errorType string, took time.Duration)

// OnAnswered sets who is told of answers. It is for metrics, and must be quick.
func (s *Server) OnAnswered(f Answered) { s.answered.Store(&f) }

// observe tells of an answer.
func (s *Server) observe(method string, began time.Time, res mcp.Result, err error) {
	if f := s.answered.Load(); f != nil {
		(*f)(method, errorType(res, err), time.Since(began))
	}
}

// failedEnd is how the body of a tool's result ends if the tool failed.
var failedEnd = []byte(`,"isError":true}`)

func errorType(res mcp.Result, err error) string {
	if err != nil {
		code := int64(jsonrpc.CodeInternalError)
		if wire, ok := errors.AsType[*jsonrpc.Error](err); ok {
			code = wire.Code
		}
		return strconv.FormatInt(code, 10)
	}
	if a, ok := res.(*answer); ok && a != nil && bytes.HasSuffix(a.body, failedEnd) {
		return "tool_error"
	}
	return ""
}
