package link

import (
	"encoding/json"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// decodeMessage is [jsonrpc.DecodeMessage] for what servers send: the same
// messages, for a tenth of the memory. Floods are decoded with it, too.
func decodeMessage(data []byte) (jsonrpc.Message, error) {
	var e struct {
		Version string          `json:"jsonrpc"`
		ID      any             `json:"id"`
		Method  *string         `json:"method"`
		Params  json.RawMessage `json:"params"`
		Result  json.RawMessage `json:"result"`
		Error   *jsonrpc.Error  `json:"error"`
	}
	if err := json.Unmarshal(data, &e); err != nil {
		return nil, err
	}
	if e.Version != "2.0" {
		return nil, errors.New("no message of JSON-RPC 2.0")
	}
	id, err := jsonrpc.MakeID(e.ID)
	if err != nil {
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
