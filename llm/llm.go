// Package llm says what Ken needs of a language model and of an embedding
// model, without naming a vendor. Providers implement [Model] over their own
// wires; nothing above them sees a vendor's type.
//
// The package imports only the standard library.
package llm

import (
	"context"
	"encoding/json"
	"iter"
)

// A Model answers a conversation.
type Model interface {
	// Generate streams one answer. The caller stops by breaking out of the
	// loop or by ending ctx, and either ends the request. An error ends the
	// stream. A provider retries only what failed before the first chunk, so
	// a chunk once yielded is never taken back.
	Generate(ctx context.Context, req Request) iter.Seq2[Chunk, error]
}

// An Embedder turns texts into vectors of one fixed length.
type Embedder interface {
	// Model names the weights; vectors of different models never mix.
	Model() string
	// Dimensions is the length of every vector.
	Dimensions() int
	// Embed gives one vector per text, in order, each of unit length.
	// The same text gives the same vector.
	Embed(ctx context.Context, texts []string) ([][]float32, error)
}

// A Request is one step of a conversation. Providers send tools, system and
// messages in this order and byte for byte as given, because their prompt
// caches match exact prefixes.
type Request struct {
	Model     string
	Tools     []Tool
	System    string
	Messages  []Message
	MaxTokens int // zero means the provider's default

	// Allowed narrows which of Tools may be called now without changing what
	// is sent of them. Nil means all; empty means none.
	Allowed []string
}

// A Tool is a function that the model may ask for.
type Tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"` // JSON Schema of an object
}

// A Role says who speaks in a message.
type Role string

const (
	User      Role = "user"
	Assistant Role = "assistant"
)

// A Message is one entry of the conversation.
type Message struct {
	Role   Role
	Blocks []Block
}

// A Block is one part of a message: exactly one field is set.
type Block struct {
	Text      string
	Image     *Image
	Call      *ToolCall
	Result    *ToolResult
	Reasoning *Reasoning
}

// An Image is a picture shown to the model.
type Image struct {
	MIME string
	Data []byte
}

// A ToolCall is the model's wish to use a tool. ID pairs it with its result.
type ToolCall struct {
	ID        string
	Name      string
	Arguments json.RawMessage
}

// A ToolResult answers the call of the same ID. Every call gets exactly one.
type ToolResult struct {
	ID     string
	Blocks []Block // text and images
	Failed bool
}

// Reasoning is what a model thought. Opaque is the vendor's own form of it and
// must be sent back unchanged.
type Reasoning struct {
	Text   string
	Opaque json.RawMessage
}

// A Chunk is a piece of an answer as it comes. Text and Thought are fragments;
// a Call is whole. The last chunk has Stop and Usage set.
type Chunk struct {
	Text    string
	Thought *Reasoning
	Call    *ToolCall
	Stop    StopReason
	Usage   *Usage
}

// A StopReason says why an answer ended. The zero value: it has not.
type StopReason string

const (
	StopEnd    StopReason = "end"     // the model was done
	StopCalls  StopReason = "calls"   // it waits for tool results
	StopLength StopReason = "length"  // it ran into MaxTokens
	StopRefuse StopReason = "refused" // the provider would not answer
)

// Usage counts tokens as the provider bills them.
type Usage struct {
	Input       int // all input, cached or not
	CachedRead  int // of Input, read from the provider's cache
	CachedWrite int // of Input, written to it
	Output      int
}
