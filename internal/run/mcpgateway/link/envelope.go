package link

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"ken/internal/jsonvalid"
	"ken/internal/untrusted"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// decodeMessage is [jsonrpc.DecodeMessage] for what servers send: the same
// messages, for a tenth of the memory. Floods are decoded with it, too.
func decodeMessage(data []byte) (jsonrpc.Message, error) {
	if res, ok := plainAnswer(data); ok {
		return res, nil
	}
	var e struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Method  *string         `json:"method"`
		Params  json.RawMessage `json:"params"`
		Result  json.RawMessage `json:"result"`
		Error   *jsonrpc.Error  `json:"error"`
	}
	if err := json.Unmarshal(data, &e); err != nil {
		return nil, err
	}
	if e.Version != "2.0" {
		return nil, errors.New("not a JSON-RPC 2.0 message")
	}
	id, err := exactID(e.ID)
	if err != nil {
		return nil, err
	}
	if name, twice := untrusted.TwiceNamed(data, 1); twice {
		err := fmt.Errorf("duplicate member %q", untrusted.Line(name, 40))
		if e.Method == nil && name != "id" && id.IsValid() {
			// Answer with an error, so that the request does not wait any
			// longer.
			return &jsonrpc.Response{ID: id, Error: &jsonrpc.Error{Code: jsonrpc.CodeParseError, Message: err.Error()}}, nil
		}
		return nil, err
	}
	if e.Method != nil {
		return &jsonrpc.Request{ID: id, Method: *e.Method, Params: e.Params}, nil
	}
	if !id.IsValid() {
		return nil, errors.New("neither a request nor an answer")
	}
	res := &jsonrpc.Response{ID: id, Result: e.Result}
	if e.Error != nil {
		res.Error = e.Error // a nil *Error would be an error
	}
	return res, nil
}

// plainAnswer reads a message with a result and nothing unusual, which most are. It
// reports false for all others.
func plainAnswer(data []byte) (*jsonrpc.Response, bool) {
	if !jsonvalid.Valid(data) {
		return nil, false
	}
	var version, rawID, result json.RawMessage
	for name, value := range untrusted.Members(data) {
		switch {
		case name == "jsonrpc" && version == nil:
			version = value
		case name == "id" && rawID == nil:
			rawID = value
		case name == "result" && result == nil:
			result = value
		default:
			return nil, false
		}
	}
	id, err := exactID(rawID)
	if string(version) != `"2.0"` || result == nil || err != nil || !id.IsValid() {
		return nil, false
	}
	return &jsonrpc.Response{ID: id, Result: bytes.Clone(result)}, true
}

// encodeOwn is [jsonrpc.EncodeMessage] for the requests that Ken sends past the SDK,
// which writes their parameters three times. It appends to b. It reports false for all
// other messages.
func encodeOwn(b []byte, msg jsonrpc.Message) ([]byte, bool) {
	req, ok := msg.(*jsonrpc.Request)
	if !ok {
		return nil, false
	}
	id, _ := req.ID.Raw().(string)
	if !strings.HasPrefix(id, ownID) || bytes.IndexByte(req.Params, '\n') >= 0 || bytes.IndexByte(req.Params, '\r') >= 0 || !jsonvalid.Valid(req.Params) {
		return nil, false
	}
	b = strconv.AppendQuote(append(b, `{"jsonrpc":"2.0","id":`...), id)
	b = strconv.AppendQuote(append(b, `,"method":`...), req.Method)
	b = append(append(b, `,"params":`...), req.Params...)
	return append(b, '}'), true
}

// ownID begins the ids of the requests that Ken sends past the SDK.
const ownID = "ken-"

// mostID is the largest integer that every JSON decoder represents exactly.
const mostID = 1<<53 - 1

// exactID reads an id, and rejects a number that cannot be answered exactly.
func exactID(raw json.RawMessage) (jsonrpc.ID, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return jsonrpc.ID{}, nil
	}
	if text, ok := jsonvalid.Text(raw); ok {
		return jsonrpc.MakeID(text)
	}
	if raw[0] == '"' {
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			return jsonrpc.ID{}, err
		}
		return jsonrpc.MakeID(text)
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil || n > mostID || n < -mostID {
		return jsonrpc.ID{}, fmt.Errorf("the id %s must be a string or an integer up to %d", untrusted.Line(string(raw), 40), mostID)
	}
	return jsonrpc.MakeID(float64(n))
}
