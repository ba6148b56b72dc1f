// Package llm defines what Ken needs from a language model and an embedding
// model, independent of vendors. Providers implement [Model] over their own
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
	// Embed returns one vector per text, in order, each of unit length.
	// The same text gives the same vector.
	Embed(ctx context.Context, texts []string) ([][]float32, error)
}

// A Request is one step of a conversation. Providers send tools, system and
// messages in this order and byte for byte as given, because their prompt
// caches match exact prefixes: what was sent once is sent again in the same
// bytes, and only what is new comes after it.
type Request struct {
	Model     string // empty means the one that the provider was made for
	Tools     []Tool
	System    string
	Messages  []Message
	MaxTokens int // zero means the provider's default

	// Allowed narrows which tools may be called now without changing what is
	// sent of them. Nil means all; empty means none.
	Allowed []string

	// Cache names the conversation to the provider's prompt cache, and asks for
	// the marks that its wire needs to keep the prefix. Empty asks for nothing.
	Cache string

	// Search names the one of Tools whose results may hold tools (see
	// [Block.Tools]), for wires that must know it from the beginning. Empty:
	// none does.
	Search string

	// Effort says how long the model may think: "low", "medium", "high", or
	// empty for its default. It is the same in all requests of a conversation.
	Effort string
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
	Role   Role    `json:"role"`
	Blocks []Block `json:"blocks"`
}

// A Block is one part of a message: exactly one field is set.
type Block struct {
	Text      string      `json:"text,omitempty"`
	Image     *Image      `json:"image,omitempty"`
	Call      *ToolCall   `json:"call,omitempty"`
	Result    *ToolResult `json:"result,omitempty"`
	Reasoning *Reasoning  `json:"reasoning,omitempty"`

	// Tools may be called from here on. In a message of the user's they are
	// given at once ([Inline]), in the result of a tool as what a search found
	// ([Search]). A provider whose wire has no such thing fails with
	// [Unsupported] and the name of the feature.
	Tools []Tool `json:"tools,omitempty"`
}

// The features of a wire by which tools are given in the middle of a
// conversation.
const (
	Inline = "inline"
	Search = "search"
)

// An Image is a picture shown to the model.
type Image struct {
	MIME string `json:"mime"`
	Data []byte `json:"data"`
}

// A ToolCall is the model's wish to use a tool. ID pairs it with its result.
//
// Arguments are the bytes that the model wrote: perhaps not JSON at all. A
// provider passes them on as they came, and sends them back so that the wire
// stays valid.
type ToolCall struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments []byte `json:"arguments"`

	// Opaque is what the vendor wants back with the call, unchanged.
	Opaque json.RawMessage `json:"opaque,omitempty"`
}

// A ToolResult answers the call of the same ID. Every call gets exactly one.
type ToolResult struct {
	ID     string  `json:"id"`
	Name   string  `json:"name"`             // of the tool that was called
	Blocks []Block `json:"blocks,omitempty"` // text, images and tools
	Failed bool    `json:"failed,omitempty"`
}

// Reasoning is what a model thought. Opaque is the vendor's own form of it and
// must be sent back unchanged, to the vendor that Wire names and to no other.
type Reasoning struct {
	Text   string          `json:"text,omitempty"`
	Wire   string          `json:"wire,omitempty"`
	Opaque json.RawMessage `json:"opaque,omitempty"`
}

// A Chunk is a piece of an answer as it comes: exactly one of Text, Thought,
// Block and the end. Text and Thought are fragments to show. A Block is whole
// and is what the history keeps, in order: the text that its fragments made
// up, reasoning, or a call. The last chunk has Stop and Usage set.
type Chunk struct {
	Text    string
	Thought string
	Block   *Block
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
	Input       int `json:"input"`       // all input, cached or not
	CachedRead  int `json:"cachedRead"`  // of Input, read from the provider's cache
	CachedWrite int `json:"cachedWrite"` // of Input, written to it
	Output      int `json:"output"`      // all output, thoughts too
	Thought     int `json:"thought"`     // of Output
}

// Add counts another request.
func (u *Usage) Add(more Usage) {
	u.Input += more.Input
	u.CachedRead += more.CachedRead
	u.CachedWrite += more.CachedWrite
	u.Output += more.Output
	u.Thought += more.Thought
}
