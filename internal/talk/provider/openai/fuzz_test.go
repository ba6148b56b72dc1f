package openai

import (
	"bytes"
	"path/filepath"
	"testing"

	"ken/internal/talk/provider"
	"ken/internal/testkit/wiretest"
	"ken/llm"

	"github.com/rogpeppe/go-internal/txtar"
)

// seeds are the streams of testdata for one wire.
func seeds(f *testing.F, wire string) {
	files, err := filepath.Glob("testdata/stream/" + wire + "_*.txtar")
	if err != nil || len(files) == 0 {
		f.Fatalf("Glob = %v, %v, want some", files, err)
	}
	for _, name := range files {
		archive, err := txtar.ParseFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(archive.Files[0].Data)
	}
}

func FuzzChat(f *testing.F) {
	seeds(f, "chat")
	f.Fuzz(func(t *testing.T, stream []byte) {
		wiretest.Answer(t, decodeChat(bytes.NewReader(stream), nil, 0), func(r llm.Request) ([]byte, error) {
			body, _, err := encodeChat(provider.Config{}, r, 0)
			return body, err
		})
	})
}

func FuzzResponses(f *testing.F) {
	seeds(f, "responses")
	f.Fuzz(func(t *testing.T, stream []byte) {
		wiretest.Answer(t, decodeResponses(bytes.NewReader(stream), nil, 0), func(r llm.Request) ([]byte, error) {
			body, _, err := encodeResponses(provider.Config{}, r, false, 0)
			return body, err
		})
	})
}

func FuzzFault(f *testing.F) {
	f.Add(400, []byte(`{"error":{"message":"Unsupported parameter: 'max_tokens'","param":"max_tokens","code":"unsupported_parameter"}}`))
	f.Add(0, []byte(`{"error":{"code":502,"message":["x"],"metadata":{"raw":{"a":1}}}}`))
	f.Add(422, []byte(`{"detail":[{"loc":["body","x"]}]}`))
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		e := faultOf(status, body, ^omit(0))
		if e.Kind == llm.Unsupported && e.Feature == "" {
			t.Errorf("faultOf(%d, %q) = unsupported without a feature", status, body)
		}
	})
}
