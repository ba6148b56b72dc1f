package openai

import (
	"io"
	"iter"
	"testing"
	"time"

	"ken/internal/testkit/wiretest"
	"ken/llm"
)

// searched is a history in which one call has the id "used" and the search for
// tools is called discover.
func searched() []llm.Message {
	return []llm.Message{
		{Role: llm.User, Blocks: []llm.Block{{Text: "go"}}},
		{Role: llm.Assistant, Blocks: []llm.Block{{Call: &llm.ToolCall{ID: "used", Name: "discover", Arguments: []byte(`{}`)}}}},
		{Role: llm.User, Blocks: []llm.Block{{Result: &llm.ToolResult{ID: "used", Name: "discover", Blocks: []llm.Block{
			{Tools: []llm.Tool{{Name: "mail", Description: "Mails.", Schema: []byte(`{"type":"object"}`)}}},
		}}}}},
	}
}

// TestStreams plays recorded forms of the wires.
func TestStreams(t *testing.T) {
	wiretest.Streams(t, func(wire string, r io.Reader) iter.Seq2[llm.Chunk, error] {
		if wire == "responses" {
			return decodeResponses(r, searched(), 0)
		}
		return decodeChat(r, searched(), 0)
	})
}

// TestFaults is what servers say when they fail, in their own words.
func TestFaults(t *testing.T) {
	all := ^omit(0)
	for _, test := range []struct {
		name    string
		status  int
		body    string
		sent    omit
		kind    llm.Kind
		feature string
		wait    time.Duration
	}{
		{"openai key", 401, `{"error":{"message":"Incorrect API key provided","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}`, all, llm.Auth, "", 0},
		{"no body", 401, ``, all, llm.Auth, "", 0},
		{"openai rate", 429, `{"error":{"message":"Rate limit reached for gpt-5 in organization org on tokens per min (TPM): Limit 30000, Used 29000, Requested 5000. Please try again in 7.66s. Visit https://x","type":"tokens","param":null,"code":"rate_limit_exceeded"}}`, all, llm.Rate, "", 7660 * time.Millisecond},
		{"openai rate in minutes", 429, `{"error":{"message":"Please try again in 6m0s.","code":"rate_limit_exceeded"}}`, all, llm.Rate, "", 6 * time.Minute},
		{"openai minute too small", 429, `{"error":{"message":"Request too large for gpt-5 on tokens per min (TPM): Limit 30000, Requested 50000.","type":"tokens","code":"rate_limit_exceeded"}}`, all, llm.TooLong, "", 0},
		{"openai quota", 429, `{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}`, all, llm.Quota, "", 0},
		{"deepseek balance", 402, `{"error":{"message":"Insufficient Balance","type":"unknown_error","param":null,"code":"invalid_request_error"}}`, all, llm.Quota, "", 0},
		{"openai long", 400, `{"error":{"message":"This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`, all, llm.TooLong, "", 0},
		{"responses long", 400, `{"error":{"message":"Your input exceeds the context window of this model. Please adjust your input and try again.","type":"invalid_request_error","param":"input","code":"context_length_exceeded"}}`, all, llm.TooLong, "", 0},
		{"vllm long", 400, `{"object":"error","message":"This model's maximum context length is 6048 tokens. However, you requested 6616 tokens (568 in the messages, 6048 in the completion). Please reduce the length of the messages or completion.","type":"BadRequestError","param":null,"code":400}`, all, llm.TooLong, "", 0},
		{"vllm newer long", 400, `{"error":{"message":"You passed 1015 input tokens and requested 10 output tokens. However, the model's context length is only 1024 tokens, resulting in a maximum input length of 1014 tokens. (parameter=input_tokens, value=1015)","type":"BadRequestError","param":"input_tokens","code":400}}`, all, llm.TooLong, "", 0},
		{"llama.cpp long", 400, `{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error","n_prompt_tokens":9000,"n_ctx":4096}}`, all, llm.TooLong, "", 0},
		{"ollama long", 500, `{"error":{"message":"the input length exceeds the context length","type":"api_error","param":null,"code":null}}`, all, llm.TooLong, "", 0},
		{"openrouter long", 400, `{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"error\":{\"message\":\"prompt is too long: 210000 tokens > 200000 maximum\"}}","provider_name":"X"}}}`, all, llm.TooLong, "", 0},
		{"openrouter long itself", 400, `{"error":{"message":"This endpoint's maximum context length is 32768 tokens. However, you requested about 40000 tokens","code":400}}`, all, llm.TooLong, "", 0},
		{"body too large", 413, `<html>Request Entity Too Large</html>`, all, llm.TooLong, "", 0},
		{"500", 500, `{"error":{"message":"The server had an error","type":"server_error"}}`, all, llm.Overloaded, "", 0},
		{"503 as html", 503, `<html>no</html>`, all, llm.Overloaded, "", 0},
		{"529", 529, ``, all, llm.Overloaded, "", 0},
		{"no model", 404, `{"error":{"message":"The model 'x' does not exist","type":"invalid_request_error","param":null,"code":"model_not_found"}}`, all, llm.Invalid, "", 0},
		{"bad request", 400, `{"error":{"message":"Invalid 'messages[0].content'","type":"invalid_request_error"}}`, all, llm.Invalid, "", 0},

		{"old name of the limit", 400, `{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.","type":"invalid_request_error","param":"max_tokens","code":"unsupported_parameter"}}`, omitMaxTokens, llm.Unsupported, "max_tokens", 0},
		{"old name of the limit, no code", 400, `{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.","code":"invalid_request_body"}}`, omitMaxTokens, llm.Unsupported, "max_tokens", 0},
		{"limit too large is no refusal", 400, `{"error":{"message":"max_tokens is too large: 99999. This model supports at most 16384 completion tokens.","type":"invalid_request_error","param":"max_tokens","code":"invalid_value"}}`, omitMaxTokens, llm.Invalid, "", 0},
		{"azure stream_options", 400, `{"error":{"message":"Unrecognized request argument supplied: stream_options","type":"invalid_request_error","param":null,"code":null}}`, all, llm.Unsupported, "stream_options", 0},
		{"mistral extra", 422, `{"detail":[{"type":"extra_forbidden","loc":["body","prompt_cache_key"],"msg":"Extra inputs are not permitted"}]}`, all, llm.Unsupported, "prompt_cache_key", 0},
		{"vllm tool_choice", 400, `{"error":{"message":"1 validation error: {'loc': ('body', 'tool_choice'), 'msg': 'Input should be none, auto or required'}","type":"BadRequestError","code":400}}`, all, llm.Unsupported, "tool_choice", 0},
		{"lm studio tool_choice", 400, `{"error":"Invalid tool_choice type: 'object'. Supported string values: none, auto, required"}`, all, llm.Unsupported, "tool_choice", 0},
		{"plain English is no parameter", 400, `{"error":{"message":"Invalid value: please include some reasoning in your messages","type":"invalid_request_error","param":"messages"}}`, all, llm.Invalid, "", 0},
		{"quoted it is", 400, `{"error":{"message":"Unknown parameter: 'include'.","type":"invalid_request_error"}}`, all, llm.Unsupported, "include", 0},
		{"broken tools are no lack of the feature", 400, `{"error":{"message":"Schema of additional_tools[0] has no type","type":"invalid_request_error"}}`, all, llm.Invalid, "", 0},
		{"groq reasoning_effort", 400, `{"error":{"message":"reasoning_effort is not supported with this model","type":"invalid_request_error"}}`, all, llm.Unsupported, "reasoning_effort", 0},
		{"responses effort", 400, `{"error":{"message":"Unsupported parameter: 'reasoning.effort' is not supported with this model.","type":"invalid_request_error","param":"reasoning.effort","code":"unsupported_parameter"}}`, all, llm.Unsupported, "reasoning.effort", 0},
		{"responses summary", 400, `{"error":{"message":"Your organization must be verified to generate reasoning summaries.","type":"invalid_request_error","param":"reasoning.summary","code":"unsupported_value"}}`, all, llm.Unsupported, "reasoning.summary", 0},
		{"responses include", 400, `{"error":{"message":"Encrypted content is not supported with this model.","type":"invalid_request_error","param":"include","code":null}}`, all, llm.Unsupported, "include", 0},
		{"not sent, not refused", 400, `{"error":{"message":"stream_options is not supported","type":"invalid_request_error"}}`, 0, llm.Invalid, "", 0},
		{"another parameter", 400, `{"error":{"message":"Unknown parameter: 'verbosity'.","type":"invalid_request_error","param":"verbosity","code":"unknown_parameter"}}`, all, llm.Unsupported, "verbosity", 0},
		{"thoughts of another account", 400, `{"error":{"message":"The encrypted content gAAA could not be verified.","type":"invalid_request_error","param":null,"code":"invalid_encrypted_content"}}`, all, llm.Unsupported, "reasoning_content", 0},
		{"inline", 400, `{"error":{"message":"Invalid value: 'additional_tools'. Supported values are: 'message'.","type":"invalid_request_error","param":"input[3]","code":"invalid_value"}}`, all, llm.Unsupported, llm.Inline, 0},
		{"search", 400, `{"error":{"message":"Tool 'tool_search' is not supported with gpt-5.","type":"invalid_request_error","param":"tools","code":null}}`, all, llm.Unsupported, llm.Search, 0},
		{"ollama tools", 400, `{"error":{"message":"registry.ollama.ai/library/gemma:2b does not support tools","type":"api_error"}}`, all, llm.Unsupported, "tools", 0},
		{"vllm tools", 400, `{"error":{"message":"\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set","code":400}}`, all, llm.Unsupported, "tools", 0},
		{"in a stream", 0, `{"error":"model runner has unexpectedly stopped"}`, 0, llm.Unknown, "", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := faultOf(test.status, []byte(test.body), test.sent)
			if e.Kind != test.kind || e.Feature != test.feature || e.RetryAfter != test.wait {
				t.Errorf("faultOf(%d, %s) = %v %q after %v, want %v %q after %v", test.status, test.body, e.Kind, e.Feature, e.RetryAfter, test.kind, test.feature, test.wait)
			}
			if (e.Kind == llm.TooLong || e.Feature == llm.Inline || e.Feature == "tools") && e.Fix == "" {
				t.Errorf("faultOf(%d, %s) has no fix", test.status, test.body)
			}
		})
	}
}
